"""Clients of busy, slow, broken or hostile servers."""

import asyncio
import contextlib
import socket
import threading
import time

import httpx
import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from nescio.errors import (
    MalformedMessageError,
    MismatchError,
    ServerRefusedError,
    ServerTimeoutError,
)
from service.conftest import VALUES, make_app, running

pytestmark = pytest.mark.load


class Flaky:
    """Replies with `response` to the first `failures` requests, then lets the application reply."""

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


def raw_server(answer):
    """A raw TCP server: calls `answer(connection)` for each connection, on a thread."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


def drip(connection):
    """Sends single bytes forever."""
    with contextlib.suppress(OSError), connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            connection.sendall(b" ")
            time.sleep(0.05)


def test_the_timeout_bounds_a_try_and_not_its_parts(pair, remote):
    listener, url = raw_server(drip)
    with listener:
        begun = time.monotonic()
        with pytest.raises(ServerTimeoutError):
            remote([url, pair[1]], "words", timeout=0.5, retries=0)
        assert time.monotonic() - begun < 3


def flood(headers):
    def answer(connection):
        with contextlib.suppress(OSError), connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n")
            while True:
                connection.sendall(bytes(1 << 20))

    return answer


@pytest.mark.parametrize("headers", [b"", b"Content-Encoding: gzip\r\n"])
def test_no_more_is_read_than_was_asked_for(pair, remote, headers):
    listener, url = raw_server(flood(headers))
    with listener, pytest.raises(MalformedMessageError, match="more than|content encoding"):
        remote([url, pair[1]], "words")


def test_what_a_stranger_says_is_shown_short_and_plain(pair, remote):
    def answer(connection):
        with contextlib.suppress(OSError), connection:
            connection.recv(4096)
            text = b"\x1b[31m" + b"x" * 5000
            head = f"HTTP/1.1 400 Bad\r\nContent-Length: {len(text)}\r\n\r\n"
            connection.sendall(head.encode() + text)

    listener, url = raw_server(answer)
    with listener, pytest.raises(ServerRefusedError) as caught:
        remote([url, pair[1]], "words")
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


def test_proxies_of_the_environment_see_nothing(pair, remote, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with remote(pair, "words") as table:
        assert np.array_equal(table.lookup([5]), VALUES[[5]])


@pytest.mark.parametrize(
    "description", ["<html>", "[]", "{}", '{"party": 0, "params": {}, "limits": {"max_keys": 1}}']
)
def test_a_server_that_describes_no_table(pair, remote, description):
    async def describe(_):
        return PlainTextResponse(description)

    stranger = Starlette(routes=[Route("/v1/tables/words", describe)])
    with running(stranger) as url, pytest.raises(MalformedMessageError):
        remote([url, pair[1]], "words")


def test_a_server_that_names_a_table_wrongly(pair, remote):
    described = httpx.get(f"{pair[0]}/v1/tables/words").json()
    described["id"] = "0" * 32

    async def describe(_):
        return JSONResponse(described)

    stranger = Starlette(routes=[Route("/v1/tables/words", describe)])
    with running(stranger) as url, pytest.raises(MalformedMessageError, match="with the id '0000"):
        remote([url, pair[1]], "words")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"party": True}, "the party of this server: found True, expected 0 to 1"),
        ({"party": 2}, "the party of this server: found 2, expected 0 to 1"),
        ({"limits": {"max_keys": 0}}, "the maximum keys per request: found 0, expected 1 to"),
        ({"limits": {"max_keys": True}}, "the maximum keys per request: found True"),
    ],
)
def test_a_server_that_describes_itself_with_invalid_numbers(pair, remote, change, message):
    described = {**httpx.get(f"{pair[1]}/v1/tables/words").json(), **change}

    async def describe(_):
        return JSONResponse(described)

    stranger = Starlette(routes=[Route("/v1/tables/words", describe)])
    with running(stranger) as url, pytest.raises(MalformedMessageError, match=message):
        remote([url, pair[0]], "words")
