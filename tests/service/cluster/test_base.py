"""The base of a data folder and its journals, without Ray: formats, damage, what is removed."""

from dataclasses import replace

import numpy as np
import pytest

from nescio.errors import FileError
from nescio.pir._change import Change, make_change
from nescio.pir._sharded import Part, write_shard
from nescio.pir._versions import LastChange
from nescio.service._cluster._base import (
    Base,
    clean,
    make_folder,
    shard_name,
    store_base,
    stored_base,
)
from nescio.service._cluster._head_open import open_head
from nescio.service._cluster._journal import HeadJournal
from tests.pir.sharded.test_shards import Local, sharded

RANDOM = np.random.default_rng(11)
VALUES = RANDOM.integers(256, size=(900, 16), dtype=np.uint8)


def one_base():
    head, _, _ = sharded(VALUES, "bit", 2)
    last = LastChange(b"n" * 16, b"c" * 32, b"i" * 16)
    parts = [Part(0, 3), Part(3, 8)]
    names = [shard_name(0, 7), shard_name(1, 7)]
    return Base(
        head.params, head.tops, 7, b"o" * 16, parts, names, last, b"12345678", b"i" * 16, b"vacant"
    )


def test_a_base_is_read_as_it_was_written(tmp_path):
    base = one_base()
    store_base(tmp_path / "new", base)
    found = stored_base(tmp_path / "new")
    assert found.tops.tobytes() == base.tops.tobytes()
    assert replace(found, tops=None) == replace(base, tops=None)
    assert found.file_of(Part(3, 8)) == "shard-1-7"
    with pytest.raises(FileError, match="found 2 shards in the data folder, none of them with"):
        found.file_of(Part(0, 8))


def test_a_base_without_files_has_the_older_format(tmp_path):
    base = one_base()
    older = base.params.to_json().encode() + b"\n" + base.tops.tobytes()
    (tmp_path / "base").write_bytes(older)
    found = stored_base(tmp_path)
    assert (found.params, found.number, found.files) == (base.params, 1, ())
    assert found.file_of(Part(0, 8)) is None
    store_base(tmp_path, found)
    assert (tmp_path / "base").read_bytes() == older


@pytest.mark.parametrize("at", [0, 9, 20, 60, 400, -1])
def test_a_damaged_base_is_refused(tmp_path, at):
    data = bytearray(one_base().encode())
    data[at] ^= 1
    (tmp_path / "base").write_bytes(data)
    with pytest.raises(FileError, match="base cannot be used"):
        stored_base(tmp_path)
    (tmp_path / "base").write_bytes(one_base().encode()[: 20 if at == 20 else at])
    with pytest.raises(FileError, match="base cannot be used"):
        stored_base(tmp_path)


def test_what_a_base_does_not_need_is_removed(tmp_path):
    kept = ["base", "lock", "journal-7", "journal-8", "journal-10", "shard-0-7", "shard-1-7"]
    gone = ["journal", "journal-6", "journal-9.ab12", "base.77", "shard-0-6", "shard-1-8.cd"]
    for name in [*kept, *gone, "notes.txt"]:
        (tmp_path / name).touch()
    clean(tmp_path, one_base())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "notes.txt"])


class Noted(Local):
    """Shards in this process, with the calls of the journal that a head makes."""

    journal = None

    def prepare(self, update):
        self.journal.tops = super().prepare(update)
        return self.journal.tops

    def commit(self, update):
        self.journal.updates.append(update)
        super().commit(update)


class Kept:
    """A head in a data folder, with shards in this process."""

    def __init__(self, folder):
        self.folder = folder
        first, self.tables, _ = sharded(VALUES, "bit", 2)
        if stored_base(folder) is None:
            store_base(folder, Base(first.params, first.tops))
        base = stored_base(folder)
        self.shards = Noted(self.tables)
        self.head = open_head(base, len(VALUES), 4, self.shards)
        self.journal = self.shards.journal = HeadJournal(self.head, folder, base)

    def change(self, row):
        message = Change(
            "update", self.head.next_version, np.array([row], np.uint64), VALUES[:1]
        ).encode(self.head.params)
        for update in self.journal.updates:
            for table in self.tables:
                if table.params.id == update.before:
                    table.make(update)
        make_change(self.head, message)

    def begin(self):
        """Does what a checkpoint does before files are written."""
        base = self.journal.advance()
        names = [shard_name(shard, base.number) for shard in (0, 1)]
        return replace(base, parts=[table.part for table in self.tables], files=names)

    def end(self):
        import os  # noqa: PLC0415

        os.close(self.journal._lock)
        return self.head.params


def test_changes_are_made_again_from_all_journals_since_the_base(tmp_path):
    kept = Kept(tmp_path)
    kept.change(1)
    kept.begin()
    kept.change(2)
    kept.begin()  # the first one was not completed
    kept.change(3)
    params, used = kept.end(), kept.journal.bytes
    again = Kept(tmp_path)
    assert again.head.params == params
    assert (len(again.journal.updates), again.journal.bytes) == (3, used)
    assert again.head.versions == kept.head.versions
    again.change(4)
    params = again.end()
    assert Kept(tmp_path).head.params == params


def test_a_base_with_files_is_followed_by_its_own_journal(tmp_path):
    kept = Kept(tmp_path)
    for row in (1, 2):
        kept.change(row)
    base = kept.begin()
    assert base.params == kept.head.params
    kept.change(3)
    for table, name in zip(kept.tables, base.files, strict=True):
        write_shard(tmp_path / name, table)
    kept.journal.switch(base)
    assert len(kept.journal.updates) == 1
    assert kept.journal.since(base.params.id) == kept.journal.updates
    assert not (tmp_path / "journal").exists()
    params = kept.end()
    again = Kept(tmp_path)
    assert again.head.params == params
    assert len(again.journal.updates) == 1
    assert again.head.has_had("2")  # before the checkpoint
    assert again.head.last_change == kept.head.last_change
    again.end()
    (tmp_path / "journal-2").unlink()
    with pytest.raises(FileError, match="journal-2 is missing: restore the folder from a backup"):
        Kept(tmp_path)


def test_a_journal_that_follows_another_version_is_refused(tmp_path):
    kept = Kept(tmp_path)
    kept.change(1)
    kept.begin()
    kept.end()
    (tmp_path / "journal").unlink()
    (tmp_path / "journal-2").rename(tmp_path / "journal")
    with pytest.raises(FileError, match="it has changes of another table"):
        Kept(tmp_path)


def test_a_folder_that_could_not_be_used_is_not_locked(tmp_path):
    kept = Kept(tmp_path)
    kept.change(1)
    params = kept.end()
    journal = tmp_path / "journal"
    data = journal.read_bytes()
    journal.write_bytes(b"damaged" + data[7:])
    for _ in range(2):
        with pytest.raises(FileError, match="it does not begin like a journal"):
            Kept(tmp_path)
    journal.write_bytes(data)
    assert Kept(tmp_path).head.params == params


def test_the_names_of_new_folders_are_durable(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("nescio.service._cluster._base.sync_folder", synced.append)
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path / "a", tmp_path]
