"""Real services on loopback ports, in threads of the test process."""

import contextlib
import socket
import threading

import numpy as np
import pytest
import uvicorn

import nescio
from nescio.service import Limits, create_app
from nescio.service.run import PatientProtocol

VALUES = np.arange(3000, dtype="f4").reshape(1000, 3)


@contextlib.contextmanager
def running(app, head_seconds=30, most_connections=1024, **options):
    """Runs an ASGI application; gives its address, without a slash at the end."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    protocol = type(
        "Protocol",
        (PatientProtocol,),
        {"head_seconds": head_seconds, "most_connections": most_connections},
    )
    config = uvicorn.Config(
        app, http=protocol, log_level="critical", timeout_graceful_shutdown=1, **options
    )
    server = uvicorn.Server(config)
    started = threading.Event()

    async def startup(sockets=None):
        await uvicorn.Server.startup(server, sockets)
        started.set()

    server.startup = startup
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    assert started.wait(20)
    scheme = "https" if config.is_ssl else "http"
    try:
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
        assert not thread.is_alive()


def make_app(party, values=VALUES, version="1", server=nescio.Server, limits=None, token=None):
    table = nescio.Table(values, version=version)
    servers = {"words": server(table, threads=1, party=party)}
    return create_app(servers, party=party, limits=limits or Limits(), admin_token=token)


@contextlib.contextmanager
def running_pair(**options):
    with running(make_app(0, **options)) as first, running(make_app(1, **options)) as second:
        yield first, second


@pytest.fixture(scope="module")
def pair():
    """Two services that hold one table, `words`."""
    with running_pair() as urls:
        yield urls


@pytest.fixture
def client():
    return nescio.Client(nescio.Table(VALUES).params)
