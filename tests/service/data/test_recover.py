"""Tables that start again from their data folders: nothing acknowledged is lost."""

import shutil

import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, FileError
from nescio.pir import KeyedTable
from nescio.pir._change import make_change
from nescio.pir._keyed import pack_keys
from nescio.pir.batch import BatchTable, FullPart, HotPart, Layout, Together, build
from nescio.service._data import Folder, recover
from service.data.tables import (
    all_rows,
    begin,
    change,
    fresh_rows,
    names_in,
    new_table,
    restart,
    same,
)


@pytest.mark.parametrize("output", ["bit", "u8", "u64"])
def test_changes_are_there_after_a_restart(tmp_path, output):
    kept = begin(tmp_path / "words", new_table(output=output))
    table = kept.table
    change(table, "update", [3, 599, 3], fresh_rows(1, 3))
    change(table, "update", [4], fresh_rows(2, 1), version="named")
    change(table, "insert", [0, 600], fresh_rows(3, 2))
    change(table, "update", np.arange(500), fresh_rows(4, 500))
    change(table, "delete", [1, 2])
    change(table, "update", [5], fresh_rows(5, 1))
    found = restart(kept)
    assert found.changes == 6
    assert found.torn_bytes == 0
    assert "6 changes made again" in found.describe()
    assert same(found.kept.table, table)
    again = nescio.Table(all_rows(table), version=table.params.version, output=output)
    assert found.kept.table.params == again.params


def test_a_restart_without_changes(tmp_path):
    kept = begin(tmp_path / "words")
    found = restart(kept)
    assert same(found.kept.table, kept.table)
    assert found.changes == 0
    assert found.kept.table.last_change is None


def test_changes_go_on_after_each_restart(tmp_path):
    kept, model = begin(tmp_path / "words"), fresh_rows(0, 600)
    for stamp in range(1, 6):
        change(kept.table, "update", [stamp, 7], fresh_rows(stamp, 2))
        model[[stamp, 7]] = fresh_rows(stamp, 2)
        kept = restart(kept).kept
        assert np.array_equal(all_rows(kept.table), model)
        assert kept.table.params.version == str(stamp + 1)


def test_used_versions_and_the_last_change_survive(tmp_path):
    kept = begin(tmp_path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1), version="may")
    last = change(kept.table, "update", [1], fresh_rows(2, 1), version="june")
    for snapshot in (False, True, False):
        if snapshot:
            kept.snapshots.start()
        table = restart(kept).kept.table
        kept = table.journal
        for used in ("1", "may", "june"):
            assert table.has_had(used)
            with pytest.raises(ArgumentError, match="has had already"):
                change(table, "update", [1], fresh_rows(3, 1), version=used)
        assert not table.has_had("july")
        assert table.last_change is not None
        params = table.params
        assert make_change(table, last) == params  # the repeated message changes nothing
        assert table.params == params


def test_a_crash_between_the_journal_and_the_change(tmp_path):
    kept = begin(tmp_path / "words")
    append = kept._writer.append

    def append_and_copy(record):
        append(record)
        shutil.copytree(kept.folder.path, tmp_path / "crashed")

    kept._writer.append = append_and_copy
    data = change(kept.table, "insert", [0], fresh_rows(9, 1))
    table = recover(Folder(tmp_path / "crashed")).kept.table
    assert same(table, kept.table)
    make_change(table, data)  # the client repeats what was never acknowledged
    assert len(table) == 601


def test_a_change_that_fails_after_the_journal_is_taken_back(tmp_path, monkeypatch):
    kept = begin(tmp_path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1))
    before = all_rows(kept.table)
    with monkeypatch.context() as patch:
        patch.setattr(kept.table._lock, "write", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            change(kept.table, "update", [2], fresh_rows(2, 1))
    with pytest.raises(FileError, match="failed after it was in the journal"):
        change(kept.table, "update", [3], fresh_rows(3, 1))
    assert np.array_equal(all_rows(kept.table), before)
    found = restart(kept)
    assert found.changes == 1
    assert np.array_equal(all_rows(found.kept.table), before)
    change(found.kept.table, "update", [3], fresh_rows(3, 1))


def test_snapshots_replace_journals(tmp_path):
    kept = begin(tmp_path / "words")
    for stamp in range(1, 4):
        change(kept.table, "update", [stamp], fresh_rows(stamp, 1))
        kept.snapshots.start()
        kept.snapshots.wait()
    number = 1 + kept.snapshots.taken
    assert number == 4
    names = {f"journal-{number}", f"snapshot-{number}.nescio", f"state-{number}", "lock"}
    assert names_in(kept.folder) == names
    change(kept.table, "update", [7], fresh_rows(7, 1))
    found = restart(kept)
    assert found.changes == 1
    assert same(found.kept.table, kept.table)


def test_files_are_for_the_owner_alone(tmp_path):
    kept = begin(tmp_path / "data" / "words")
    kept.snapshots.start()
    kept.snapshots.wait()
    assert kept.folder.path.stat().st_mode & 0o777 == 0o700
    for path in kept.folder.path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_direct_change_of_a_kept_table_is_refused(tmp_path):
    kept = begin(tmp_path / "words")
    for make in (
        lambda: kept.table.update([1], fresh_rows(1, 1)),
        lambda: kept.table.insert([1], fresh_rows(1, 1)),
        lambda: kept.table.delete([1]),
    ):
        with pytest.raises(ArgumentError, match="through the service"):
            make()
    assert np.array_equal(all_rows(kept.table), fresh_rows(0, 600))


def test_one_process_at_a_time(tmp_path):
    kept = begin(tmp_path / "words")
    with pytest.raises(FileError, match="in use by another process"):
        Folder(tmp_path / "words")
    kept.close()
    Folder(tmp_path / "words").close()


WORDS = [f"word {i}" for i in range(400)]


def keyed_table():
    return KeyedTable(WORDS[:200], fresh_rows(0, 200), threads=1)


def hashes(owner, keys):
    return pack_keys(keys).hashed(owner.layout.seed, owner._pool)


@pytest.mark.parametrize("snapshot", [False, True])
def test_keys_survive_a_restart(tmp_path, snapshot):
    owner = keyed_table()
    kept = begin(tmp_path / "words", owner.table)
    random = np.random.default_rng(1)
    there = dict(zip(WORDS[:200], fresh_rows(0, 200), strict=True))
    for stamp in range(1, 31):
        kind = ("insert", "update", "delete")[stamp % 3]
        if kind == "insert":
            keys = list(random.choice(WORDS, 20, replace=False))
        else:
            keys = list(random.choice(sorted(there), 10, replace=False))
        rows = fresh_rows(stamp, len(keys))
        change(owner.table, kind, hashes(owner, keys), rows)
        for key, row in zip(keys, rows, strict=True):
            there[key] = row
            if kind == "delete":
                del there[key]
        if snapshot and stamp in (7, 19):
            kept.snapshots.start()
            kept.snapshots.wait()
    found = restart(kept)
    table = found.kept.table
    assert same(table, owner.table)
    slots = table.target.places.find(hashes(owner, WORDS))
    assert {word for word, slot in zip(WORDS, slots, strict=True) if slot >= 0} == set(there)
    for again in (owner.table, table):
        again.journal = None
        change(again, "insert", hashes(owner, WORDS), fresh_rows(99, 400), version="all")
    assert same(table, owner.table)


def test_a_batch_table_survives_a_restart(tmp_path):
    layout = Layout(
        600,
        FullPart(5, hashes=2, seed=3),
        HotPart(np.arange(0, 600, 9), 4, keys=2),
        Together(np.arange(3), np.array([[7, -1], [8, 9], [0, 1]])),
        lookups=8,
    )
    batch = build(fresh_rows(0, 600), layout, threads=1)
    kept, model = begin(tmp_path / "words", batch.table), fresh_rows(0, 600)
    for stamp in range(1, 8):
        where = np.array([0, 7, 8, stamp, stamp + 300, 7])
        change(kept.table, "update", where, fresh_rows(stamp, 6))
        model[where] = fresh_rows(stamp, 6)
    found = restart(kept)
    assert same(found.kept.table, batch.table)
    again = BatchTable(found.kept.table)
    assert np.array_equal(again[np.arange(600)], model)


def test_a_folder_without_files_has_no_table(tmp_path):
    folder = Folder(tmp_path / "words")
    assert recover(folder) is None
    folder.close()
