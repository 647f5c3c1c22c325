"""Plans: quality, widths of tables under a budget, files, and models that another party has."""

import dataclasses
import json
import resource
import sys

import numpy as np
import pytest

from nescio.errors import ArgumentError, FileError, MalformedMessageError
from nescio.mpc import (
    InputRangeWarning,
    OutputRangeWarning,
    Plan,
    PrivateModel,
    PublicPlan,
    Report,
    Server,
    insecure_dealer,
    prepare,
)
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._plans.compiler import _gathered, plan_of
from nescio.mpc._plans.costs import costs
from nescio.mpc._plans.floats import FloatLayer, FloatTerm, Function, run
from ot.parties import together

GELU = Function("gelu", lambda x: x * 0.5 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))))


def convolution(random, source, shape, outputs, *, size=3, padding=1):
    weights = random.normal(0, 0.3, (outputs, shape[0], size, size))
    geometry = Convolution(np.zeros(weights.shape, int), shape, padding=(padding, padding))
    return FloatTerm(source, geometry, weights)


@pytest.fixture(scope="module")
def layers():
    random = np.random.default_rng(5)
    first = convolution(random, 0, (2, 8, 8), 6)
    second = convolution(random, 1, (6, 8, 8), 4)
    shortcut = convolution(random, 0, (2, 8, 8), 4, size=1, padding=0)
    matrix = random.normal(0, 0.1, (5, 4 * 8 * 8))
    last = FloatTerm(2, Dense(np.zeros(matrix.shape, int), (4, 8, 8)), matrix)
    return [
        FloatLayer((first,), random.normal(0, 0.5, 6)),
        FloatLayer((second, shortcut), random.normal(0, 0.5, 4), GELU),
        FloatLayer((last,), random.normal(0, 0.5, 5)),
    ]


@pytest.fixture(scope="module")
def inputs():
    return np.random.default_rng(6).normal(0, 1, (120, 2, 8, 8))


@pytest.fixture(scope="module")
def plan(layers, inputs):
    *_, logits = run(layers, inputs)
    return plan_of(layers, inputs[:80], held=inputs[80:], labels=logits[80:].argmax(1))


def test_a_report_has_quality_and_costs(plan):
    report = plan.report
    assert report.inputs == 40
    assert report.float_accuracy == 1.0
    assert report.accuracy == report.agreement >= 0.75  # the dithers are random
    assert report.error < 0.1
    assert report.lookups == 6 * 64 + 4 * 64
    assert [layer.function for layer in report.layers] == ["relu", "gelu", "-"]
    assert report.rounds == 3
    text = str(report)
    assert "640 lookups" in text
    assert "agree with the float model" in text
    assert json.loads(report.to_json())["online_bytes"] == report.online_bytes
    assert Report.from_json(report.to_json()) == report


def test_a_plot_is_written(plan, tmp_path):
    plan.report.plot(str(tmp_path / "layers.svg"))
    assert "linear products" in (tmp_path / "layers.svg").read_text()


def test_costs_are_those_of_the_channel(plan, tmp_path):
    paths = tmp_path / "client", tmp_path / "server"
    public = plan.public
    offline, _ = together(
        lambda channel: prepare(channel, public.network, paths[0], 1, threads=1),
        lambda channel: prepare(channel, plan.network, paths[1], 1, threads=1),
    )

    def client(channel):
        with PrivateModel(channel, public, paths[0], threads=1) as model:
            model(np.zeros((1, 2, 8, 8)))
            return model.counts

    def server(channel):
        with Server(channel, plan.network, paths[1], threads=1) as party:
            party.serve()

    online, _ = together(client, server)
    rows = costs(public.network)
    payload = {
        step.layer: step.counts.sent_bytes
        + step.counts.received_bytes
        - 16 * step.counts.sent_frames
        - 16 * step.counts.received_frames
        for step in online
        if step.phase not in ("agreement", "store")
    }
    first = payload.pop(0)
    assert first + payload[1] == rows[0].online_bytes
    assert [payload[2], payload[3]] == [row.online_bytes for row in rows[1:]]
    linear = next(step.counts for step in offline if step.phase == "products")
    assert linear.sent_bytes + linear.received_bytes - 32 == sum(row.linear_bytes for row in rows)


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_widths_fit_a_budget(layers, inputs, share):
    """Most of the budget is used, and better than by the widest tables of one size in it."""
    data = {"fit": inputs[:60], "held": inputs[60:]}
    sizes = [plan_of(layers, table_bits=bits, **data).report for bits in (4, 12)]
    least, most = (report.offline_bytes for report in sizes)
    budget = round(least + share * (most - least))
    found = plan_of(layers, offline_bytes=budget, **data).report
    assert 0.8 * budget < found.offline_bytes <= budget
    assert sizes[0].error > 2 * found.error


def test_a_budget_that_is_too_small_is_refused(layers, inputs):
    with pytest.raises(ArgumentError, match="expected at least"):
        plan_of(layers, inputs[:20], held=inputs[20:30], offline_bytes=1000)
    with pytest.raises(ArgumentError, match="expected one of them"):
        plan_of(layers, inputs[:20], held=inputs[20:30], offline_bytes=1000, table_bits=8)
    with pytest.raises(ArgumentError, match="one for each layer"):
        plan_of(layers, inputs[:20], held=inputs[20:30], table_bits=[8])


def test_plans_survive_as_files(plan, inputs, tmp_path):
    plan.save(tmp_path / "model.plan")
    assert (tmp_path / "model.plan").stat().st_mode & 0o777 == 0o600
    found = Plan.load(tmp_path / "model.plan")
    assert found.report == plan.report
    assert found.public.to_bytes() == plan.public.to_bytes()
    dithers = plan.network.draw_dithers(5)
    encoded = plan.public.encode(inputs[:5])
    one, other = (own.network.simulate(encoded, dithers).outputs for own in (plan, found))
    assert np.array_equal(one, other)


def test_a_plan_replaces_a_file_that_others_can_read(plan, tmp_path):
    path = tmp_path / "model.plan"
    path.write_bytes(b"old")
    path.chmod(0o644)
    plan.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Plan.load(path).report == plan.report
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_leaves_the_old_plan(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # in part, for other processes too
    path = tmp_path / "model.plan"
    plan.save(path)
    data = path.read_bytes()
    found = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) // 2, found[1]))  # as a full disk
        with pytest.raises(FileError, match="the plan cannot be written"):
            plan.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, found)
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_are_no_plans(plan, tmp_path):
    path = tmp_path / "model.plan"
    plan.save(path)
    data = path.read_bytes()
    for bad in (b"", b"no plan", data[:-1], data.replace(b"nescio.mpc", b"nescio.xyz")):
        path.write_bytes(bad)
        with pytest.raises(FileError, match=r"expected a file of Plan\.save"):
            Plan.load(path)
    with pytest.raises(FileError, match="expected a file"):
        Plan.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("field", "value"),
    [("error", "0.1"), ("inputs", True), ("accuracy", [1]), ("notes", [1]), ("layers", 3)],
)
def test_reports_with_other_types(plan, field, value):
    found = {**json.loads(plan.report.to_json()), field: value}
    with pytest.raises(ArgumentError, match="a report: found"):
        Report.from_json(json.dumps(found))


def test_public_plans_survive_as_bytes(plan):
    data = plan.public.to_bytes()
    found = PublicPlan.from_bytes(data)
    assert found.network.digest == plan.public.network.digest
    assert found.to_bytes() == data
    whole = json.loads(data)
    for bad in (
        b"",
        b"[]",
        json.dumps({**whole, "version": 1}).encode(),
        json.dumps({**whole, "input_scale": 0.0}).encode(),
        json.dumps({**whole, "input_scale": float("nan")}).encode(),
        json.dumps({**whole, "output_scale": True}).encode(),
        json.dumps({**whole, "largest": -1.0}).encode(),
        json.dumps({**whole, "network": {}}).encode(),
        json.dumps({**whole, "inputs": [2, 8, 7]}).encode(),
        json.dumps({**whole, "inputs": [-2, -8, 8]}).encode(),
        json.dumps({**whole, "inputs": [1] * 17 + [128]}).encode(),
        json.dumps({**whole, "outputs": [5.0]}).encode(),
        json.dumps({**whole, "outputs": 5}).encode(),
        json.dumps({**whole, "outputs": []}).encode(),
        data[:-1],
    ):
        with pytest.raises(MalformedMessageError):
            PublicPlan.from_bytes(bad)


def test_a_private_model_is_the_model(plan, inputs, tmp_path):
    """Its outputs are those of the simulator, up to the roundings; larger inputs warn."""
    insecure_dealer(plan.network, tmp_path / "client", tmp_path / "server", 5, seed=1)

    def client(channel):
        with PrivateModel(channel, plan.public, tmp_path / "client", threads=1) as model:
            outputs = model(inputs[:4])
            large = np.zeros((1, 2, 8, 8))
            large[0, 1, 2, 3] = -100
            with pytest.warns(InputRangeWarning, match="1 numbers are larger"):
                model(large)
            return outputs, model.left

    def server(channel):
        with Server(channel, plan.network, tmp_path / "server", threads=1) as party:
            assert [party.serve() for _ in range(2)] == [4, 1]

    (outputs, left), _ = together(client, server)
    assert left == 0
    draws = np.stack([plan.simulate(inputs[:4]).outputs for _ in range(32)])
    assert (np.abs(outputs - draws.mean(0)) <= 8 * draws.std(0) + 1e-6).all()


def test_outputs_larger_than_those_of_the_calibration(plan, inputs, tmp_path, recwarn):
    """Values of hidden layers that wrap can give such outputs; the client is told."""
    insecure_dealer(plan.network, tmp_path / "client", tmp_path / "server", 2, seed=1)
    limit = plan.public.largest
    assert limit >= np.abs(plan.simulate(inputs).outputs).max() / 1.3
    small = dataclasses.replace(plan.public, largest=limit / 1e3)

    def client(channel):
        with PrivateModel(channel, plan.public, tmp_path / "client", threads=1) as model:
            model(inputs[:1])
            assert not recwarn.list
            model._public = small
            with pytest.warns(OutputRangeWarning, match="may have left the window"):
                model(inputs[1:2])

    def server(channel):
        with Server(channel, plan.network, tmp_path / "server", threads=1) as party:
            assert [party.serve() for _ in range(2)] == [1, 1]

    together(client, server)


@pytest.mark.parametrize("bad", [np.zeros((2, 8, 8)), np.zeros((1, 2, 8, 7)), np.float64(1)])
def test_inputs_of_another_shape(plan, bad):
    with pytest.raises(ArgumentError, match="expected"):
        plan.simulate(bad)


def test_inputs_that_are_not_finite(plan):
    with pytest.raises(ArgumentError, match="not finite"):
        plan.simulate(np.full((1, 2, 8, 8), np.nan))


def test_calibration_is_taken_from_batches():
    batches = [(np.ones((50, 3)), np.arange(50)), (np.zeros((50, 3)), np.arange(50))]
    data = _gathered(batches, (3,))
    assert (len(data.fit), len(data.held), len(data.labels)) == (75, 25, 25)
    assert len(_gathered(np.ones((2000, 3)), (3,)).fit) == 1024 - 256
    sorted_inputs = np.repeat(np.arange(40.0)[:, None], 3, axis=1)
    found = _gathered(sorted_inputs, (3,))
    assert found.held[:, 0].tolist() == [2, 6, 10, 14, 18, 22, 26, 30, 34, 38]  # from all of them
    assert sorted({*found.held[:, 0], *found.fit[:, 0]}) == [*range(40)]


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        ([], "found 0 inputs"),
        ([np.ones((1, 3))], "found 1 inputs"),
        ([np.ones((5, 4))], "found a batch of shape"),
        ([np.full((5, 3), np.inf)], "not finite"),
        ([(np.ones((5, 3)), np.ones(4))], r"labels of shape \(4,\) for 5 inputs"),
        ([(np.ones((5, 3)), np.ones((5, 3)))], r"labels of shape \(5, 3\) for 5 inputs"),
        ([(np.ones((5, 3)), np.ones(5)), np.ones((5, 3))], "labels with some batches"),
    ],
)
def test_calibration_without_data(batches, said):
    with pytest.raises(ArgumentError, match=said):
        _gathered(batches, (3,))
