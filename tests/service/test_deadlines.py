"""Deadlines of lookups and connections, at servers that are slow or ask for a pause."""

import asyncio
import contextlib
import time

import numpy as np
import pytest

import nescio
from nescio.cli import main
from nescio.errors import ArgumentError, MismatchError, ServerRefusedError, ServerTimeoutError
from nescio.pir import KeyedClient, KeyedTable
from nescio.service import AsyncRemoteTable, RemoteTable, TableAdmin, create_app
from service.conftest import QUOTAS, TOKENS, VALUES, running
from service.fakes import FakeServer, refusal, tables

V2, V1 = tables(2)
TOPS = "/v1/tables/words/tops"


@contextlib.contextmanager
def within(seconds):
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds


class Held:
    """An application that does not answer requests of some paths."""

    def __init__(self, app, *ends):
        self._app, self.ends, self.asked = app, ends, 0

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"].endswith(self.ends):
            self.asked += 1
            await asyncio.sleep(20)
        await self._app(scope, receive, send)


@pytest.fixture
def fakes():
    return [FakeServer(party, [V1]) for party in (0, 1)]


@pytest.fixture
def urls(fakes):
    with running(fakes[0]) as first, running(fakes[1]) as second:
        yield first, second


def check(table, **options):
    assert np.array_equal(table.lookup([9, 5], **options), VALUES[[9, 5]])


def test_a_deadline_bounds_the_whole_lookup(remote, fakes, urls):
    with remote(urls, "words", retries=99) as table:
        check(table, deadline=20)
        fakes[1].delay = 5
        with (
            within(2),
            pytest.raises(
                ServerTimeoutError, match="party 1 did not answer.*party 0 answered"
            ) as caught,
        ):
            table.lookup([5], deadline=0.3)
        assert caught.value.url.startswith(urls[1])


def test_a_pause_beyond_the_deadline(remote, fakes, urls):
    with remote(urls, "words", retries=99, deadline=5) as table:
        fakes[0].reply = refusal(503, Retry_After="60")
        with within(3), pytest.raises(ServerRefusedError, match="status 503") as caught:
            table.lookup([5])
    text = str(caught.value)
    assert text.startswith("party 0: ")
    assert "try again in 60 s: the deadline of 5 s, of which " in text
    assert "party 1" not in text
    assert caught.value.status == 503
    assert caught.value.url.startswith(urls[0])


def test_a_deadline_during_retries(remote, fakes, urls):
    with remote(urls, "words", retries=99, deadline=0.5) as table:
        fakes[0].reply = refusal(503)
        with pytest.raises(ServerTimeoutError) as caught:
            table.lookup([5])
    assert "party 0 did not answer (" in str(caught.value)
    assert "status 503" in str(caught.value)
    assert "party 1 answered" in str(caught.value)


@pytest.mark.parametrize("deadline", [0, -1, float("inf"), float("nan")])
def test_invalid_deadlines(remote, urls, deadline):
    with pytest.raises(ArgumentError, match="deadline"):
        remote(urls, "words", deadline=deadline)


@pytest.mark.parametrize("slow", [0, 1])
def test_a_connection_to_a_server_that_does_not_describe_its_table(remote, fakes, slow):
    apps = list(fakes)
    apps[slow] = Held(fakes[slow], "/words")
    with running(apps[0]) as first, running(apps[1]) as second, within(5):
        message = rf"not connected within the deadline of 0.5 s: servers\[{slow}\] did not describe"
        with within(2), pytest.raises(ServerTimeoutError, match=message) as caught:
            remote([first, second], "words", deadline=0.5)
        assert caught.value.url.startswith((first, second)[slow])


def test_a_connection_to_a_server_that_asks_for_a_pause(remote, fakes, urls):
    fakes[1].reply = lambda *_: refusal(503, Retry_After="20")("POST")
    with within(2), pytest.raises(ServerTimeoutError, match="did not describe its.*status 503"):
        remote(urls, "words", deadline=0.5)


def test_a_connection_without_tops(remote, fakes):
    held = [Held(fake, "/tops") for fake in fakes]
    with running(held[0]) as first, running(held[1]) as second:
        with within(4), pytest.raises(ServerTimeoutError, match="no server sent the hashes") as e:
            remote([first, second], "words", deadline=1.5)
    assert first in str(e.value)
    assert second in str(e.value)
    assert [one.asked for one in held] == [1, 1]


def test_a_connection_while_the_tables_differ(remote, fakes, urls):
    fakes[1].replace([V2])
    with within(2), pytest.raises(MismatchError, match="version '1'.*version '2'"):
        remote(urls, "words", deadline=0.5)


def test_a_lookup_that_connects_first(fakes):
    async def look_up(urls):
        table = AsyncRemoteTable(urls, "words", deadline=0.5)
        try:
            await table.lookup([5])
        finally:
            await table.close()

    with running(Held(fakes[0], "/words")) as first, running(fakes[1]) as second:
        with within(2), pytest.raises(ServerTimeoutError, match="no rows within.*describe"):
            asyncio.run(look_up([first, second]))


@pytest.mark.parametrize("slow", [0, 1])
def test_tops_of_a_slow_server_come_from_the_other_one(remote, fakes, slow):
    apps = list(fakes)
    apps[slow] = Held(fakes[slow], "/tops")
    with running(apps[0]) as first, running(apps[1]) as second:
        with within(4), remote([first, second], "words") as table:
            check(table)


def test_tops_of_a_server_that_fails_once_come_from_the_other_one(remote, fakes, urls):
    def busy(method, path, _):
        return refusal(503, Retry_After="20")("POST") if path == TOPS else None

    fakes[0].reply = busy
    with within(4), remote(urls, "words") as table:
        check(table)
    assert fakes[0].gets.count(f"{TOPS}?version={V1.params.id.hex()}") <= 1


def keyed_app(party):
    table = KeyedTable([f"key {i}" for i in range(100)], VALUES[:100]).table
    return create_app({"words": nescio.Server(table, party=party)}, party=party, quotas=QUOTAS)


@pytest.mark.parametrize("slow", [0, 1])
def test_the_layout_of_a_slow_server_comes_from_the_other_one(slow):
    apps = [keyed_app(0), keyed_app(1)]
    apps[slow] = Held(apps[slow], "/layout")
    with running(apps[0]) as first, running(apps[1]) as second:
        with within(4), RemoteTable([first, second], "words") as table:
            assert KeyedClient(table).lookup(["key 7"])[0].tolist() == VALUES[[7]].tolist()


def lookup_command(urls, seconds):
    return main(["lookup", "--servers", *urls, "--table", "words", "--deadline", seconds, "5"])


def test_the_command_with_a_server_that_does_not_describe_its_table(fakes, capsys):
    with running(Held(fakes[0], "/words")) as first, running(fakes[1]) as second:
        with within(2):
            assert lookup_command((first, second), "0.5") != 0
    assert "not connected within the deadline of 0.5 s" in capsys.readouterr().err


def test_the_deadline_of_the_command_includes_the_connection(fakes, urls, capsys):
    """The connection takes one second, because the description comes late; the answer never."""

    def late(method, path, _):
        if path == "/v1/tables/words":
            time.sleep(1)

    fakes[0].reply = late
    fakes[1].delay = 20
    with within(2.7):
        assert lookup_command(urls, "1.8") != 0
    assert "party 1 did not answer" in capsys.readouterr().err


def test_a_server_that_asks_for_longer_waits_than_the_timeout(fakes, urls):
    """Its admin hears at once what the server says, however many tries are left."""
    fakes[1].reply = lambda *_: (503, {"Retry-After": "60"}, b"")
    with (
        TableAdmin(urls, "words", TOKENS, timeout=5, retries=99) as admin,
        within(4),
        pytest.raises(ServerRefusedError, match="status 503"),
    ):
        admin.update([5], VALUES[[6]])
