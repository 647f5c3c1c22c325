"""Runs services on loopback ports, in threads of the test process."""

import asyncio
import contextlib
import socket
import ssl
import threading
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
import uvicorn

import nescio
from nescio.service import AsyncRemoteTable, Quotas, RemoteTable, create_app
from nescio.service._connection import ConnectionLimits
from nescio.service._responses import Budget
from nescio.service._serve import uvicorn_config

QUOTAS = Quotas(wrong_token_seconds=0.05)
VALUES = np.arange(3000, dtype="f4").reshape(1000, 3)


@contextlib.contextmanager
def running(app, certificate=None, loop="auto", **limits):
    """Runs an ASGI application; gives its URL, without a slash at the end."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    context = None
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*certificate)
    budget = getattr(getattr(app, "state", None), "budget", None) or Budget(512 << 20)
    config = uvicorn_config(app, budget, ConnectionLimits(**limits), context)
    config.timeout_graceful_shutdown = 1
    config.loop = loop
    server = uvicorn.Server(config)
    started = threading.Event()

    async def startup(sockets=None):
        await uvicorn.Server.startup(server, sockets)
        started.set()

    server.startup = startup
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    assert started.wait(20)
    scheme = "http" if context is None else "https"
    try:
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
        assert not thread.is_alive()


def make_app(
    party,
    values=VALUES,
    version="1",
    server=nescio.Server,
    quotas=None,
    token=None,
    generator="chacha20",
):
    table = nescio.Table(values, version=version, generator=generator)
    servers = {"words": server(table, threads=1, party=party)}
    return create_app(servers, party=party, quotas=quotas or QUOTAS, admin_token=token)


@contextlib.contextmanager
def running_pair(**options):
    with running(make_app(0, **options)) as first, running(make_app(1, **options)) as second:
        yield first, second


@pytest.fixture(scope="module")
def pair():
    """Two services with one table, `words`."""
    with running_pair() as urls:
        yield urls


@pytest.fixture(scope="module")
def url(pair):
    return pair[0]


@pytest.fixture
def client():
    table = nescio.Table(VALUES)
    return nescio.Client(table.params, table.tops)


def post(url, body, table="words", **options):
    return httpx.post(f"{url}/v1/tables/{table}/answer", content=body, **options)


def error_of(response):
    assert response.headers["content-type"] == "application/json"
    return response.json()["error"]


def raw_request(url, data, seconds=10):
    """Sends bytes on a socket; returns everything until the server closes it."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), seconds) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


class AsyncFromSync:
    """An AsyncRemoteTable with RemoteTable's interface, so that every test runs on both."""

    def __init__(self, *arguments, **options):
        self._loop = asyncio.new_event_loop()
        self._table = None
        try:
            self._table = self._run(self._open(*arguments, **options))
        finally:
            if self._table is None:
                self._loop.close()

    @staticmethod
    async def _open(*arguments, **options):
        return await AsyncRemoteTable(*arguments, **options).__aenter__()

    def _run(self, coroutine):
        return self._loop.run_until_complete(coroutine)

    @property
    def params(self):
        return self._table.params

    @property
    def client(self):
        return self._table.client

    def lookup(self, indices, **options):
        return self._run(self._table.lookup(indices, **options))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._run(self._table.close())
        self._loop.close()


@pytest.fixture(params=[RemoteTable, AsyncFromSync], ids=["sync", "async"])
def remote(request):
    return request.param


TOKENS = ["the token of party 0", "the token of party 1"]


@pytest.fixture
def changing():
    """Two services with admin tokens, and their tables."""
    tables = [nescio.Table(VALUES) for _ in range(2)]
    apps = [
        create_app(
            {"words": nescio.Server(t, party=p)}, party=p, quotas=QUOTAS, admin_token=TOKENS[p]
        )
        for p, t in enumerate(tables)
    ]
    with running(apps[0]) as first, running(apps[1]) as second:
        yield (first, second), tables
