"""Changes of the operator's journal that no party is known to have made."""

import httpx
import pytest

from nescio.errors import (
    ArgumentError,
    ServerRefusedError,
)
from nescio.service._operator import Journal
from service.conftest import TOKENS, VALUES
from service.repair.two_parties import assert_mended, change, failing, opened, state


def stopped_before_sending(parties, journal, changes=2):
    """Leaves a change in the journal, after so many others, that no party has got."""
    with opened(parties, journal) as admin:
        change(admin, changes)
        with failing(parties[0]), pytest.raises(ServerRefusedError):
            admin.insert([5], VALUES[[6]])


def test_a_change_of_the_journal_that_no_party_has_made(parties, journal):
    stopped_before_sending(parties, journal)
    status = state(parties, journal)
    assert status.state == "unmade"
    assert "repair makes the last change" in status.advice
    with opened(parties, journal) as admin:
        with pytest.raises(ArgumentError, match=r"lack 1 change\(s\) of the journal"):
            admin.insert([5], VALUES[[7]])
        assert list(admin.repair().values()) == [1, 1]
    assert_mended(parties, journal, "4")
    assert [len(party.table) for party in parties] == [1001, 1001]


def test_the_same_call_makes_the_change_that_no_party_has_made(parties, journal):
    stopped_before_sending(parties, journal)
    with opened(parties, journal) as admin:
        assert admin.insert([5], VALUES[[6]]).version == "4"
    assert_mended(parties, journal, "4")
    assert [len(party.table) for party in parties] == [1001, 1001]


def test_a_change_that_no_party_has_made_is_dropped(parties, journal):
    stopped_before_sending(parties, journal)
    with opened(parties, journal) as admin:
        assert admin.drop_last() == "4"
        assert list(admin.repair().values()) == [0, 0]
        with pytest.raises(ArgumentError, match="nothing to drop"):
            admin.drop_last()
        change(admin, 1)
    assert_mended(parties, journal, "4")
    assert [len(party.table) for party in parties] == [1000, 1000]


def send(party, token, change):
    reply = httpx.post(
        f"{party.url}/v1/tables/words/rows",
        content=change,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"},
    )
    assert reply.status_code == 200


def test_a_dropped_change_that_a_server_was_still_making_is_remembered(parties, journal):
    stopped_before_sending(parties, journal)
    with opened(parties, journal) as admin:
        assert admin.drop_last() == "4"
    late = Journal(journal, "words")
    late.look()
    send(parties[1], TOKENS[1], late.change(late.unmade[0]))
    assert [one.behind for one in state(parties, journal).parties] == [1, 0]
    with opened(parties, journal) as admin:
        assert list(admin.repair().values()) == [1, 0]
    assert_mended(parties, journal, "4")
    assert [len(party.table) for party in parties] == [1001, 1001]


def test_a_dropped_change_stays_dropped_if_an_equal_one_was_made(parties, journal):
    stopped_before_sending(parties, journal)
    with opened(parties, journal) as admin:
        admin.drop_last()
    stopped_before_sending(parties, journal, changes=0)
    both = Journal(journal, "words")
    both.look()
    again, dropped = both.unmade
    assert (again.open, dropped.dropped) == (True, True)
    send(parties[1], TOKENS[1], both.change(again))
    with opened(parties, journal) as admin:
        assert list(admin.repair().values()) == [1, 0]
    both.look()
    assert [entry.head.name for entry in both.entries[-2:]].count(dropped.head.name) == 0
    assert_mended(parties, journal, "4")


def test_a_change_whose_reply_was_lost_is_recognized(parties, journal):
    with opened(parties, journal) as admin:
        change(admin, 2)
        party = parties[0]
        made = party.app

        async def lose(scope, receive, send):
            if not scope.get("path", "").endswith("/rows"):
                await made(scope, receive, send)
                return

            async def nothing(_):
                pass

            await made(scope, receive, nothing)
            raise ConnectionError

        party.app = lose
        with pytest.raises(ServerRefusedError):
            admin.update([5], VALUES[[6]])
        party.app = made
        assert [one.behind for one in state(parties, journal).parties] == [0, 1]
        with pytest.raises(ArgumentError, match="nothing to drop"):
            admin.drop_last()
        assert list(admin.repair().values()) == [0, 1]
    assert_mended(parties, journal, "4")
