"""A client's stores: replacing those that are used up, halves at the server, other processes."""

import pytest

from mpc.plans import near
from mpc.services import INPUTS, PLAN, serving, stores
from nescio.errors import FileError, PeerRefusedError, ResourceError
from nescio.mpc import ServiceLimits, insecure_dealer
from nescio.mpc._store import Store


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "stores"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "client.store"


def use_up(path):
    with Store(path) as own:
        own.use(own.contents.count - 1)


def test_a_store_that_is_used_up_is_replaced(folder, store):
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 1)
        with remote.open(store) as model:
            model(INPUTS[:1])
        remote.prepare(store, 2)
        with remote.open(store) as model:
            assert model.left == 2
            assert near(PLAN, model(INPUTS[:2]), INPUTS[:2])
    assert sorted(store.parent.iterdir()) == [store, folder]


def test_a_store_is_replaced_by_a_complete_one_alone(folder, store):
    with serving(folder, limits=ServiceLimits(prepared=1)) as service:
        remote = service.remote()
        remote.prepare(store, 1)
        use_up(store)
        old = store.read_bytes()
        with pytest.raises(PeerRefusedError, match="at most 1"):
            remote.prepare(store, 2)
        assert store.read_bytes() == old
    assert sorted(store.parent.iterdir()) == [store, folder]


@pytest.mark.parametrize(("name", "advised"), [("c", "c.3"), ("c.2", "c.3"), ("x.2", "x.2.2")])
def test_a_store_with_inferences_left_is_kept(folder, tmp_path, name, advised):
    with serving(folder) as service:
        remote = service.remote()
        for one in {"c", "c.2", name}:
            remote.prepare(tmp_path / one, 2)
        with pytest.raises(FileError, match="2 prepared inferences are left in it") as error:
            remote.prepare(tmp_path / name, 1)
        assert f"prepare more in {tmp_path / advised}, which" in str(error.value)
        remote.prepare(tmp_path / advised, 3)
        first = tmp_path / name.removesuffix(".2") if "c" in name else tmp_path / name
        with remote.open(first) as model:
            assert model.left == (7 if "c" in name else 5)


def test_a_store_of_a_server_is_kept(folder, store, tmp_path):
    insecure_dealer(PLAN.network, tmp_path / "client", store, 1, seed=1)
    use_up(store)
    with serving(folder) as service, pytest.raises(FileError, match="a server's store"):
        service.remote().prepare(store, 1)


def test_a_store_that_was_used_further_meanwhile_is_kept(folder, store):
    """Another process has given the name to a new store when this one is complete."""
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 1)
        use_up(store)

        def other(done):
            store.unlink()
            service.remote().prepare(store, 4)

        with pytest.raises(FileError, match="4 prepared inferences are left"):
            remote.prepare(store, 1, progress=other)
        with remote.open(store) as model:
            assert model.left == 4


def test_what_a_crash_left_at_the_server_is_removed(folder, store):
    """The client was broken off in its last inference: the server has not used that one."""
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 1)
        (old,) = stores(folder)
        use_up(store)
        remote.prepare(store, 1)
        service.wait_for(3)
        (new,) = stores(folder)
        assert new != old
        use_up(store)
        remote.prepare(store.with_name("client.store.2"), 2)
        with remote.open(store) as model:
            model(INPUTS[:1])
        service.wait_for(6)
        assert len(stores(folder)) == 1
        assert new not in stores(folder)
    assert not store.exists()


def test_a_store_that_another_process_uses_up(folder, store):
    second, third = (store.with_name(f"{store.name}.{number}") for number in (2, 3))
    with serving(folder) as service:
        remote = service.remote()
        for path in (store, second, third):
            remote.prepare(path, 1)
        with remote.open(store) as model:
            model(INPUTS[:1])
            second.unlink()
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])
            with pytest.raises(ResourceError, match="were used"):
                model(INPUTS[:1])


def test_a_store_that_another_process_uses(folder, store):
    second, third = (store.with_name(f"{store.name}.{number}") for number in (2, 3))
    with serving(folder) as service:
        remote = service.remote()
        for path in (store, second, third):
            remote.prepare(path, 1)
        with remote.open(store) as model:
            model(INPUTS[:1])
            with Store(second):
                assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])
                with pytest.raises(FileError, match="in use"):
                    model(INPUTS[:1])
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])


def test_a_store_that_was_replaced_while_it_was_open_is_not_removed(folder, store):
    second = store.with_name(f"{store.name}.2")
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 1)
        remote.prepare(second, 1)
        use_up(store)
        with remote.open(store) as model:
            remote.prepare(store, 5)
            model(INPUTS[:1])
        with Store(store) as own:
            assert own.left == 5


def test_outputs_before_an_error_are_given(folder, store):
    found = []
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 2)
        with remote.open(store) as model:
            answers = model.each(INPUTS[:5])
            found.extend(next(answers))
            with pytest.raises(ResourceError):
                next(answers)
    assert near(PLAN, found, INPUTS[:2])


def test_a_store_without_its_other_half_does_not_stop_the_next(folder, store):
    """The server's half is lost; the client goes on with the next store, also in a new process."""
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 2)
        for path in folder.glob("*.store"):
            path.unlink()
        with remote.open(store) as model, pytest.raises(PeerRefusedError, match="has no store"):
            model(INPUTS[:1])
        remote.prepare(store.with_name(f"{store.name}.2"), 2)
        for number in range(2):
            with remote.open(store) as model:
                own = INPUTS[number : number + 1]
                assert near(PLAN, model(own), own)


def test_what_the_server_has_used_is_used_on_the_clients_disk(folder, store):
    """Otherwise the client would try the store for ever."""
    with serving(folder) as service:
        remote = service.remote()
        remote.prepare(store, 2)
        (other,) = folder.glob("*.store")
        use_up(other)
        with remote.open(store) as model, pytest.raises((ResourceError, PeerRefusedError)):
            model(INPUTS[:1])
        with Store(store) as found:
            assert found.left == 0
        remote.prepare(store, 1)  # replaces it
        with remote.open(store) as model:
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])
