"""Clients of parties with several servers: failures, hedges, keys of clients."""

import contextlib
import time

import numpy as np
import pytest

from nescio.cli import main
from nescio.errors import (
    ArgumentError,
    ServerRefusedError,
    ServerUnreachableError,
)
from nescio.service import RemoteTable
from nescio.service._client._breaker import FAILURES, MAX_PAUSE, Breaker
from service.conftest import VALUES, running
from service.fakes import FakeServer, closed_port, refusal, tables

V2, V1 = tables(2)


class Quad:
    """Two replicas of each party, running; `stop(party, number)` ends one."""

    def __init__(self, stack):
        self.fakes = [[FakeServer(party, [V1]) for _ in range(2)] for party in (0, 1)]
        self._stacks = [
            [stack.enter_context(contextlib.ExitStack()) for _ in own] for own in self.fakes
        ]
        self.urls = [
            [own.enter_context(running(fake)) for own, fake in zip(stacks, fakes, strict=True)]
            for stacks, fakes in zip(self._stacks, self.fakes, strict=True)
        ]

    def stop(self, party, number):
        self._stacks[party][number].close()

    def asked(self, party):
        """Returns the replica of a party that was asked last."""
        return max((0, 1), key=lambda number: len(self.fakes[party][number].answers))


@pytest.fixture
def quad():
    with contextlib.ExitStack() as stack:
        yield Quad(stack)


def check(table, **options):
    assert np.array_equal(table.lookup([9, 5], **options), VALUES[[9, 5]])


def queries(fakes):
    return [query for fake in fakes for query in fake.answers]


def check_keys(quad):
    """Checks that no server of a party has got a query of the other party."""
    for party, fakes in enumerate(quad.fakes):
        assert {query[3] for query in queries(fakes)} <= {party}
    assert not set(queries(quad.fakes[0])) & set(queries(quad.fakes[1]))


def test_a_replica_that_dies_during_lookups_costs_no_lookup(remote, quad):
    with remote(quad.urls, "words", retries=0) as table:
        check(table)
        quad.stop(1, quad.asked(1))
        for _ in range(10):
            check(table)
        quad.stop(0, quad.asked(0))
        for _ in range(10):
            check(table)
    check_keys(quad)


def test_all_servers_of_a_party_that_are_down(remote, quad):
    with remote(quad.urls, "words", retries=0) as table:
        check(table)
        quad.stop(1, 0)
        quad.stop(1, 1)
        with pytest.raises(ServerUnreachableError, match="party 1: none of its 2 servers answered"):
            table.lookup([5])


def test_a_server_that_is_down_at_the_start(remote, quad):
    with closed_port() as closed:
        with remote([[closed, quad.urls[0][0]], quad.urls[1]], "words") as table:
            check(table)
        with pytest.raises(ServerUnreachableError, match=r"servers\[0\]: .*is the server running"):
            remote([closed, quad.urls[1]], "words", retries=0)


def test_a_slow_server_is_hedged_with_the_same_key(remote, quad):
    with remote(quad.urls, "words", hedge=0.05) as table:
        check(table)
        slow = quad.fakes[0][quad.asked(0)]
        slow.delay = 3
        before = len(slow.answers)
        begun = time.monotonic()
        check(table)
        assert time.monotonic() - begun < 2
        assert len(slow.answers) == before + 1
        other = quad.fakes[0][1 - quad.fakes[0].index(slow)]
        assert slow.answers[-1] == other.answers[-1]  # the same key, to the same party
        for _ in range(3):
            check(table)
        assert len(slow.answers) == before + 1  # the faster one is asked first from now on
    check_keys(quad)
    for fakes in quad.fakes:  # each lookup has one key for each party
        assert len(set(queries(fakes))) == 5


def test_without_a_hedge_nothing_is_sent_twice(remote, quad):
    with remote(quad.urls, "words") as table:
        for fake in quad.fakes[0]:
            fake.delay = 0.3
        check(table)
    assert [len(queries(fakes)) for fakes in quad.fakes] == [1, 1]


def test_a_hedge_at_a_quantile_of_the_times(remote, quad):
    with remote(quad.urls, "words", hedge="p95") as table:
        for _ in range(12):
            check(table)
        slow = quad.fakes[1][quad.asked(1)]
        slow.delay = 3
        begun = time.monotonic()
        check(table)
        assert time.monotonic() - begun < 2
    check_keys(quad)


@pytest.mark.parametrize("hedge", [0, -1, "95", "p5", "p100", float("nan"), [1]])
def test_invalid_hedges(quad, remote, hedge):
    with pytest.raises(ArgumentError, match="hedge"):
        remote(quad.urls, "words", hedge=hedge)


@pytest.mark.parametrize(
    "reply",
    [
        refusal(503),
        refusal(500),
        refusal(404, "unknown_table"),
        refusal(401, "not_a_client"),
        lambda method, *_: (200, {}, b"garbage") if method == "POST" else None,
        lambda method, *_: (200, {}, bytes(1 << 21)) if method == "POST" else None,
    ],
)
def test_another_server_answers_in_place_of_a_faulty_one(remote, quad, reply):
    with remote(quad.urls, "words", retries=0) as table:
        check(table)
        quad.fakes[1][quad.asked(1)].reply = reply
        for _ in range(3):
            check(table)
    check_keys(quad)


def test_a_server_recovers_after_a_probe(quad):
    with RemoteTable(quad.urls, "words", retries=0) as table:
        check(table)
        first = quad.fakes[0][quad.asked(0)]
        other = quad.fakes[0][1 - quad.fakes[0].index(first)]
        first.reply = refusal(500)
        check(table)
        failed = len(first.answers)
        for _ in range(5):
            check(table)
        assert len(first.answers) == failed  # left alone
        first.reply = None
        time.sleep(1.1)
        gets = len(first.gets)
        check(table)
        time.sleep(0.3)
        assert len(first.gets) == gets + 1  # the probe is no query
        other.reply = refusal(500)
        check(table)
        assert len(first.answers) == failed + 1


def test_servers_of_one_party_with_different_versions(remote, quad):
    quad.fakes[0][0].replace([V2, V1])
    quad.fakes[1][0].replace([V2])
    with remote(quad.urls, "words") as table:
        assert table.params.version == "2"
        for _ in range(5):
            assert table.lookup([0])[0, 0] == 2
        assert quad.fakes[0][1].answers == quad.fakes[1][1].answers == []
    check_keys(quad)


def test_the_version_moves_to_another_server_of_the_party(remote, quad):
    with remote(quad.urls, "words") as table:
        check(table)
        quad.fakes[0][quad.asked(0)].replace([V2])  # the other one still has V1
        assert table.lookup([0])[0, 0] == 1
        assert table.params.version == "1"
    check_keys(quad)


def test_servers_of_both_parties_in_one_entry(remote, quad):
    mixed = [quad.urls[0][0], quad.urls[1][0]]
    with pytest.raises(ArgumentError, match="found http.* among those of party"):
        remote([mixed, quad.urls[1][1]], "words")
    with pytest.raises(ArgumentError, match="are both party 0"):
        remote([quad.urls[0][0], quad.urls[0][1]], "words")
    assert not any(fake.answers for fakes in quad.fakes for fake in fakes)


@pytest.mark.parametrize("servers", [[["http://a", "http://a/"], "http://b"], [[], "http://b"]])
def test_invalid_entries(remote, servers):
    with pytest.raises(ArgumentError, match="two lists of each party's replicas"):
        remote(servers, "words")


@pytest.mark.parametrize("status", [429, 503])
def test_the_pause_that_a_server_names_is_kept(remote, quad, status):
    with remote([urls[0] for urls in quad.urls], "words") as table:
        fake = quad.fakes[0][0]
        times = []

        def busy(method, *_):
            times.append(time.monotonic())
            return refusal(status, Retry_After="1")(method) if len(times) == 1 else None

        fake.reply = busy
        check(table)
        assert times[1] - times[0] > 1


def test_keys_of_clients(remote, quad):
    with remote(quad.urls, "words", client_key=["key-a", "key-b"]) as table:
        check(table)
    for fakes, key in zip(quad.fakes, ("key-a", "key-b"), strict=True):
        seen = [headers.get("authorization") for fake in fakes for headers in fake.headers]
        assert set(seen) == {None, f"Bearer {key}"}  # with the query only
        assert len(seen) - seen.count(None) == 1


def test_a_server_that_does_not_know_the_client(remote, quad):
    quad.fakes[1][0].reply = refusal(401, "not_a_client")
    servers = [quad.urls[0][0], quad.urls[1][0]]
    with remote(servers, "words", client_key="secret-key") as table:
        with pytest.raises(ServerRefusedError, match="party 1.*not_a_client.*ask this") as e:
            table.lookup([5])
    assert "secret-key" not in str(e.value)


@pytest.mark.parametrize("key", ["", "a b", "ä", "a\n", "x" * 513, ["one"], [1, 2]])
def test_invalid_keys_of_clients(remote, quad, key):
    with pytest.raises(ArgumentError, match="client_key"):
        remote(quad.urls, "words", client_key=key)


def test_the_command(quad, tmp_path, capsys, monkeypatch):
    path = tmp_path / "key"
    path.write_text("of-the-file\n")
    servers = ["--servers", ",".join(quad.urls[0]), quad.urls[1][0], "--table", "words", "--json"]
    assert main(["lookup", *servers, "--client-key-file", str(path), "--deadline", "20", "9"]) == 0
    assert capsys.readouterr().out.strip() == str(VALUES[[9]].tolist())
    monkeypatch.setenv("NESCIO_CLIENT_KEY", "of-the-environment")
    assert main(["lookup", *servers, "9"]) == 0
    sent = [one["authorization"] for one in quad.fakes[1][0].headers if "authorization" in one]
    assert sent == ["Bearer of-the-file", "Bearer of-the-environment"]


def test_the_states_of_a_breaker():
    now = [0.0]
    breaker = Breaker(clock=lambda: now[0])
    for expected in ["closed"] * (FAILURES - 1) + ["open"]:
        breaker.failed()
        assert (breaker.state, breaker.is_due) == (expected, False)
    now[0] += 4
    assert (breaker.state, breaker.is_due) == ("half-open", True)
    for _ in range(10):
        breaker.failed()
    now[0] += MAX_PAUSE - 0.1
    assert breaker.state == "open"
    now[0] += 0.2
    assert breaker.state == "half-open"
    breaker.succeeded()
    assert (breaker.state, breaker.is_due) == ("closed", False)
    breaker.failed(after=7)
    now[0] += 6
    assert not breaker.is_due
