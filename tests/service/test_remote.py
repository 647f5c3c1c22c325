"""Clients of two services, synchronous and asynchronous."""

import contextlib
import os
import ssl
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nescio
from nescio.errors import (
    ArgumentError,
    IndexRangeError,
    MismatchError,
    ServerRefusedError,
    ServerUnreachableError,
)
from nescio.service import Quotas, RemoteTable, create_app
from service.conftest import VALUES, make_app, running, running_pair


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
    with running_pair(quotas=Quotas(max_keys=7)) as urls, remote(urls, "words") as table:
        indices = np.arange(20)
        assert np.array_equal(table.lookup(indices), VALUES[indices])


def test_servers_that_chose_an_insecure_generator(remote):
    with running_pair(generator="insecure_siphash") as urls:
        with pytest.raises(ArgumentError, match="insecure_siphash, which claims no"):
            remote(urls, "words")
        with remote(urls, "words", insecure_generator=True) as table:
            assert np.array_equal(table.lookup([7]), VALUES[[7]])


def test_an_index_out_of_range(pair, remote):
    with remote(pair, "words") as table, pytest.raises(IndexRangeError, match="0 to 999"):
        table.lookup([1000])


@pytest.mark.parametrize("servers", [["http://a"], ["http://a", "http://a/"], ["a", "b"], []])
def test_invalid_servers(remote, servers):
    with pytest.raises(ArgumentError, match="two different servers|expected an address like https"):
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
        pytest.raises(ArgumentError, match="are both party 0"),
    ):
        remote([first, second], "words")


def test_a_table_that_changes_under_a_client(remote):
    tables = [nescio.Table(VALUES) for _ in range(2)]
    for own in tables:
        own.keep_versions(1)
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
        later.start()  # until then the servers have different versions
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
            assert table.params.version == "1"  # the last version that both had


class Switch:
    """An application that can be replaced by another one while it runs; both are started."""

    def __init__(self, app):
        self.app = app
        self._first = app

    async def __call__(self, scope, receive, send):
        await (self._first if scope["type"] == "lifespan" else self.app)(scope, receive, send)


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
def test_invalid_addresses(pair, remote, server):
    with pytest.raises((ArgumentError, ServerUnreachableError)):
        remote([server, pair[1]], "words", retries=0)


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"timeout": float("nan")}, {"timeout": 1e10}, {"retries": -1}]
)
def test_invalid_options(pair, remote, options):
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
def test_addresses_that_are_not_servers(pair, remote, server):
    with pytest.raises(ArgumentError, match="expected an address like https") as caught:
        remote([pair[0], server], "words")
    assert "sekret" not in str(caught.value)


def test_lookups_from_several_threads(pair):
    with RemoteTable(pair, "words") as table, ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda i: table.lookup([i]), range(50)))
    assert np.array_equal(np.concatenate(rows), VALUES[:50])


def test_tls(remote, certificate):
    cert, key = map(str, certificate)
    tls = {"certificate": (cert, key)}
    with running(make_app(0), **tls) as first, running(make_app(1), **tls) as second:
        with remote([first, second], "words", tls=ssl.create_default_context(cafile=cert)) as t:
            assert np.array_equal(t.lookup([5]), VALUES[[5]])
        with pytest.raises(ServerUnreachableError, match="certificate"):
            remote([first, second], "words", retries=0)
