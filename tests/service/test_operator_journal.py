"""The file of an operator's journal: what survives a crash, what is refused."""

import multiprocessing
import os
import resource
import sys
import threading

import numpy as np
import pytest

from nescio import Table
from nescio.errors import FileError, MismatchError
from nescio.pir._change import Change
from nescio.service._operator import Journal
from nescio.service._operator import journal as module
from nescio.service._operator.records import HEAD_BYTES

PARAMS = Table(np.arange(12, dtype="u1").reshape(4, 3)).params


def message(version, table=PARAMS.id):
    rows = np.full((1, 3), int(version) % 256, np.uint8)
    return Change("update", version, np.array([2], np.uint64), rows).encode(PARAMS, table)


def id_of(number):
    return number.to_bytes(16, "little")


def filled(path, count=3):
    """Writes a journal of some changes, of which a server has made all but the last."""
    journal = Journal(path, "words")
    with journal.locked():
        for i in range(count):
            entry = journal.append(message(str(i + 2), id_of(i)))
            if i < count - 1:
                journal.made(entry, id_of(i + 1))
    return journal


def versions(path):
    journal = Journal(path, "words")
    with journal.locked():
        return [entry.head.version for entry in journal.entries]


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "j"
    first = filled(path)
    journal = Journal(path, "words")
    journal.look()
    assert journal.entries == first.entries
    assert [entry.open for entry in journal.entries] == [False, False, True]
    assert [len(journal.lacking(id_of(i))) for i in range(3)] == [3, 2, 1]
    assert journal.lacking(id_of(7)) is None
    assert journal.change(journal.last) == first.change(first.last)
    assert [*tmp_path.iterdir()] == [path]


def test_two_writers_read_what_the_other_wrote(tmp_path):
    one, two = (Journal(tmp_path / "j", "words") for _ in range(2))
    for i in range(6):
        with (one, two)[i % 2].locked():
            (one, two)[i % 2].append(message(str(i + 2)))
    with one.locked():
        one.compact(2)
    with two.locked():
        assert [entry.head.version for entry in two.entries] == ["6", "7"]
        two.append(message("8"))
    assert versions(tmp_path / "j") == ["6", "7", "8"]


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_to_a_journal_stays_a_link(tmp_path, dangling):
    """Both paths name one journal, also after `compact`, which writes a new file."""
    path, link = tmp_path / "a" / "j", tmp_path / "j"
    path.parent.mkdir()
    link.symlink_to(path)
    if not dangling:
        filled(path)
    journal = filled(link) if dangling else Journal(link, "words")
    with journal.locked():
        assert journal.compact(1) == 2
    with journal.locked():
        journal.append(message("8"))
    assert link.is_symlink()
    assert versions(path) == versions(link) == ["4", "8"]


@pytest.mark.timeout(20)
def test_a_pipe_is_not_a_journal(tmp_path):
    os.mkfifo(tmp_path / "j")
    journal = Journal(tmp_path / "j", "words")
    with pytest.raises(FileError, match="is a pipe"):
        journal.look()
    with pytest.raises(FileError, match="is a pipe"), journal.locked():
        pass


def test_an_unfinished_record_at_the_end_is_cut_off(tmp_path):
    path = tmp_path / "j"
    filled(path, 2)
    whole = path.read_bytes()
    with Journal(path, "words").locked():
        pass
    journal = filled(tmp_path / "other", 3)
    record = journal.last.length + HEAD_BYTES
    last = (tmp_path / "other").read_bytes()[-record:]
    for torn in [last[:cut] for cut in range(record)] + [bytes(200), last[:20] + bytes(90)]:
        path.write_bytes(whole + torn)
        looking = Journal(path, "words")
        looking.look()  # changes nothing
        assert len(looking.entries) == 2
        assert path.read_bytes() == whole + torn
        assert versions(path) == ["2", "3"]
        assert path.read_bytes() == whole
    path.write_bytes(whole + last)
    assert versions(path) == ["2", "3", "4"]


def test_damage_is_refused(tmp_path):
    path = tmp_path / "j"
    filled(path, 3)
    whole = path.read_bytes()
    end = len(whole) - 1 - filled(tmp_path / "other", 1).last.length - HEAD_BYTES
    for place in range(0, end, 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(FileError, match=r"damaged|is not an operator's journal|of format"):
            versions(path)
        assert len(path.read_bytes()) == len(whole)  # nothing is cut off
    for text in (b"", b"a text file"):
        path.write_bytes(text)
        with pytest.raises(FileError, match="is not an operator's journal"):
            versions(path)
        assert path.read_bytes() == text


def test_a_journal_of_another_table_is_refused(tmp_path):
    filled(tmp_path / "j")
    with pytest.raises(FileError, match="is the journal of table 'words', expected one of 'ids'"):
        with Journal(tmp_path / "j", "ids").locked():
            pass


def test_a_journal_in_no_folder(tmp_path):
    with pytest.raises(FileError, match="cannot be used: No such file or directory"):
        versions(tmp_path / "folder" / "j")
    empty = Journal(tmp_path / "folder" / "j", "words")
    empty.look()
    assert empty.entries == []


def hold(path, locked, end):
    with Journal(path, "words").locked():
        locked.set()
        end.wait(20)


def test_two_operators_at_the_same_time(tmp_path, monkeypatch):
    path, context = tmp_path / "j", multiprocessing.get_context("spawn")
    locked, end = context.Event(), context.Event()
    other = context.Process(target=hold, args=(path, locked, end))
    other.start()
    try:
        assert locked.wait(20)
        monkeypatch.setattr(module, "LOCK_SECONDS", 0.2)
        with pytest.raises(FileError, match="another operator changes the table"):
            versions(path)
        Journal(path, "words").look()  # a report waits for nobody
        monkeypatch.setattr(module, "LOCK_SECONDS", 10)
        threading.Timer(0.2, end.set).start()
        assert versions(path) == []
    finally:
        end.set()
        other.join(20)


def test_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # in part, for other processes too
    path = tmp_path / "j"
    journal = filled(path, 2)
    size = path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with journal.locked():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 60, limits[1]))
        try:
            with pytest.raises(FileError, match="cannot be written .*make room, and try again"):
                journal.append(message("4"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.stat().st_size == size
        journal.append(message("4"))
    assert versions(path) == ["2", "3", "4"]


def test_a_journal_of_a_later_release(tmp_path):
    journal = filled(tmp_path / "j", 1)
    with journal.locked(), pytest.raises(FileError, match="use the release that wrote"):
        journal.append(message("5")[:3] + b"\xee" + message("5")[4:])  # another operation
    with pytest.raises(FileError, match=r"byte \d+: not a change .* use the release that wrote"):
        versions(tmp_path / "j")


def test_two_ids_after_one_change(tmp_path):
    journal = filled(tmp_path / "j", 2)
    with journal.locked():
        with pytest.raises(MismatchError, match="the parties had different rows"):
            journal.made(journal.entries[0], id_of(9))
        journal.made(journal.entries[0], id_of(1))


def test_ids_that_lead_in_a_circle(tmp_path):
    journal = Journal(tmp_path / "j", "words")
    with journal.locked():
        for i, (before, after) in enumerate([(0, 1), (1, 0), (0, 2)]):
            journal.made(journal.append(message(str(i + 2), id_of(before))), id_of(after))
        assert [entry.head.version for entry in journal.lacking(id_of(1))] == ["3", "4"]
        assert journal.lacking(id_of(2)) == []
