"""A server of a plan and its clients in one process, over TCP: stores, refills."""

import dataclasses
import threading
import time

import numpy as np
import pytest

from mpc.plans import near, small_plan
from mpc.services import INPUTS, PLAN, serving, stores
from nescio.errors import (
    ArgumentError,
    FileError,
    PeerRefusedError,
    ResourceError,
)
from nescio.mpc import (
    PreparedWeights,
    RemotePlan,
    ServiceLimits,
    insecure_dealer,
)
from nescio.mpc._service import _server, _stores
from nescio.mpc._store import Store


def test_inferences_are_prepared_and_made(folder, store):
    done = []
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 3, progress=done.append)
        (name,) = stores(folder)
        with Store(store) as own:
            assert name == f"{own.contents.session}.store"
        for path in (store, folder / name):
            assert path.stat().st_mode & 0o777 == 0o600
        with remote.open(store) as model:
            assert model.left == 3
            assert near(PLAN, model(INPUTS[:2]), INPUTS[:2])
            assert model.left == 1
            assert {step.phase: step.counts.rounds for step in model.counts} == {
                "agreement": 1,
                "store": 0,
                "input": 0,
                "lookups": 1,
                "outputs": 1,
            }
        first, second = service.wait_for(2)
    assert done == [1, 2, 3]
    assert first[:3] == (1, "prepare", 3)
    assert second[:3] == (2, "infer", 2)
    assert first.problem is second.problem is None
    assert first.sent_bytes > 10_000 < first.received_bytes


def test_each_of_two_clients_has_stores_of_its_own(folder, tmp_path):
    wrong = []

    def client(number):
        try:
            remote, own = service.remote(), INPUTS[5 * number : 5 * number + 5]
            remote.prepare(tmp_path / f"{number}.store", 5)
            with remote.open(tmp_path / f"{number}.store") as model:
                assert near(PLAN, model(own), own)
        except BaseException as error:
            wrong.append(error)

    with serving(folder) as service:
        threads = [threading.Thread(target=client, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert wrong == []
        service.wait_for(4)
        assert stores(folder) == []  # used up


def test_clients_share_the_prepared_weights(folder, tmp_path, monkeypatch):
    """They are prepared once, for the first of two clients, and within the limit."""
    made = []

    def prepared(network, **options):
        made.append(options)
        time.sleep(0.2)
        return PreparedWeights(network, **options)

    monkeypatch.setattr(_server, "PreparedWeights", prepared)
    with serving(folder, limits=ServiceLimits(weight_bytes=5)) as service:
        clients = [
            threading.Thread(target=service.remote().prepare, args=(tmp_path / f"{number}", 2))
            for number in range(2)
        ]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join(60)
        assert made == [{"max_bytes": 5, "threads": 1}]
        for number in range(2):
            with service.remote().open(tmp_path / f"{number}") as model:
                assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])


def test_a_server_that_is_restarted_has_its_stores(folder, store):
    with serving(folder) as service:
        service.remote().prepare(store, 2)
    with serving(folder) as service:
        with service.remote().open(store) as model:
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])


def test_a_store_that_is_used_up(folder, store):
    with serving(folder) as service:
        service.remote().prepare(store, 1)
        with service.remote().open(store) as model:
            model(INPUTS[:1])
            with pytest.raises(ResourceError, match="were used; prepare more"):
                model(INPUTS[:1])
        service.wait_for(2)
        assert stores(folder) == []


@pytest.mark.parametrize("other", ["weights", "scale"])
def test_a_client_with_the_plan_of_another_model(folder, store, other):
    if other == "weights":
        plan = small_plan(size=4)[0]
    else:  # outputs would be wrong by a factor, and nobody would notice
        plan = dataclasses.replace(
            PLAN, quantized=dataclasses.replace(PLAN.quantized, output_scale=3.0)
        )
    with serving(folder) as service:
        with pytest.raises(PeerRefusedError, match="public file of another model"):
            service.remote(plan).prepare(store, 1)
        (served,) = service.wait_for(1)
    assert served.what == "-"
    assert not store.exists()
    assert stores(folder) == []


def test_a_store_of_another_server(folder, store, tmp_path):
    with serving(tmp_path / "others") as service:
        service.remote().prepare(store, 1)
    with serving(folder) as service:
        with service.remote().open(store) as model:
            with pytest.raises(PeerRefusedError, match="made with another server"):
                model(INPUTS[:1])
            assert model.left == 1


def test_a_model_that_is_trained_again(folder, store):
    """Other weights with the same shapes, tables and scales."""
    layers = PLAN.network.layers
    term = layers[1].terms[0]
    weights = np.negative(term.map.weights)
    changed = term._replace(map=dataclasses.replace(term.map, weights=weights))
    last = dataclasses.replace(layers[1], terms=(changed,))
    network = dataclasses.replace(PLAN.network, layers=(layers[0], last))
    quantized = dataclasses.replace(PLAN.quantized, network=network)
    with serving(folder) as service:
        service.remote().prepare(store, 1)
    with serving(folder, plan=dataclasses.replace(PLAN, quantized=quantized)) as service:
        with service.remote(PLAN).open(store) as model:
            with pytest.raises(PeerRefusedError, match="other weights of the model"):
                model(INPUTS[:1])


def test_a_store_of_another_plan(folder, store, tmp_path):
    other, _ = small_plan(size=4)
    insecure_dealer(other.network, store, tmp_path / "server", 1, seed=1)
    with serving(folder) as service:
        with pytest.raises(FileError, match="expected one of a client for"):
            service.remote().open(store)
        with pytest.raises(FileError, match="prepare inferences first"):
            service.remote().open(tmp_path / "none")


def test_files_that_are_in_the_way(folder, store):
    store.write_bytes(b"mine")
    with serving(folder) as service:
        with pytest.raises(FileError, match="exists"):
            service.remote().prepare(store, 1)
        with pytest.raises(ArgumentError, match="its folder does not exist"):
            service.remote().prepare(store / "no" / "such", 1)
    assert store.read_bytes() == b"mine"
    with pytest.raises(FileError, match="cannot be used"), serving(store):
        pass


def test_inputs_that_run_together(folder, tmp_path):
    """Two clients with batches of their own, in stores that end within a batch."""
    wrong = []

    def client(number):
        try:
            remote = RemotePlan(PLAN.public, service.connect, threads=1, batch=2 + number)
            path, own = tmp_path / f"{number}.store", INPUTS[7 * number : 7 * number + 7]
            for one in (path, path.with_name(f"{path.name}.2")):
                remote.prepare(one, 4)
            with remote.open(path) as model:
                assert near(PLAN, model(own), own)
                assert model.left == 1
                rounds = {step.phase: step.counts.rounds for step in model.counts}
                assert rounds["outputs"] == 4 - number  # 2, 2 and 2, 1; or 3, 1 and 3
        except BaseException as error:
            wrong.append(error)

    with serving(folder) as service:
        threads = [threading.Thread(target=client, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert wrong == []
        served = service.wait_for(8)
    assert sorted(one.inferences for one in served if one.what == "infer") == [3, 3, 4, 4]
    assert len(stores(folder)) == 2


def test_a_server_that_takes_one_input_at_a_time(folder, store):
    with serving(folder, limits=ServiceLimits(batch=1)) as service:
        service.remote().prepare(store, 3)
        with service.remote().open(store) as model:
            assert near(PLAN, model(INPUTS[:3]), INPUTS[:3])
            rounds = {step.phase: step.counts.rounds for step in model.counts}
            assert rounds["outputs"] == 3


def test_a_store_that_the_server_has_used_further(folder, store):
    """The client goes on with those that both have, and then with the next store."""
    with serving(folder) as service:
        service.remote().prepare(store, 3)
        (name,) = stores(folder)
        service.remote().prepare(store.with_name(f"{store.name}.2"), 2)
    with Store(folder / name) as theirs:
        theirs.use(1)
    with serving(folder) as service, service.remote().open(store) as model:
        assert near(PLAN, model(INPUTS[:3]), INPUTS[:3])
        assert model.left == 0


# ---- refilling -----------------------------------------------------------------------------------


def test_more_are_prepared_in_the_background(folder, store):
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 2)
        with remote.open(store, refill=2) as model:
            assert near(PLAN, model(INPUTS[:5]), INPUTS[:5])
        assert model.left == 1  # of 2 and 2 and 2
        (path,) = (path for path in store.parent.iterdir() if path != folder)  # others are used up
        with Store(path) as own:
            assert own.left == 1
        with remote.open(store) as model:
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])


def test_an_idle_connection_is_made_again(folder, store, monkeypatch):
    monkeypatch.setattr(_stores, "_IDLE_SECONDS", 0.2)
    with serving(folder, timeout=1.5) as service:
        remote = service.remote()
        remote.prepare(store, 2)
        with remote.open(store) as model:
            model(INPUTS[:1])
            service.wait_for(2)
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])


def test_an_exception_breaks_the_background_off(folder, store):
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 1)

        def broken():
            with remote.open(store, refill=1000) as model:
                model(INPUTS[:1])
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            broken()
        service.wait_for(3)
        assert stores(folder) == []
    assert sorted(path.name for path in store.parent.iterdir()) == ["client.store", "stores"]


def test_a_refill_that_is_refused(folder, store):
    """The client uses up its store, and then raises the server's refusal."""
    with serving(folder, limits=ServiceLimits(prepared=2)) as service:
        remote = service.remote()
        remote.prepare(store, 2)
        model = remote.open(store, refill=3)
        assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])
        time.sleep(0.5)
        assert near(PLAN, model(INPUTS[1:2]), INPUTS[1:2])
        with pytest.raises(PeerRefusedError, match="expected at most 2"), model:
            pass
