"""The states that two parties can be in, of docs/operating.md, and how each is mended."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import nescio
from nescio.errors import (
    ArgumentError,
    MismatchError,
    ServerRefusedError,
    ServerUnreachableError,
)
from nescio.pir import KeyedTable
from nescio.pir.batch import FullPart, Layout, build
from nescio.service import RemoteTable
from service.conftest import TOKENS, VALUES, make_app, running
from service.repair.two_parties import (
    assert_mended,
    change,
    failing,
    opened,
    state,
    two_parties,
    urls_of,
)

PAGE = Path(__file__).parents[3] / "docs" / "operating.md"
NOT_READY = "see the log of the party that is not ready, and its /readyz"
NOWHERE = "http://127.0.0.1:9"


def test_equal(parties, journal):
    with opened(parties, journal) as admin:
        assert list(admin.repair().values()) == [0, 0]
        change(admin, 3)
        assert list(admin.repair().values()) == [0, 0]
    assert_mended(parties, journal, "4")
    assert [party.changes for party in parties] == [3, 3]
    assert journal.stat().st_mode & 0o777 == 0o600


def test_one_behind_by_one(parties, journal):
    with opened(parties, journal) as admin:
        change(admin, 2)
        with failing(parties[1]), pytest.raises(ServerRefusedError):
            admin.insert([5], VALUES[[6]])
    status = state(parties, journal)
    assert (status.state, status.agree) == ("behind", False)
    assert [(party.version, party.behind) for party in status.parties] == [("4", 0), ("3", 1)]
    assert "nescio admin repair" in status.advice
    sent = parties[0].changes
    with opened(parties, journal) as admin:
        with pytest.raises(MismatchError, match="nescio admin repair"):
            admin.update([1], VALUES[[1]])
        assert admin.repair() == {f"{parties[i].url}/v1/tables/words": i for i in (0, 1)}
        assert list(admin.repair().values()) == [0, 0]
        change(admin, 1)
    assert_mended(parties, journal, "5")
    assert parties[0].changes == sent + 1  # the repair sent it nothing


def test_lookups_go_on_while_one_is_behind_by_one(parties, journal):
    with opened(parties, journal) as admin, RemoteTable(urls_of(parties), "words") as table:
        change(admin, 2)
        table.lookup([0])
        with failing(parties[1]), pytest.raises(ServerRefusedError):
            admin.update([0], VALUES[[500]])
        assert [party.version for party in state(parties, journal).parties] == ["4", "3"]
        assert state(parties, journal).parties[0].kept[0] == "3"
        for client in (table, RemoteTable(urls_of(parties), "words")):  # the second one is new
            with client:
                assert np.array_equal(client.lookup([0, 1]), VALUES[[1, 2]])
        admin.repair()
    with RemoteTable(urls_of(parties), "words") as table:
        assert np.array_equal(table.lookup([0, 1]), VALUES[[500, 2]])


def test_one_restarted_from_its_file(parties, journal):
    with opened(parties, journal) as admin:
        change(admin, 85)
        admin.insert([3, 1000], VALUES[[4, 5]])
        admin.delete([0, 7])
        admin.update([5], VALUES[[6]], version="named")
        admin.update([6], VALUES[[7]])
    for i in (1, 0):
        parties[i].start(nescio.Table(VALUES))
        other = parties[1 - i].changes
        assert [party.behind for party in state(parties, journal).parties][i] == 89
        with opened(parties, journal) as admin:
            assert admin.repair()[f"{parties[i].url}/v1/tables/words"] == 89
        assert parties[1 - i].changes == other
        assert_mended(parties, journal, "named+1")


def keyed():
    return KeyedTable([f"word {i}" for i in range(50)], VALUES[:50]).table


def batch():
    return build(VALUES[:100], Layout(100, FullPart(4))).table


def change_keys(admin):
    for i in range(50, 120, 10):  # the table grows, and is built again
        admin.insert([f"word {k}" for k in range(i, i + 10)], VALUES[i : i + 10])
        admin.delete([f"word {i - 3}", f"word {i}"])
        admin.update([f"word {i - 1}"], VALUES[[7]])


def spare():
    return nescio.Table(VALUES, spare=4)


def change_vacant(admin):
    for i in range(3):  # the first of them fill the vacant rows, the last one needs new ones
        assert len(set(admin.append(VALUES[i : i + 2]))) == 2
        admin.clear([i, 700 + i])
    admin.append(VALUES[:9])
    admin.grow(50)
    admin.append(VALUES[5:6])


@pytest.mark.parametrize(
    ("make", "changes"),
    [(keyed, change_keys), (batch, lambda a: change(a, 9)), (spare, change_vacant)],
)
def test_one_with_keys_or_a_layout_restarted_from_its_file(make, changes, journal):
    with two_parties(make) as parties, opened(parties, journal) as admin:
        changes(admin)
        for i in (0, 1):
            parties[i].start(make())
            assert admin.repair()[f"{parties[i].url}/v1/tables/words"] >= 9
            assert state(parties, journal).agree
            assert parties[0].table.params == parties[1].table.params


def test_one_restored_from_an_old_snapshot(parties, journal, tmp_path):
    with opened(parties, journal) as admin:
        change(admin, 4)
        parties[0].table.save(tmp_path / "old.nescio")
        change(admin, 5, 4)
        parties[0].start(nescio.Table.load(tmp_path / "old.nescio"))
        assert list(admin.repair().values()) == [5, 0]
    assert_mended(parties, journal, "10")


def test_both_behind_the_journal(parties, journal, tmp_path):
    with opened(parties, journal) as admin:
        change(admin, 2)
        parties[1].table.save(tmp_path / "old.nescio")
        change(admin, 2, 2)
        for party in parties:
            party.start(nescio.Table.load(tmp_path / "old.nescio"))
        assert state(parties, journal).state == "behind"
        with pytest.raises(ArgumentError, match=r"lack 2 change\(s\) of the journal"):
            admin.update([1], VALUES[[1]])
        assert list(admin.repair().values()) == [2, 2]
    assert_mended(parties, journal, "5")


def test_both_behind_by_different_numbers(parties, journal, tmp_path):
    with opened(parties, journal) as admin:
        change(admin, 2)
        parties[1].table.save(tmp_path / "old.nescio")
        change(admin, 2, 2)
        parties[0].start(nescio.Table(VALUES))
        parties[1].start(nescio.Table.load(tmp_path / "old.nescio"))
        assert list(admin.repair().values()) == [4, 2]
    assert_mended(parties, journal, "5")


def test_one_that_ends(parties, journal):
    """A server that drains its requests is not ready; one without /readyz may be healthy."""
    with opened(parties, journal) as admin:
        change(admin, 1)
    app = parties[1].app

    def answering(ready, healthy):
        async def answer(scope, receive, send):
            status = {"/readyz": ready, "/healthz": healthy}.get(scope.get("path"))
            if status is None:
                await app(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})

        return answer

    for ready, healthy, expected in [(503, 200, False), (404, 200, True), (404, 500, False)]:
        parties[1].app = answering(ready, healthy)
        status = state(parties, journal)
        assert (status.state, status.agree) == ("equal", expected)
        assert [party.ready for party in status.parties] == [True, expected]
        assert status.advice == ("" if expected else NOT_READY)


def test_one_down(parties, journal):
    with opened(parties, journal) as admin:
        change(admin, 3)
    parties[0].start(nescio.Table(VALUES))
    url, parties[1].url = parties[1].url, NOWHERE
    status = state(parties, journal)
    assert (status.state, status.agree) == ("down", False)
    assert [party.behind for party in status.parties] == [3, None]
    assert "cannot be reached" in status.parties[1].problem
    with opened(parties, journal) as admin:
        with pytest.raises(ServerUnreachableError):
            admin.update([1], VALUES[[1]])
        with pytest.raises(ServerUnreachableError) as caught:
            admin.repair()  # the other party gets what it lacks
        assert caught.value.__notes__ == [
            f"{parties[0].url}/v1/tables/words got 3 change(s) that it lacked"
        ]
    parties[1].url = url
    assert_mended(parties, journal, "4")


def test_one_with_another_table(parties, journal):
    with opened(parties, journal) as admin:
        change(admin, 1)
        parties[1].start(nescio.Table(VALUES.astype("f8")))
        assert state(parties, journal).state == "other table"
        assert state(parties).state == "other table"
        with pytest.raises(MismatchError, match="one party has a table that the journal"):
            admin.repair()
        assert parties[1].changes == 0
        parties[1].start(nescio.Table(VALUES))
        admin.repair()
    assert_mended(parties, journal, "2")


def test_two_servers_of_one_party(parties, journal):
    with running(make_app(0, token=TOKENS[1])) as url:
        parties[1].url = url
        assert state(parties, journal).state == "one party"
        with opened(parties, journal) as admin:
            with pytest.raises(ArgumentError, match="found two of party 0"):
                admin.repair()


def test_a_wrong_token_at_one(parties, journal):
    with opened(parties, journal) as admin:
        change(admin, 2)
    parties[1].start(nescio.Table(VALUES))
    with opened(parties, journal, [TOKENS[0], "the wrong token of 1"]) as admin:
        with pytest.raises(ServerRefusedError, match="not_admitted") as caught:
            admin.repair()
        assert caught.value.url.startswith(parties[1].url)
    with opened(parties, journal) as admin:
        admin.repair()
    assert_mended(parties, journal, "3")
    with opened(parties, journal, [TOKENS[0], "the wrong token of 1"]) as admin:
        with pytest.raises(ServerRefusedError, match="not_admitted"):
            admin.update([5], VALUES[[6]])
    assert_mended(parties, journal, "3")  # also the journal has not got the change


def test_a_change_that_the_first_party_refuses_is_not_kept(parties, journal):
    with opened(parties, journal) as admin:
        change(admin, 1)
        app = parties[0].app

        async def full(scope, receive, send):
            if not scope.get("path", "").endswith("/rows"):
                await app(scope, receive, send)
                return
            body = json.dumps({"error": {"code": "not_durable", "message": "the disk is full"}})
            await send({"type": "http.response.start", "status": 507, "headers": []})
            await send({"type": "http.response.body", "body": body.encode()})

        parties[0].app = full
        with pytest.raises(ServerRefusedError, match="the disk is full"):
            admin.update([5], VALUES[[6]])
        parties[0].app = app
        assert_mended(parties, journal, "2")
        change(admin, 1)
    assert_mended(parties, journal, "3")


def test_two_operators_at_the_same_time(parties, journal):
    """With one journal, they take turns; without, the slower one is refused."""

    def make(i, path):
        with opened(parties, path) as admin:
            try:
                for _ in range(3):
                    admin.update([i], VALUES[[i + 1]])
            except MismatchError as error:
                return error
            return None

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda i: make(i, journal), range(4))) == [None] * 4
    assert_mended(parties, journal, "13")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda i: make(i, journal.with_name(f"{i}.journal")), range(2)))
    status = state(parties)
    assert status.state == "equal"
    assert int(status.parties[0].version) > 13


def test_the_page_names_a_test_for_each_state():
    section = PAGE.read_text().partition("## Two parties")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 15
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for row in rows:
        names = re.findall(r"`(\w+)`", row.split("|")[-2])
        assert names, row
        for name in names:
            assert f"\ndef test_{name}(" in tests, name
