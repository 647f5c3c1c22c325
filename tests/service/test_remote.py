"""Lookups over the network, and everything that can go wrong on the way."""

import asyncio
import contextlib
import ssl
import time

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from nescio.errors import (
    ArgumentError,
    IndexRangeError,
    MalformedMessageError,
    MismatchError,
    ServerRefusedError,
    ServerTimeoutError,
    ServerUnreachableError,
)
from nescio.service import AsyncRemoteTable, Limits, RemoteTable
from service.conftest import VALUES, make_app, running, running_pair


class AsyncFromSync:
    """An AsyncRemoteTable behind RemoteTable's interface, so that every test runs on both."""

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

    def lookup(self, indices):
        return self._run(self._table.lookup(indices))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._run(self._table.close())
        self._loop.close()


@pytest.fixture(params=[RemoteTable, AsyncFromSync], ids=["sync", "async"])
def remote(request):
    return request.param


@pytest.mark.parametrize(
    "indices", [17, [17, 42], [], [[0, 999], [5, 5]], np.arange(1000, dtype="u2")]
)
def test_a_lookup_is_what_the_plain_table_gives(pair, remote, indices):
    with remote(pair, "words") as table:
        found = table.lookup(indices)
    expected = VALUES[np.asarray(indices, np.int64)]
    assert found.shape == expected.shape
    assert np.array_equal(found, expected)


def test_the_servers_may_be_named_in_either_order(pair, remote):
    with remote(pair[::-1], "words") as table:
        assert np.array_equal(table.lookup([7]), VALUES[[7]])


def test_more_rows_than_a_request_may_carry(remote):
    with running_pair(limits=Limits(max_keys=7)) as urls, remote(urls, "words") as table:
        indices = np.arange(20)
        assert np.array_equal(table.lookup(indices), VALUES[indices])


def test_an_index_out_of_range(pair, remote):
    with remote(pair, "words") as table, pytest.raises(IndexRangeError, match="0 to 999"):
        table.lookup([1000])


@pytest.mark.parametrize("servers", [["http://a"], ["http://a", "http://a/"], ["a", "b"], []])
def test_servers_that_cannot_be(remote, servers):
    with pytest.raises(ArgumentError, match="two different servers|named like https"):
        remote(servers, "words")


def test_a_wrong_port(pair, remote):
    with pytest.raises(ServerUnreachableError, match="is the server running") as caught:
        remote([pair[0], "http://127.0.0.1:9"], "words", retries=1)
    assert caught.value.url.startswith("http://127.0.0.1:9/")


def test_a_server_that_dies_between_two_answers(remote):
    with running(make_app(0)) as first, contextlib.ExitStack() as stack:
        second = stack.enter_context(running(make_app(1)))
        with remote([first, second], "words", retries=1) as table:
            assert np.array_equal(table.lookup([7]), VALUES[[7]])
            stack.close()
            with pytest.raises(ServerUnreachableError) as caught:
                table.lookup([8])
            assert caught.value.url.startswith(second)


def test_an_unknown_table(pair, remote):
    with pytest.raises(ServerRefusedError, match="there is no table 'wrods'") as caught:
        remote(pair, "wrods")
    assert (caught.value.status, caught.value.code) == (404, "unknown_table")


def test_servers_with_different_versions(remote):
    with (
        running(make_app(0, version="old")) as first,
        running(make_app(1, version="new")) as second,
        pytest.raises(MismatchError, match="version 'old'.*version 'new'"),
    ):
        remote([first, second], "words")


def test_servers_with_different_content(remote):
    with (
        running(make_app(0)) as first,
        running(make_app(1, values=VALUES + 1)) as second,
        pytest.raises(MismatchError, match="hold different tables"),
    ):
        remote([first, second], "words")


def test_two_servers_of_one_party(remote):
    with (
        running(make_app(0)) as first,
        running(make_app(0)) as second,
        pytest.raises(MismatchError, match="both say they are party 0"),
    ):
        remote([first, second], "words")


def test_a_table_that_changes_under_a_client(remote):
    apps = [make_app(p) for p in (0, 1)]
    newer = make_app(1, version="2")
    switch = Switch(apps[1])
    with running(apps[0]) as first, running(switch) as second:
        with remote([first, second], "words") as table:
            switch.app = newer
            with pytest.raises(ServerRefusedError, match="another table or version") as caught:
                table.lookup([5])
            assert caught.value.status == 409


class Switch:
    """An application that can become another one while it runs; both are started."""

    def __init__(self, app):
        self.app = app
        self._first = app

    async def __call__(self, scope, receive, send):
        await (self._first if scope["type"] == "lifespan" else self.app)(scope, receive, send)


class Flaky:
    """Answers `failures` requests with `response` before it lets the application answer."""

    def __init__(self, app, response, failures):
        self._app, self._response, self.failures = app, response, failures

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["method"] == "POST" and self.failures:
            self.failures -= 1
            await self._response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def test_a_server_that_is_busy_is_tried_again(remote):
    flaky = Flaky(make_app(0), Response(status_code=503), failures=2)
    with running(flaky) as first, running(make_app(1)) as second:
        with remote([first, second], "words") as table:
            assert np.array_equal(table.lookup([5]), VALUES[[5]])
        assert flaky.failures == 0


def test_a_server_that_stays_busy_is_given_up(remote):
    flaky = Flaky(make_app(0), Response(status_code=503), failures=99)
    with running(flaky) as first, running(make_app(1)) as second:
        with (
            remote([first, second], "words", retries=1) as table,
            pytest.raises(ServerRefusedError, match="status 503"),
        ):
            table.lookup([5])
        assert flaky.failures == 97


def test_a_refusal_is_not_tried_again(remote):
    flaky = Flaky(make_app(0), PlainTextResponse("go away", 403), failures=5)
    with running(flaky) as first, running(make_app(1)) as second:
        with (
            remote([first, second], "words") as table,
            pytest.raises(ServerRefusedError, match="403.*go away"),
        ):
            table.lookup([5])
        assert flaky.failures == 4


def test_a_server_that_does_not_answer_in_time(remote):
    async def sleep(scope, receive, send):
        await asyncio.sleep(3)

    flaky = Flaky(make_app(0), sleep, failures=99)
    with running(flaky) as first, running(make_app(1)) as second:
        with remote([first, second], "words", timeout=0.2, retries=0) as table:
            begun = time.monotonic()
            with pytest.raises(ServerTimeoutError, match="did not answer in time") as caught:
                table.lookup([5])
            assert caught.value.url.startswith(first)
            assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"NA" + bytes(30), b"NA\x01\x00\x01\x00\x00\x00" + b"\xff" * 24]
)
def test_a_server_that_answers_garbage(remote, answer):
    flaky = Flaky(make_app(0), Response(answer), failures=99)
    with running(flaky) as first, running(make_app(1)) as second:
        with (
            remote([first, second], "words") as table,
            pytest.raises((MalformedMessageError, MismatchError)),
        ):
            table.lookup([5])


@pytest.mark.parametrize(
    "description", ["<html>", "[]", "{}", '{"party": 0, "params": {}, "limits": {"max_keys": 1}}']
)
def test_a_server_that_describes_no_table(pair, remote, description):
    async def describe(_):
        return PlainTextResponse(description)

    stranger = Starlette(routes=[Route("/v1/tables/words", describe)])
    with running(stranger) as url, pytest.raises(MalformedMessageError):
        remote([url, pair[1]], "words")


def test_tls(remote, certificate):
    cert, key = map(str, certificate)
    tls = {"ssl_certfile": cert, "ssl_keyfile": key}
    with running(make_app(0), **tls) as first, running(make_app(1), **tls) as second:
        with remote([first, second], "words", verify=ssl.create_default_context(cafile=cert)) as t:
            assert np.array_equal(t.lookup([5]), VALUES[[5]])
        with pytest.raises(ServerUnreachableError, match="certificate"):
            remote([first, second], "words", retries=0)
