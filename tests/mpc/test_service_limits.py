"""The limits of a server of private inference, and the ends of servers and clients."""

import socket
import threading
import time

import pytest

from mpc.plans import near
from mpc.services import INPUTS, PLAN, serving, stores
from nescio.errors import (
    ArgumentError,
    ChannelError,
    FileError,
    PeerRefusedError,
)
from nescio.mpc import (
    PlanServer,
    ServiceLimits,
)
from nescio.mpc._service import _folder
from nescio.mpc._service._request import Request, plan_digest
from nescio.mpc._store import Store
from nescio.net import Channel


def test_a_preparation_that_is_too_large(folder, store):
    with serving(folder, limits=ServiceLimits(prepared=2)) as service:
        with pytest.raises(PeerRefusedError, match="found 3 inferences .* expected at most 2"):
            service.remote().prepare(store, 3)
        service.remote().prepare(store, 2)


def test_a_folder_that_is_full(folder, store, tmp_path):
    with serving(folder) as service:
        service.remote().prepare(store, 2)
    size = sum((folder / name).stat().st_size for name in stores(folder))
    with serving(folder, limits=ServiceLimits(bytes=2 * size - 1)) as service:
        for _ in range(2):
            with pytest.raises(PeerRefusedError, match="prepare fewer inferences"):
                service.remote().prepare(tmp_path / "more.store", 2)
        with service.remote().open(store) as model:
            model(INPUTS[:2])
        service.wait_for(3)
        service.remote().prepare(tmp_path / "more.store", 2)


def test_too_many_clients(folder, store):
    with serving(folder, limits=ServiceLimits(clients=1)) as service:
        service.remote().prepare(store, 2)
        service.wait_for(1)
        with service.remote().open(store) as model:
            model(INPUTS[:1])
            with pytest.raises(PeerRefusedError, match="has 1 clients, its most"):
                service.remote().prepare(store.with_name("other.store"), 1)
            model(INPUTS[:1])
        service.wait_for(3)
        service.remote().prepare(store.with_name("other.store"), 1)


def test_a_store_that_another_connection_uses(folder, store, monkeypatch):
    monkeypatch.setattr(_folder, "_BUSY_SECONDS", 0.1)
    with serving(folder) as service, service.connect() as silent:
        service.remote().prepare(store, 2)
        with Store(store) as own:
            session = own.contents.session
        Request(plan_digest(PLAN.public), "infer", session=session).send(silent)
        time.sleep(0.3)
        with service.remote().open(store) as model:
            with pytest.raises(PeerRefusedError, match="another connection uses"):
                model(INPUTS[:1])
            silent.close()
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])


@pytest.mark.parametrize(
    "limits",
    [{"clients": 0}, {"prepared": True}, {"bytes": 1.5}, {"batch": -1}, {"weight_bytes": -1}],
)
def test_limits_that_are_none(limits):
    with pytest.raises(ArgumentError, match="max_"):
        ServiceLimits(**limits)


def test_a_client_that_is_silent_is_left_and_delays_nobody(folder, store):
    with serving(folder, timeout=1.5) as service, service.connect() as silent:
        service.remote().prepare(store, 1)
        assert not silent.closed
        with service.remote().open(store) as model:
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])
        first = [one for one in service.wait_for(3) if one.client == 1]
        assert "no progress" in first[0].problem


def test_a_handshake_that_does_not_end_delays_nobody(folder, certificate):
    cert, key = certificate
    with Channel.listener(timeout=20, tls_cert=cert, tls_key=key) as listener:
        with PlanServer(PLAN, listener, folder) as server:
            thread = threading.Thread(target=server.run)
            thread.start()
            address = "127.0.0.1", listener.port
            with socket.create_connection(address):
                other = Channel.connect(*address, timeout=10, tls_ca=cert)
                other.send("SRVC", b"{}")
                with pytest.raises(PeerRefusedError, match="protocol of the service"):
                    other.receive("DONE", 0)
                server.stop()
                thread.join(10)
                assert not thread.is_alive()


# ---- ends ----------------------------------------------------------------------------------------


def test_a_server_that_stops_leaves_no_half_store(folder, store):
    """The client has none either: its store gets its name after the server's."""
    begun = threading.Event()
    with serving(folder) as service:

        def stop(number):
            begun.set()
            service.server.stop()

        with pytest.raises(ChannelError):
            service.remote().prepare(store, 1000, progress=stop)
    assert begun.is_set()
    assert stores(folder) == []
    assert list(store.parent.iterdir()) == [folder]
    assert service.served[0].problem is not None


def test_what_a_stopped_server_left_is_named_or_removed(folder, store):
    with serving(folder) as service:
        service.remote().prepare(store, 1)
    (name,) = stores(folder)
    (folder / name).rename(folder / f"{16 * 'a'}.new")
    (folder / f"{16 * 'b'}.new.99.part").write_bytes(b"half")
    others = [f"{16 * 'c'}.new", "movie.part", "holidays.new"]
    for other in others:
        (folder / other).write_bytes(b"no store")
    with serving(folder) as service:
        assert stores(folder) == sorted([*others, name])
        with service.remote().open(store) as model:
            model(INPUTS[:1])


def test_a_folder_has_one_server(folder):
    with serving(folder), pytest.raises(FileError, match="in use by another server"):
        with serving(folder):
            pass
    with serving(folder):
        pass


def test_a_client_that_leaves_is_no_problem(folder, store):
    with serving(folder) as service:
        with service.connect():
            pass
        remote = service.remote()
        remote.prepare(store, 2)
        with remote.open(store) as model:
            model(INPUTS[:1])
        ended = {one.client: one for one in service.wait_for(3)}
        assert ended[3].problem is None
        with remote.open(store) as model:
            model(INPUTS[:1])
