"""Clients of servers that keep versions of a table."""

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nescio.errors import MalformedMessageError, MismatchError, VersionGoneError
from nescio.pir import TableParams
from nescio.service import RemoteTable, _async_remote
from service.conftest import VALUES, running
from service.fakes import FakeServer, tables

V3, V2, V1 = tables(3)


@pytest.fixture
def serving():
    """Runs two fakes; gives the URLs."""
    with contextlib.ExitStack() as stack:
        yield lambda *fakes: [stack.enter_context(running(fake)) for fake in fakes]


def number(table):
    """Looks up row 0, which has the number of its version, and another row."""
    rows = table.lookup([0, 9])
    assert np.array_equal(rows[1], VALUES[9])
    return rows[0, 0]


def wait_for(table, version, look=None):
    """Looks up until the client has a version."""
    end = time.monotonic() + 10
    while table.params.version != version:
        assert time.monotonic() < end
        (look or number)(table)
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([V3, V2, V1], [V3, V2, V1], "3"),
        ([V3, V2, V1], [V2, V1], "2"),
        ([V2, V1], [V3, V2], "2"),
        ([V3, V1], [V2, V1], "1"),
        ([V1, V2], [V2, V1], "1"),  # party 0 says which is newer
    ],
)
def test_the_newest_version_that_both_answer(remote, serving, first, second, expected):
    fakes = FakeServer(0, first), FakeServer(1, second)
    with remote(serving(*fakes), "words") as table:
        assert table.params.version == expected
        assert number(table) == int(expected)


def test_servers_that_name_no_versions(remote, serving):
    fakes = FakeServer(0, [V2, V1]), FakeServer(1, [V2])
    for fake in fakes:
        fake.names_versions = False
    with remote(serving(*fakes), "words") as table:
        assert number(table) == 2


def test_no_version_in_common(remote, serving):
    urls = serving(FakeServer(0, [V3]), FakeServer(1, [V2, V1]))
    with pytest.raises(MismatchError, match="hold different tables"):
        remote(urls, "words", timeout=0.5)


def test_a_version_that_is_gone_is_replaced_at_once(remote, serving):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    with remote(serving(*fakes), "words") as table:
        assert number(table) == 1
        before = [list(fake.answers) for fake in fakes]
        for fake in fakes:
            fake.replace([V2])
        begun = time.monotonic()
        assert number(table) == 2
        assert time.monotonic() - begun < 5
        # The repeated lookup made keys of its own: no record of the first query is sent again.
        for fake, old in zip(fakes, before, strict=True):
            fresh = fake.answers[len(old) :]
            assert [query[16:32] for query in fresh] == [V1.params.id, V2.params.id]
            assert fresh[0][32:] != fresh[1][32:]


def test_a_version_that_is_gone_has_an_error_of_its_own(serving):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    with RemoteTable(serving(*fakes), "words") as table:
        query = table.client.query([5])
        for fake in fakes:
            fake.replace([V2])
        with pytest.raises(VersionGoneError, match="party [01]: .*version_gone"):
            table.exchange(query)


def test_a_server_that_is_ahead_keeps_the_version_of_the_other(remote, serving):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    with remote(serving(*fakes), "words") as table:
        fakes[0].replace([V2, V1])
        for _ in range(3):
            assert number(table) == 1
        fakes[1].replace([V2])  # the client must follow: V1 is gone at party 1
        assert number(table) == 2


def test_a_newer_version_is_followed_while_lookups_go_on(remote, serving):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    with remote(serving(*fakes), "words") as table:
        assert number(table) == 1
        for fake in fakes:
            fake.replace([V2, V1])
        assert number(table) == 1  # the answer itself is of the version that was asked
        wait_for(table, "2")
        assert number(table) == 2
        since = [get for fake in fakes for get in fake.gets if "since=" in get]
        assert since == [f"/v1/tables/words/tops?since={V1.params.id.hex()}"]


def test_a_version_is_used_for_a_time_unless_servers_will_soon_drop_it(
    remote, serving, monkeypatch
):
    monkeypatch.setattr(_async_remote, "_FOLLOW_SECONDS", 3600.0)
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    with remote(serving(*fakes), "words") as table:
        for fake in fakes:
            fake.replace([V2, V1])
            fake.ages = {"age": 1, "kept": 16}
        wait_for(table, "2")  # the first one at once
        for fake in fakes:
            fake.replace([V3, V2, V1])
        for _ in range(10):
            assert number(table) == 2
            time.sleep(0.03)
        fakes[1].ages = {"age": 8, "kept": 16}
        wait_for(table, "3")


def test_nothing_is_lost_while_the_newer_version_cannot_be_fetched(remote, serving):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    with remote(serving(*fakes), "words", retries=0) as table:
        for fake in fakes:
            fake.replace([V2, V1])
            fake.reply = lambda method, *_: (500, {}, b"") if method == "GET" else None
        for _ in range(30):
            assert number(table) == 1
            time.sleep(0.01)
        for fake in fakes:
            fake.reply = None
        wait_for(table, "2")


def test_a_client_with_a_digest_keeps_a_kept_version(remote, serving):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    urls = serving(*fakes)
    with remote(urls, "words", digest=V1.params.digest) as table:
        for fake in fakes:
            fake.replace([V2, V1])
        for _ in range(20):
            assert number(table) == 1
        with remote(urls, "words", digest=V1.params.digest) as other:
            assert number(other) == 1
            tops = f"/v1/tables/words/tops?version={V1.params.id.hex()}"
            assert any(tops in fake.gets for fake in fakes)
        for fake in fakes:
            fake.replace([V2])
        with pytest.raises(MismatchError, match="expected .* which was given"):
            table.lookup([0])


def test_a_client_with_known_tables_keeps_a_kept_version(remote, serving, tmp_path):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    urls, known = serving(*fakes), tmp_path / "known"
    with remote(urls, "words", known_tables=known) as table:
        for fake in fakes:
            fake.replace([V2, V1])
        assert [number(table) for _ in range(5)] == [1] * 5
        assert known.read_text().count("\n") == 1
    with remote(urls, "words", known_tables=known) as table:
        assert number(table) == 1


NAMED = {"id": V2.params.id.hex(), "params": V2.params.to_dict()}
OTHER = TableParams.from_dict({**V2.params.to_dict(), "version": "of a stranger"})


@pytest.mark.parametrize(
    "headers",
    [
        ["{", "{"],
        ["x" * 30_000] * 2,
        ["[" * 4000] * 2,
        [json.dumps([NAMED])] * 2,
        [json.dumps({**NAMED, "id": "0" * 32})] * 2,
        [json.dumps({**NAMED, "params": {}})] * 2,
        [json.dumps({**NAMED, "params": {**NAMED["params"], "rows": 7}})] * 2,
        [json.dumps({**NAMED, "params": {**NAMED["params"], "version": "9"}})] * 2,
        [json.dumps({"id": OTHER.id.hex(), "params": OTHER.to_dict()}), json.dumps(NAMED)],
        [json.dumps(NAMED), ""],
        ["", json.dumps(NAMED)],
        [json.dumps({"id": V1.params.id.hex(), "params": V1.params.to_dict()})] * 2,
    ],
    ids=lambda headers: headers[0][:12] + headers[1][:12],
)
def test_headers_that_are_not_valid_or_differ_change_nothing(remote, serving, headers):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    with remote(serving(*fakes), "words") as table:
        gets = [list(fake.gets) for fake in fakes]
        for fake, header in zip(fakes, headers, strict=True):
            fake.newer = header or None
        for _ in range(5):
            assert number(table) == 1
        time.sleep(0.1)
        assert number(table) == 1
        assert table.params == V1.params
        assert [fake.gets for fake in fakes] == gets


def test_a_newer_version_that_both_invent_changes_no_row(remote, serving):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    with remote(serving(*fakes), "words") as table:
        for fake in fakes:
            fake.newer = json.dumps({"id": OTHER.id.hex(), "params": OTHER.to_dict()})
        for _ in range(5):
            assert number(table) == 1
        assert table.params == V1.params


@pytest.mark.parametrize(
    "versions",
    [{}, "1", [1], [{}], [V1.params.to_dict()] * 9, [{**V1.params.to_dict(), "rows": 0}]],
)
def test_descriptions_with_invalid_versions(remote, serving, versions):
    fake = FakeServer(0, [V1])
    described = {**fake.describe(), "versions": versions}
    fake.reply = lambda method, *_: (
        (200, {}, json.dumps(described).encode()) if method == "GET" else None
    )
    with pytest.raises(MalformedMessageError, match="versions|table parameters"):
        remote(serving(fake, FakeServer(1, [V1])), "words")


def test_many_lookups_at_once_fetch_a_new_version_once(serving):
    fakes = FakeServer(0, [V1]), FakeServer(1, [V1])
    with RemoteTable(serving(*fakes), "words") as table, ThreadPoolExecutor(16) as pool:
        for fake in fakes:
            fake.replace([V2])
        assert set(pool.map(lambda _: number(table), range(16))) == {2}
        # Each lookup may have found the old version gone once; few rounds of fetching did for all.
        assert all(fake.gets.count("/v1/tables/words") <= 8 for fake in fakes)
