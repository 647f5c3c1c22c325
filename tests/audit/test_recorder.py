"""Recording of runs, also of Flower's: strategies with Flower's methods, and Flower's own."""

from types import SimpleNamespace

import numpy as np
import pytest

from nescio.audit import Log, Recorder, solve
from nescio.audit.flower import recorded
from nescio.errors import ArgumentError


def filled(recorder, users=6, rounds=25, dimensions=40, seed=0):
    rng = np.random.default_rng(seed)
    updates = rng.standard_normal((users, dimensions))
    names = [f"device {k}" for k in range(users)]
    columns = (rng.random((rounds, users)) < 0.4).astype(np.uint8)
    for row in columns:
        recorder.add(row @ updates, [names[k] for k in np.flatnonzero(row)])
    return names, columns, updates


def test_a_log_is_what_the_server_saw():
    names = [f"device {k}" for k in range(6)]
    recorder = Recorder(names, granularity=10)
    _, columns, updates = filled(recorder)
    log = recorder.log()
    assert recorder.names == tuple(names)
    assert (recorder.participation() == columns).all()
    np.testing.assert_array_equal(log.aggregates, np.stack([row @ updates for row in columns]))
    assert log.windows == ((0, 10), (10, 20), (20, 25))
    assert (log.counts[:, 2] == columns[20:].sum(axis=0)).all()
    assert (log.participants == columns.sum(axis=1)).all()


def test_the_file_has_no_names_and_no_columns(tmp_path):
    recorder = Recorder()
    filled(recorder)
    path = tmp_path / "run.npz"
    recorder.log().save(path)
    with np.load(path) as file:
        assert set(file.files) <= {
            *("aggregates", "users", "windows", "counts", "participants", "count_error")
        }
    assert b"device" not in path.read_bytes()
    assert Log.load(path).rounds == 25


def test_some_dimensions_are_enough():
    recorder = Recorder(dimensions=12, seed=5)
    _, columns, updates = filled(recorder)
    log = recorder.log()
    assert log.dimensions == 12
    full = columns @ updates
    matches = (np.abs(full[:, :, None] - log.aggregates[:, None, :]) < 1e-12).all(axis=0)
    assert (matches.sum(axis=0) == 1).all()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_sums_are_copied(dtype):
    recorder = Recorder(range(2))
    row = np.array([1.0, 2.0, 4.0], dtype)
    recorder.add(row, [0])
    row[:] = 9
    recorder.add(np.array([1, 0, 1], dtype), [1])
    recorder.add(np.array([2, 2, 5], dtype), [0, 1])
    assert recorder.log().aggregates[0].tolist() == [1, 2, 4]


def test_what_cannot_be_recorded():
    recorder = Recorder(["a", "b"])
    recorder.add(np.ones(3), ["a"])
    for total, present in [
        (np.ones(4), ["a"]),
        (np.ones((1, 3)), ["a"]),
        (np.ones(3, int), ["a"]),
        (np.ones(3), ["a", "a"]),
        (np.ones(3), ["c"]),
    ]:
        with pytest.raises(ArgumentError, match="expected|not one of the users"):
            recorder.add(total, present)
    assert len(recorder) == 1
    with pytest.raises(ArgumentError, match="twice"):
        Recorder(["a", "a"])
    with pytest.raises(ArgumentError, match="empty"):
        Recorder().log()


class Arrays:
    def __init__(self, *arrays):
        self.arrays = arrays

    def to_numpy_ndarrays(self):
        return list(self.arrays)


class Messages:
    """A strategy with Flower's message interface, as far as the recorder uses it."""

    weighted_by_key = "num-examples"

    def configure_train(self, server_round, arrays, config, grid):
        return [f"to {grid}"]

    def aggregate_train(self, server_round, replies):
        self.seen = list(replies)
        return len(self.seen), server_round


class Clients:
    """A strategy with the older interface."""

    def configure_fit(self, server_round, parameters, client_manager):
        return [client_manager]

    def aggregate_fit(self, server_round, results, failures):
        return len(results), {"failures": len(failures)}


def reply(node, arrays, examples, error=False):
    return SimpleNamespace(
        has_error=lambda: error,
        metadata=SimpleNamespace(src_node_id=node),
        content=SimpleNamespace(
            array_records={"arrays": Arrays(*arrays)},
            metric_records={"metrics": {"num-examples": examples}},
        ),
    )


MODEL = (np.array([[1.0, 2.0]]), np.array([3.0]))


def moved(by):
    return [array + by for array in MODEL]


@pytest.mark.parametrize(("weighted", "total"), [(True, 10 * 0.5 + 30 * 2), (False, 2.5)])
def test_messages_are_summed(weighted, total):
    recorder = Recorder()
    inner = Messages()
    strategy = recorded(inner, recorder, weighted=weighted)
    assert isinstance(strategy, Messages)
    assert strategy.configure_train(1, Arrays(*MODEL), {}, "grid") == ["to grid"]
    replies = [reply(7, moved(0.5), 10), reply(9, moved(2.0), 30), reply(4, moved(9.0), 5, True)]
    assert strategy.aggregate_train(1, iter(replies)) == (3, 1)
    assert recorder.names == (7, 9)
    assert recorder._sums[0].tolist() == [total] * 3
    assert recorder.participation().tolist() == [[1, 1]]
    inner.aggregate_train(2, [])  # the strategy itself is as it was
    assert len(recorder) == 1


def test_clients_are_summed():
    recorder = Recorder()
    strategy = recorded(Clients(), recorder, parameters_to_ndarrays=list)
    assert strategy.configure_fit(1, MODEL, "all") == ["all"]
    results = [
        (SimpleNamespace(cid=name), SimpleNamespace(parameters=moved(by), num_examples=number))
        for name, by, number in [("a", 1.0, 2), ("b", -1.0, 5)]
    ]
    assert strategy.aggregate_fit(1, results, []) == (2, {"failures": 0})
    assert recorder._sums[0].tolist() == [-3.0] * 3
    assert recorder.names == ("a", "b")


def test_a_round_without_replies_is_a_round():
    recorder = Recorder()
    strategy = recorded(Messages(), recorder)
    strategy.configure_train(1, Arrays(*MODEL), {}, "grid")
    strategy.aggregate_train(1, [])
    assert recorder._sums[0].tolist() == [0.0] * 3


def test_what_is_no_strategy_or_no_round():
    with pytest.raises(ArgumentError, match="aggregate_train"):
        recorded(object(), Recorder())
    strategy = recorded(Messages(), Recorder())
    with pytest.raises(ArgumentError, match="configure"):
        strategy.aggregate_train(1, [])
    strategy.configure_train(1, Arrays(*MODEL), {}, "grid")
    with pytest.raises(ArgumentError, match="parameters"):
        strategy.aggregate_train(1, [reply(1, [np.zeros(2)], 1)])
    lacking = reply(1, moved(1.0), 1)
    lacking.content.metric_records = {}
    with pytest.raises(ArgumentError, match="num-examples"):
        strategy.aggregate_train(1, [lacking])


def test_flowers_own_strategy():
    """Flower's FedAvg, where Flower is installed; examples/audit_flower.py has the newer one."""
    pytest.importorskip("flwr", reason="Flower is not installed: pip install 'nescio[flower]'")
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters  # noqa: PLC0415
    from flwr.server.strategy import FedAvg  # noqa: PLC0415

    recorder = Recorder(range(6), granularity=5)
    strategy = recorded(FedAvg(), recorder)
    nobody = SimpleNamespace(num_available=lambda: 0, sample=lambda **_: [])
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((6, 3, 20)).astype(np.float32)
    model = np.zeros((3, 20), np.float32)
    for t in range(40):
        strategy.configure_fit(t + 1, ndarrays_to_parameters([model]), nobody)
        results = [
            (
                SimpleNamespace(cid=k),
                FitRes(
                    Status(Code.OK, ""), ndarrays_to_parameters([model + updates[k]]), 10 + k, {}
                ),
            )
            for k in np.flatnonzero(rng.random(6) < 0.4).tolist()
        ]
        strategy.aggregate_fit(t + 1, results, [])
    result = solve(recorder.log())
    assert (result.participation == recorder.participation()).all()
    assert result.updates[4] == pytest.approx(14 * updates[4].reshape(-1), abs=1e-3)
