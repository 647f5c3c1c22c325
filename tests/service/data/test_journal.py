"""Journals that are torn, damaged or another table's: cut off, or refused with a clear error."""

import io
import os
import shutil

import numpy as np
import pytest

from nescio.errors import FileError
from nescio.service._data import Folder, recover
from nescio.service._data._journal import (
    HEAD_BYTES,
    RECORD_BYTES,
    Head,
    JournalReader,
    Record,
    encode_record,
)
from service.data.tables import all_rows, begin, change, fresh_rows, names_in, new_table, restart
from spec import journal as spec

HEAD = Head(3, b"o" * 16, b"b" * 16, b"n" * 16)
RECORDS = [
    Record(b"first", b"", b"1" * 16),
    Record(b"", b"moved", b"2" * 16),
    Record(bytes(100), b"NCRD" * 30, b"3" * 16),
]
PARTS = [
    HEAD.encode(),
    *(b"".join(encode_record(HEAD.name, i, one)) for i, one in enumerate(RECORDS)),
]
WHOLE = b"".join(PARTS)
ENDS = list(np.cumsum([len(part) for part in PARTS]))


def read(data):
    """Reads a journal; returns its records, and the bytes that are torn off."""
    reader = JournalReader(io.BytesIO(data))
    return list(reader), reader.torn_bytes


def test_the_bytes_of_a_journal():
    assert WHOLE[:24] == b"NESCIOJR" + bytes([2, 0, 0, 0, 0, 0, 0, 0, 3]) + bytes(7)
    assert len(PARTS[0]) == HEAD_BYTES == 88
    assert PARTS[2][:8] == b"NCRD" + bytes([5, 0, 0, 0])
    assert PARTS[2][8:24] == bytes([1]) + bytes(7) + bytes(8)
    assert PARTS[2][24:40] == b"2" * 16
    assert len(PARTS[2]) == RECORD_BYTES + 5
    assert read(WHOLE) == (RECORDS, 0)


def test_a_written_journal_is_that_of_the_specification(tmp_path):
    kept = begin(tmp_path / "words")
    first, ids, messages = kept.table.params.id, [kept.table.params.id], [b""]
    for stamp in range(1, 4):
        messages.append(change(kept.table, "update", [stamp], fresh_rows(stamp, 1)))
        ids.append(kept.table.params.id)
    data = kept.folder.file("journal", 1).read_bytes()
    assert spec.head(data)[:3] == (1, first, first)
    expected = [(message, b"", after) for message, after in zip(messages, ids, strict=True)]
    assert list(spec.records(data)) == expected
    assert [tuple(record) for record in read(data)[0]] == expected
    assert [tuple(record) for record in spec.records(WHOLE)] == [tuple(one) for one in RECORDS]


def test_a_torn_tail_is_cut_off_at_every_byte():
    for size in range(HEAD_BYTES, len(WHOLE)):
        complete = sum(end <= size for end in ENDS) - 1
        assert read(WHOLE[:size]) == (RECORDS[:complete], size - ENDS[complete])


def test_a_torn_tail_of_zeros_or_noise_is_cut_off():
    for tail in (bytes(5000), os.urandom(5000), b"NCRD" * 1000, PARTS[3][:-1] + b"x"):
        assert read(WHOLE[: ENDS[2]] + tail) == (RECORDS[:2], len(tail))


def test_a_damaged_byte_is_never_taken_for_a_record():
    for at in range(len(WHOLE)):
        data = bytearray(WHOLE)
        data[at] ^= 0x10
        if at < ENDS[2]:  # a record follows
            with pytest.raises(FileError, match=r"damaged|version|begin like"):
                read(bytes(data))
        else:
            assert read(bytes(data)) == (RECORDS[:2], len(PARTS[3]))


def test_a_missing_record_is_not_taken_for_a_torn_tail():
    with pytest.raises(FileError, match="record 1 at byte .* is damaged, and record 2 follows"):
        read(b"".join([PARTS[0], PARTS[1], PARTS[3]]))


def test_a_record_of_another_journal_is_not_accepted():
    other = b"".join(encode_record(b"m" * 16, 1, RECORDS[1]))
    assert read(WHOLE[: ENDS[1]] + other) == (RECORDS[:1], len(other))


def test_damage_is_found_across_the_parts_in_which_a_file_is_read():
    big = Record(bytes(3 << 20), b"", b"4" * 16)
    data = bytearray(WHOLE + b"".join(encode_record(HEAD.name, 3, big)) + PARTS[1])
    data += b"".join(encode_record(HEAD.name, 5, RECORDS[0]))
    with pytest.raises(FileError, match="record 4 at byte .* is damaged, and record 5 follows"):
        read(bytes(data))


def test_a_torn_change_is_cut_off_at_the_start(tmp_path):
    kept = begin(tmp_path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1))
    end = kept._writer.end
    change(kept.table, "update", [1], fresh_rows(2, 1))
    for size in (end + 1, end + RECORD_BYTES, kept._writer.end - 1):
        copy = tmp_path / f"torn-{size}"
        shutil.copytree(kept.folder.path, copy)
        os.truncate(copy / "journal-1", size)
        found = recover(Folder(copy))
        assert found.torn_bytes == size - end
        assert "bytes of an unfinished change cut off" in found.describe()
        assert found.kept.table[1][0] == 1
        change(found.kept.table, "update", [2], fresh_rows(3, 1))
        again = restart(found.kept)
        assert (again.changes, again.torn_bytes) == (2, 0)
        assert np.array_equal(all_rows(again.kept.table), all_rows(found.kept.table))


def damaged(kept, name, make):
    """Copies a folder, damages a file in it, and returns the error of a start."""
    copy = kept.folder.path.with_name("damaged")
    shutil.copytree(kept.folder.path, copy)
    make(copy / name)
    with pytest.raises(FileError) as caught:
        recover(Folder(copy))
    shutil.rmtree(copy)
    assert "from a backup" in str(caught.value)
    return str(caught.value)


def flip(at):
    def make(path):
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return make


@pytest.fixture
def kept(tmp_path):
    """A kept table with two changes since its second snapshot."""
    kept = begin(tmp_path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1))
    kept.snapshots.start()
    kept.snapshots.wait()
    change(kept.table, "update", [2], fresh_rows(2, 1))
    change(kept.table, "update", [3], fresh_rows(3, 1))
    return kept


def test_damaged_files_are_refused(kept):
    assert "record 1 at byte 160 is damaged" in damaged(kept, "journal-2", flip(200))
    assert "its head is damaged" in damaged(kept, "journal-2", flip(30))
    assert "version 3 of the format" in damaged(kept, "journal-2", flip(8))
    assert "it is damaged" in damaged(kept, "state-2", flip(-1))
    assert "version 3 of the format" in damaged(kept, "state-2", flip(8))
    assert "blocks have changed" in damaged(kept, "snapshot-2.nescio", flip(-1))


def test_missing_files_are_named(kept):
    missing = names_in(kept.folder) - {"lock"}
    assert sorted(missing) == ["journal-2", "snapshot-2.nescio", "state-2"]
    unlink = os.unlink
    assert "found the journals [], expected [2]" in damaged(kept, "journal-2", unlink)
    assert "state-2 cannot be read" in damaged(kept, "state-2", unlink)
    assert "and no snapshot" in damaged(kept, "snapshot-2.nescio", unlink)


def test_a_missing_journal_between_two_is_named(kept, monkeypatch):
    monkeypatch.setattr("nescio.service._data._snapshots.save_snapshot", lambda *_: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            kept._take(lambda: None)
        change(kept.table, "update", [4], fresh_rows(4, 1))
    assert "journals [2, 4], expected [2, 3]" in damaged(kept, "journal-3", os.unlink)
    cut = lambda path: os.truncate(path, path.stat().st_size - 1)  # noqa: E731
    assert "its end is missing" in damaged(kept, "journal-3", cut)
    assert np.array_equal(all_rows(restart(kept).kept.table), all_rows(kept.table))


def test_files_of_another_table_are_refused(kept, tmp_path):
    other = begin(tmp_path / "other", new_table(rows=700))
    change(other.table, "update", [1], fresh_rows(1, 1))
    other.snapshots.start()
    other.snapshots.wait()

    def replace(path):
        shutil.copy(other.folder.file("journal", 2).with_name(path.name), path)

    assert "journal of another table" in damaged(kept, "journal-2", replace)
    assert "not that of the state beside it" in damaged(kept, "snapshot-2.nescio", replace)


def test_a_journal_of_an_earlier_time_is_refused(kept, tmp_path):
    early = tmp_path / "early"
    shutil.copytree(kept.folder.path, early)
    change(kept.table, "update", [5], fresh_rows(5, 1))
    kept.snapshots.start()
    kept.snapshots.wait()

    def replace(path):
        shutil.copy(early / "journal-2", path)

    assert "journal of another table, or of another time" in damaged(kept, "journal-3", replace)
