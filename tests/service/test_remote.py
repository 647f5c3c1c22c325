"""Lookups over the network, and everything that can go wrong on the way."""

import asyncio
import contextlib
import os
import socket
import ssl
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import nescio
from nescio.errors import (
    ArgumentError,
    IndexRangeError,
    MalformedMessageError,
    MismatchError,
    ServerRefusedError,
    ServerTimeoutError,
    ServerUnreachableError,
)
from nescio.service import AsyncRemoteTable, Limits, RemoteTable, TableAdmin, create_app
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
        remote([first, second], "words", timeout=1)


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
        pytest.raises(ArgumentError, match="both say they are party 0"),
    ):
        remote([first, second], "words")


def test_a_table_that_changes_under_a_client(remote):
    tables = [nescio.Table(VALUES) for _ in range(2)]
    apps = [
        create_app({"words": nescio.Server(table, party=p)}, party=p)
        for p, table in enumerate(tables)
    ]
    with (
        running(apps[0]) as first,
        running(apps[1]) as second,
        remote([first, second], "words") as table,
    ):
        before = table.params
        tables[0].update([5], VALUES[[6]])
        later = threading.Timer(1.5, lambda: tables[1].update([5], VALUES[[6]]))
        later.start()  # in between the servers hold two versions
        assert np.array_equal(table.lookup([5]), VALUES[[6]])
        later.join()
        assert table.params != before
        assert table.params == tables[0].params


def test_a_table_that_changes_at_one_server_only(remote):
    apps = [make_app(p) for p in (0, 1)]
    switch = Switch(apps[1])
    with running(apps[0]) as first, running(switch) as second:
        with remote([first, second], "words", timeout=1) as table:
            switch.app = make_app(1, version="2")
            with pytest.raises(MismatchError, match="version '1'.*version '2'"):
                table.lookup([5])


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


def raw_server(answer):
    """A server of bytes: calls `answer(connection)` for each connection, on a thread."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


def drip(connection):
    """Sends one byte after the other, for ever."""
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
    with listener, pytest.raises(MalformedMessageError, match="more than|in the encoding"):
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


@pytest.mark.parametrize("dtype", [">f4", "<f4", "S3"])
def test_rows_keep_their_type_to_the_byte(remote, dtype):
    values = np.arange(20).astype(dtype)
    with (
        running(make_app(0, values)) as first,
        running(make_app(1, values)) as second,
        remote([first, second], "words") as table,
    ):
        found = table.lookup([3, 19])
        assert found.dtype.str == np.dtype(dtype).str
        assert found.tolist() == values[[3, 19]].tolist()


@pytest.mark.parametrize(
    "server",
    [
        "ftp://a",
        "http://",
        "http://[::1",
        "http://xn--zzzzzz.com",
        f"http://{'a' * 80}.b",
        "http://a?x=1",
        "http://a#f",
        "a",
        "",
        "http://a:99999",
    ],
)
def test_addresses_that_are_none(pair, remote, server):
    with pytest.raises((ArgumentError, ServerUnreachableError)):
        remote([server, pair[1]], "words", retries=0)


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"timeout": float("nan")}, {"timeout": 1e10}, {"retries": -1}]
)
def test_options_that_make_no_sense(pair, remote, options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        remote(pair, "words", **options)


def test_a_lookup_after_the_end(pair):
    table = RemoteTable(pair, "words")
    table.close()
    table.close()
    with pytest.raises(ArgumentError, match="the table is closed"):
        table.lookup([5])


def test_a_lookup_in_a_forked_child(pair):
    with RemoteTable(pair, "words") as table:
        table.lookup([5])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the test process has threads; the child uses none
            child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(table.lookup([6]), VALUES[[6]]) else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert np.array_equal(table.lookup([7]), VALUES[[7]])


def test_raw_exchanges_go_on_after_a_change(changing):
    urls, tables = changing
    with RemoteTable(urls, "words") as table:
        for row in (5, 6):
            client = nescio.Client(table.params)
            query = client.query([5])
            answers = [reply.body for reply in table.exchange(query)]
            assert np.array_equal(client.decode(query, *answers), tables[0][[5]])
            for own in tables:
                own.update([5], VALUES[[row]])
            with pytest.raises(MismatchError):
                table.exchange(query)


def test_closing_while_others_look_up(pair):
    table = RemoteTable(pair, "words")
    ends = []

    def look_up_for_ever():
        try:
            while True:
                table.lookup([5])
        except Exception as error:
            ends.append(error)

    threads = [threading.Thread(target=look_up_for_ever) for _ in range(6)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    table.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert {type(error) for error in ends} == {ArgumentError}
    assert all("the table" in str(error) and "closed" in str(error) for error in ends)


@pytest.mark.parametrize(
    "server",
    [
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://127.0.0.1?",
        "http://127.0.0.1#",
        "http://me:sekret@127.0.0.1",
    ],
)
def test_addresses_that_name_no_server(pair, remote, server):
    with pytest.raises(ArgumentError, match="named like https") as caught:
        remote([pair[0], server], "words")
    assert "sekret" not in str(caught.value)


def test_lookups_from_several_threads(pair):
    with RemoteTable(pair, "words") as table, ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda i: table.lookup([i]), range(50)))
    assert np.array_equal(np.concatenate(rows), VALUES[:50])


TOKENS = ["the token of party 0", "the token of party 1"]


@pytest.fixture
def changing():
    """Two services whose tables an operator may change, and their tables."""
    tables = [nescio.Table(VALUES) for _ in range(2)]
    apps = [
        create_app({"words": nescio.Server(t, party=p)}, party=p, admin_token=TOKENS[p])
        for p, t in enumerate(tables)
    ]
    with running(apps[0]) as first, running(apps[1]) as second:
        yield (first, second), tables


def test_an_operator_changes_both_servers(changing):
    urls, _ = changing
    with TableAdmin(urls, "words", TOKENS) as admin, RemoteTable(urls, "words") as table:
        params = admin.update([5, 6], VALUES[[7, 8]])
        assert params.version == "2"
        assert np.array_equal(table.lookup([5, 6]), VALUES[[7, 8]])
        assert table.params == params
        admin.insert([0], VALUES[[9]])
        assert np.array_equal(table.lookup([0]), VALUES[[9]])
        assert admin.delete([0], version="done").version == "done"
        assert np.array_equal(table.lookup([0]), VALUES[[0]])


def test_a_change_that_broke_off_is_finished_by_making_it_again(changing):
    urls, tables = changing
    with TableAdmin(urls, "words", [TOKENS[0], "the wrong token for party 1"]) as admin:
        with pytest.raises(ServerRefusedError, match="not_admitted") as caught:
            admin.insert([5], VALUES[[6]])
    assert "make it again with version='2'" in caught.value.__notes__[0]
    with TableAdmin(urls, "words", TOKENS) as admin:
        for version in (None, "3"):  # nothing is changed unless both will be equal
            with pytest.raises(MismatchError, match="the servers differ"):
                admin.insert([5], VALUES[[6]], version=version)
        assert [len(table) for table in tables] == [1001, 1000]
        assert admin.insert([5], VALUES[[6]], version="2").version == "2"
        assert tables[0].params == tables[1].params
        with pytest.raises(ArgumentError, match="at version '2' already"):
            admin.insert([5], VALUES[[6]], version="2")


def test_of_two_operators_one_is_told_that_the_other_was_faster(changing):
    urls, tables = changing

    def insert(_):
        with TableAdmin(urls, "words", TOKENS) as admin:
            try:
                admin.insert([5], VALUES[[6]])
            except MismatchError:
                return 0
            return 1

    with ThreadPoolExecutor(4) as pool:
        made = sum(pool.map(insert, range(12)))
    assert made >= 1
    assert [len(table) for table in tables] == [1000 + made] * 2
    assert tables[0].params == tables[1].params


class Forgetful:
    """An application whose first answer to a change is lost on the way."""

    def __init__(self, app):
        self._app = app
        self.lost = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"].endswith("/rows") and not self.lost:
            self.lost += 1

            async def lose(_):
                pass

            await self._app(scope, receive, lose)
            await Response(status_code=503)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def test_a_change_whose_reply_was_lost_is_made_once():
    apps = [Forgetful(make_app(party, token=TOKENS[party])) for party in (0, 1)]
    with running(apps[0]) as first, running(apps[1]) as second:
        with TableAdmin((first, second), "words", TOKENS) as admin:
            assert admin.insert([5], VALUES[[6]]).version == "2"
        with RemoteTable((first, second), "words") as table:
            assert np.array_equal(table.lookup([5, 6]), VALUES[[6, 5]])
    assert [app.lost for app in apps] == [1, 1]


def test_changes_that_cannot_be_made_at_both(changing):
    urls, tables = changing
    with TableAdmin(urls, "words", TOKENS) as admin:
        with pytest.raises(IndexRangeError):
            admin.update([1000], VALUES[[0]])
        with pytest.raises(ArgumentError, match="expected"):
            admin.update([0], VALUES[[0]].astype("f8"))
        tables[0].update([5], VALUES[[6]])
        with pytest.raises(MismatchError, match="differ"):
            admin.update([7], VALUES[[6]], version="other")
        assert np.array_equal(tables[0][[7]], VALUES[[7]])
    with TableAdmin(urls, "words", TOKENS[::-1]) as admin:
        with pytest.raises((ServerRefusedError, MismatchError)):
            admin.update([5], VALUES[[6]])
    with pytest.raises(ArgumentError, match="two tokens"):
        TableAdmin(urls, "words", TOKENS[:1])


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
