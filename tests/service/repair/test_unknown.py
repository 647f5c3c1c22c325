"""States that the operator's journal does not know: changes without it, or before it began."""

from pathlib import Path

import pytest

import nescio
from nescio.errors import (
    ArgumentError,
    MismatchError,
    ServerRefusedError,
)
from service.conftest import VALUES
from service.repair.two_parties import (
    assert_mended,
    change,
    failing,
    opened,
    state,
)


def test_a_change_by_hand_at_one(parties, journal, tmp_path):
    with opened(parties, journal) as admin:
        change(admin, 2)
        parties[1].table.update([5], VALUES[[9]])
        status = state(parties, journal)
        assert status.state == "unknown"
        assert [party.behind for party in status.parties] == [0, None]
        assert "snapshot of the other party" in status.advice
        with pytest.raises(MismatchError) as caught:
            admin.repair()
        assert str(caught.value).startswith("one party has a table that the journal")
        assert f"{parties[1].url}/v1/tables/words (party 1) has version '4'" in str(caught.value)
        assert "expected one of its 2 changes, to versions '2' to '3'" in str(caught.value)
        assert f"Restart {parties[1].url}" in str(caught.value)
        assert [party.changes for party in parties] == [2, 2]
        parties[0].table.save(tmp_path / "other.nescio")  # the advice
        parties[1].start(nescio.Table.load(tmp_path / "other.nescio"))
        assert list(admin.repair().values()) == [0, 0]
    assert_mended(parties, journal, "3")


def test_changes_by_hand_at_both(parties, journal):
    with opened(parties, journal) as admin:
        change(admin, 2)
        for party in parties:
            party.table.update([5], VALUES[[10 + party.party]])
        assert state(parties, journal).state == "unknown"
        with pytest.raises(MismatchError, match="both parties have tables that the journal"):
            admin.repair()
        for party in parties:  # the advice
            party.start(nescio.Table(VALUES))
        assert list(admin.repair().values()) == [2, 2]
    assert_mended(parties, journal, "3")


def test_equal_changes_without_the_journal(parties, journal):
    """Both agree, and lookups go on; the journal goes on from there, and cannot mend the gap."""
    with opened(parties, journal) as admin, opened(parties) as other:
        change(admin, 2)
        change(other, 2, 2)
        status = state(parties, journal)
        assert (status.state, [party.behind for party in status.parties]) == ("equal", [None] * 2)
        assert list(admin.repair().values()) == [0, 0]
        change(admin, 2, 4)
        assert_mended(parties, journal, "7")
        parties[0].start(nescio.Table(VALUES))
        with pytest.raises(MismatchError, match="expected one of its 2 changes, to versions '6'"):
            admin.repair()


def test_without_a_journal(parties):
    with opened(parties) as admin:
        with failing(parties[1]), pytest.raises(ServerRefusedError):
            admin.insert([5], VALUES[[6]])
        assert state(parties).state == "different"
        for call in (admin.repair, admin.drop_last, admin.compact):
            with pytest.raises(ArgumentError, match="journal: found None"):
                call()
        admin.insert([5], VALUES[[6]])
    assert state(parties).agree
    with opened(parties, tokens=None) as admin:
        with pytest.raises(ArgumentError, match="tokens: found None"):
            admin.update([5], VALUES[[6]])


def test_a_journal_that_begins_after_an_interrupted_change(parties, journal):
    with opened(parties) as admin, opened(parties, journal) as noting:
        change(admin, 2)
        with failing(parties[1]), pytest.raises(ServerRefusedError):
            admin.insert([5], VALUES[[6]])
        with pytest.raises(MismatchError, match="expected a journal that is not empty"):
            noting.repair()
        assert noting.insert([5], VALUES[[6]]).version == "4"
    assert_mended(parties, journal, "4")


def test_a_party_that_restarts_after_the_journal_was_compacted(parties, journal, tmp_path):
    with opened(parties, journal) as admin:
        change(admin, 6)
        parties[0].table.save(tmp_path / "new.nescio")
        change(admin, 3, 6)
        size = journal.stat().st_size
        assert admin.compact(keep=4) == 5
        assert admin.compact(keep=4) == 0
        assert journal.stat().st_size < size / 2
        assert_mended(parties, journal, "10")
        parties[0].start(nescio.Table(VALUES))
        with pytest.raises(MismatchError, match="expected one of its 4 changes"):
            admin.repair()
        with pytest.raises(ArgumentError, match="does not have all changes"):
            admin.compact(keep=1)
        parties[0].start(nescio.Table.load(Path(tmp_path / "new.nescio")))
        assert list(admin.repair().values()) == [3, 0]
    assert_mended(parties, journal, "10")
    assert journal.stat().st_mode & 0o777 == 0o600
