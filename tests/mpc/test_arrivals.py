"""Connections that send no request: they end, and keep no client of a PlanServer out."""

import socket
import threading
import time

import pytest

from mpc.plans import near
from mpc.services import INPUTS, PLAN, serving
from nescio.errors import ArgumentError, PeerRefusedError
from nescio.mpc import RemotePlan, ServiceLimits
from nescio.mpc._service import _arrivals
from nescio.net import Channel


@pytest.fixture
def silent():
    """Makes connections to a server that send nothing."""
    made = []

    def connect(service, count):
        address = "127.0.0.1", service.listener.port
        made.extend(socket.create_connection(address, 10) for _ in range(count))
        return made[-count:]

    yield connect
    for one in made:
        one.close()


def closed(connection):
    """Tests if the server has closed a connection."""
    connection.settimeout(0.3)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def tls_client(service, files):
    """Returns a client with a certificate."""
    cert, key = files
    tls = {"tls_ca": cert, "tls_cert": cert, "tls_key": key}
    port = service.listener.port
    return RemotePlan(
        PLAN.public, lambda: Channel.connect("127.0.0.1", port, timeout=10, **tls), threads=1
    )


def test_connections_without_a_certificate_keep_nobody_out(tmp_path, certificate, silent):
    cert, key = certificate
    tls = {"tls_cert": cert, "tls_key": key, "tls_ca": cert}
    limits = ServiceLimits(clients=1)
    with serving(tmp_path / "stores", timeout=60, limits=limits, **tls) as service:
        silent(service, 24)
        remote = tls_client(service, certificate)
        remote.prepare(tmp_path / "store", 1)
        more = silent(service, 100)
        with remote.open(tmp_path / "store") as model:
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])
        assert closed(more[0])
        assert not closed(more[-1])
    assert all(closed(one) for one in more)


def test_a_connection_has_a_time_for_its_request(tmp_path, monkeypatch, silent):
    monkeypatch.setattr(_arrivals, "FIRST_SECONDS", 0.5)
    with serving(tmp_path / "stores", timeout=60) as service:
        (one,) = silent(service, 1)
        one.sendall(b"SR")
        one.settimeout(10)
        assert one.recv(1) == b""
        (served,) = service.wait_for(1)
        assert served.problem == "no request arrived, and its 0.5 s were over"
        remote = service.remote()  # a client keeps its connection for longer
        remote.prepare(tmp_path / "store", 2)
        with remote.open(tmp_path / "store") as model:
            model(INPUTS[:1])
            time.sleep(1)
            assert near(PLAN, model(INPUTS[:1]), INPUTS[:1])
        assert [one.what for one in service.wait_for(3)] == ["-", "prepare", "infer"]


def test_the_connections_of_an_address_take_the_place_of_its_own(tmp_path, silent, monkeypatch):
    monkeypatch.setattr(_arrivals, "MAX_OF_ADDRESS", 2)
    with serving(tmp_path / "stores") as service:
        connections = silent(service, 3)
        assert [closed(one) for one in connections] == [True, False, False]
        (served,) = service.wait_for(1)
        assert "newer connections of its address" in served.problem


def test_the_oldest_of_all_connections_is_closed(tmp_path, silent, monkeypatch):
    monkeypatch.setattr(_arrivals, "MAX_ARRIVALS", 2)
    with serving(tmp_path / "stores") as service:
        connections = silent(service, 3)
        assert [closed(one) for one in connections] == [True, False, False]


def test_a_network_of_ipv6_is_one_address():
    hosts = "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::ffff", "2001:db8:0:1::1%eth0"
    found = [_arrivals._network(host) for host in hosts]
    assert len(set(found)) == 4
    assert found[2] == found[3] == "2001:db8::/64"


def test_an_address_with_too_many_clients(tmp_path):
    with pytest.raises(ArgumentError, match="max_clients_per_address"):
        ServiceLimits(clients_per_address=-1)
    limits = ServiceLimits(clients_per_address=1)
    with serving(tmp_path / "stores", limits=limits) as service:
        remote = service.remote()
        remote.prepare(tmp_path / "store", 2)
        service.wait_for(1)
        with remote.open(tmp_path / "store") as model:
            model(INPUTS[:1])
            with pytest.raises(PeerRefusedError, match="your address has 1 clients"):
                remote.prepare(tmp_path / "other", 1)


def test_a_flood_of_connections_ends_with_the_server(tmp_path, silent):
    """And leaves no thread behind."""
    before = threading.active_count()
    with serving(tmp_path / "stores") as service:
        silent(service, 300)
        service.remote().prepare(tmp_path / "store", 1)
    assert threading.active_count() <= before + 1
