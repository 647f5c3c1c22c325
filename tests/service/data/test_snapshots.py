"""Snapshots that are taken while the table changes."""

import contextlib
import io
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

import nescio
from nescio.errors import FileError
from nescio.pir import KeyedTable
from nescio.pir._keyed import pack_keys
from nescio.pir.batch import FullPart, HotPart, Layout, Together, build
from nescio.service._data import Folder, recover
from nescio.service._data._journal import JournalReader
from service.data.tables import all_rows, begin, change, fresh_rows, new_table, restart, same

ROWS = 3000


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("nescio.pir._checksums.BLOCK_BYTES", 4096)


class Plain:
    """Random changes of a table; at times of its number of rows."""

    def __init__(self, random, **options):
        self.random = random
        self.table = new_table(ROWS, **options)
        self.stamp = 0

    def change(self):
        self.stamp += 1
        kind = self.random.choice(["update"] * 12 + ["dense", "insert", "delete"])
        count = int(self.random.integers(1, 40))
        if kind == "dense":
            count = len(self.table) // 3
        if kind in ("update", "dense"):
            where = self.random.integers(len(self.table), size=count)
            change(self.table, "update", where, fresh_rows(self.stamp, count))
        elif kind == "insert":
            where = self.random.integers(len(self.table) + 1, size=count)
            change(self.table, "insert", where, fresh_rows(self.stamp, count))
        else:
            where = self.random.choice(len(self.table), count, replace=False)
            change(self.table, "delete", where)


WORDS = [f"word {i}" for i in range(4000)]


class Keyed:
    """Random changes of a table with keys, which moves keys and grows."""

    def __init__(self, random):
        self.random = random
        self.owner = KeyedTable(WORDS[:700], fresh_rows(0, 700), threads=1)
        self.table = self.owner.table
        self.there = set(WORDS[:700])
        self.stamp = 0

    def change(self):
        self.stamp += 1
        kind = self.random.choice(["insert", "insert", "update", "delete"])
        choice = WORDS if kind == "insert" else sorted(self.there)
        keys = list(self.random.choice(choice, 5, replace=False))
        words = pack_keys(keys).hashed(self.owner.layout.seed, self.owner._pool)
        change(self.table, kind, words, fresh_rows(self.stamp, 5))
        self.there = self.there - set(keys) if kind == "delete" else self.there | set(keys)


class Batch:
    """Random updates of a table with a batch layout."""

    def __init__(self, random):
        self.random = random
        near = Together(np.arange(300), random.integers(ROWS, size=(300, 2)))
        full = FullPart(16, hashes=2, seed=3)
        layout = Layout(ROWS, full, HotPart(np.arange(0, ROWS, 9), 4, keys=2), near, lookups=8)
        self.table = build(fresh_rows(0, ROWS), layout, threads=1).table
        self.stamp = 0

    def change(self):
        self.stamp += 1
        where = self.random.integers(ROWS, size=20)
        change(self.table, "update", where, fresh_rows(self.stamp, 20))


class Updates(Plain):
    """Random updates of a table in bins."""

    def __init__(self, random):
        super().__init__(random, bins=[(10, 100), (4, 500)])

    def change(self):
        self.stamp += 1
        count = int(self.random.integers(1, 40))
        where = self.random.integers(ROWS, size=count)
        change(self.table, "update", where, fresh_rows(self.stamp, count))


MAKERS = {
    "bit": Plain,
    "u64": lambda random: Plain(random, output="u64"),
    "bins": Updates,
    "keyed": Keyed,
    "batch": Batch,
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("seed", range(6))
def test_changes_between_the_copies_of_blocks(tmp_path, maker, seed):
    """A start gives the table bit for bit, wherever changes fell between copies of blocks."""
    random = np.random.default_rng(seed)
    model = MAKERS[maker](random)
    kept = begin(tmp_path / "words", model.table)
    copies = 0

    def pause():
        nonlocal copies
        for _ in range(random.poisson(0.7)):
            model.change()
        if random.random() < 0.05:  # a crash at this instant
            copies += 1
            crashed = tmp_path / f"crash-{copies}"
            shutil.copytree(kept.folder.path, crashed)
            found = recover(Folder(crashed)).kept
            assert same(found.table, model.table)
            found.close()

    for _ in range(2):
        for _ in range(random.integers(4)):
            model.change()
        kept._take(pause)
        for _ in range(random.integers(4)):
            model.change()
    found = restart(kept)
    assert same(found.kept.table, model.table)
    assert found.kept.table.last_change == model.table.last_change
    rows = all_rows(model.table)
    assert nescio.Table(rows, threads=1, output=model.table.params.output).bytes > 0


def test_a_snapshot_is_not_a_table_without_its_journal(tmp_path):
    kept = begin(tmp_path / "words")
    with pytest.raises(FileError, match="only with its journal"):
        nescio.Table.load(kept.folder.file("snapshot", 1))
    whole = tmp_path / "words.nescio"
    kept.table.save(whole)
    shutil.copy(whole, kept.folder.file("snapshot", 1))
    kept.close()
    with pytest.raises(FileError, match="is a whole table, expected a snapshot"):
        recover(Folder(kept.folder.path))


@pytest.mark.parametrize("maker", ["bit", "keyed"])
def test_a_snapshot_cut_short_at_every_block(tmp_path, maker):
    """A crash or a full disk in any block leaves the older snapshot with all journals."""
    random = np.random.default_rng(1)
    model = MAKERS[maker](random)
    kept = begin(tmp_path / "words", model.table)
    for stop in range(1000):
        blocks = 0

        def pause(stop=stop):
            nonlocal blocks
            blocks += 1
            if blocks > stop:
                crashed = tmp_path / f"crash-{stop}"
                shutil.copytree(kept.folder.path, crashed)
                found = recover(Folder(crashed)).kept
                assert same(found.table, model.table)
                found.close()
                shutil.rmtree(crashed)
                raise OSError(28, "No space left on device")

        model.change()
        with contextlib.suppress(FileError):
            kept._take(pause)
            break
        model.change()
        assert {path.suffix for path in kept.folder.path.iterdir()} <= {"", ".nescio"}
    assert stop > 5
    assert same(restart(kept).kept.table, model.table)


def test_the_older_snapshot_is_removed_after_the_new_one_is_durable(tmp_path, monkeypatch):
    kept, order = begin(tmp_path / "words"), []

    def note(what, make):
        def noted(*arguments, **options):
            order.append(what)
            return make(*arguments, **options)

        return noted

    folder = kept.folder
    monkeypatch.setattr("os.fsync", note("fsync", os.fsync))
    monkeypatch.setattr("pathlib.Path.replace", note("rename", Path.replace))
    monkeypatch.setattr("pathlib.Path.unlink", note("unlink", Path.unlink))
    kept._take(lambda: None)
    synced = ["fsync", "rename", "fsync"]  # the file, its name, the folder
    assert order == [*synced, *synced, *synced, *["unlink"] * 3, "fsync"]
    assert folder.numbers("snapshot") == [2]


def test_a_long_journal_starts_a_snapshot(tmp_path, monkeypatch):
    kept = begin(tmp_path / "words")
    monkeypatch.setattr("nescio.service._data._kept.Backlog.MAX_CHANGES", 5)
    for stamp in range(1, 8):
        change(kept.table, "update", [1], fresh_rows(stamp, 1))
    kept.snapshots.wait()
    assert kept.snapshots.taken == 1
    assert kept.backlog.changes <= 1
    assert same(restart(kept).kept.table, kept.table)


def test_changes_and_lookups_go_on_during_a_snapshot(tmp_path):
    kept = begin(tmp_path / "words", new_table(20_000))
    at_a_block, go_on = threading.Event(), threading.Event()

    def pause():
        at_a_block.set()
        assert go_on.wait(20)

    thread = threading.Thread(target=kept._take, args=(pause,))
    thread.start()
    assert at_a_block.wait(20)
    change(kept.table, "update", [1], fresh_rows(1, 1))
    assert kept.table[1][0] == 1
    go_on.set()
    thread.join(20)
    assert same(restart(kept).kept.table, kept.table)


def test_the_end_of_the_service_ends_a_snapshot(tmp_path):
    kept = begin(tmp_path / "words", new_table(20_000))
    kept.snapshots.start()
    kept.close()
    with pytest.raises(FileError, match="the service ends"):
        change(kept.table, "update", [1], fresh_rows(1, 1))
    found = recover(Folder(kept.folder.path))
    assert same(found.kept.table, kept.table)
    found.kept.close()


def test_keys_that_move_while_a_snapshot_is_taken(tmp_path):
    """The snapshot has the rows after the moves, so that a start must not move them once more."""
    owner = KeyedTable(WORDS[:700], fresh_rows(0, 700), threads=1)
    kept = begin(tmp_path / "words", owner.table)
    extra = iter(range(700, 778))

    def pause():
        for number in extra:
            words = pack_keys([WORDS[number]]).hashed(owner.layout.seed, owner._pool)
            change(owner.table, "insert", words, fresh_rows(number, 1))

    kept._take(pause)
    data = kept.folder.file("journal", 2).read_bytes()
    assert any(record.moved for record in JournalReader(io.BytesIO(data)))
    assert same(restart(kept).kept.table, owner.table)


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """A kept table whose journal is long after 5 changes, and whose first snapshot fails."""
    kept = begin(tmp_path / "words")
    monkeypatch.setattr("nescio.service._data._kept.Backlog.MAX_CHANGES", 5)

    def no_room(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("nescio.service._data._snapshots.save_snapshot", no_room)
        for stamp in range(1, 7):
            change(kept.table, "update", [1], fresh_rows(stamp, 1))
        kept.snapshots.wait()
    assert (kept.snapshots.taken, kept.snapshots.failed) == (0, 1)
    return kept


def test_after_a_failed_snapshot_the_next_one_is_not_late(failing, monkeypatch):
    monkeypatch.setattr("nescio.service._data._snapshots.Snapshots.RETRY_SECONDS", 0)
    change(failing.table, "update", [1], fresh_rows(7, 1))
    failing.snapshots.wait()
    assert failing.snapshots.taken == 1
    assert failing.backlog.changes <= 1
    assert same(restart(failing).kept.table, failing.table)


def test_after_a_failed_snapshot_the_next_one_waits_a_minute(failing):
    """A full disk is not written with each change."""
    for stamp in range(7, 20):
        change(failing.table, "update", [1], fresh_rows(stamp, 1))
    failing.snapshots.wait()
    assert (failing.snapshots.taken, failing.snapshots.failed) == (0, 1)
    assert failing.backlog.changes == 19
    assert same(restart(failing).kept.table, failing.table)


@pytest.mark.parametrize(
    "name", ["pathlib.Path.replace", "nescio.service._data._folder.sync_folder"]
)
def test_a_journal_that_cannot_be_begun_loses_no_change(tmp_path, monkeypatch, name):
    kept = begin(tmp_path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1))

    def fail(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(name, fail)
        kept.snapshots.start()
        kept.snapshots.wait()
    assert kept.snapshots.failed == 1
    with contextlib.suppress(FileError):  # after a failed synchronization
        change(kept.table, "update", [2], fresh_rows(2, 1))
    found = restart(kept)
    assert same(found.kept.table, kept.table)
    change(found.kept.table, "update", [3], fresh_rows(3, 1))
