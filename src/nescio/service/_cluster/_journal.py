"""The journal of a sharded table: one for all shards, because one record decides about a change.

A change that is in the journal is made: shards that have not made it are sent it again. The format
is that of a table's journal (../_data/_journal.py). A record's second part has the tops that the
change has changed, the numbers and then the hashes, so that the head of the table needs no shard to
start again.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..._arrays import ByteArray, IndexArray
from ..._disk import sync_folder
from ...errors import FileError, NescioError
from ...pir import TableParams
from ...pir._change import Change, make_change, row_kind
from ...pir._hash_shape import HASH_BYTES
from ...pir._sharded import HeadTable, RowUpdate
from ...pir._versions import Record
from .._data._journal import HEAD_BYTES, Head, JournalReader, JournalWriter
from .._data._journal import Record as JournalRecord
from ._base import Base, clean, journal_path, make_folder, store_base

Tops = tuple[IndexArray, ByteArray]
_LEAST_BYTES = 32 << 20
_MAX_CHANGES = 4096


class HeadJournal:
    """The journals since the base, and the changes since it, which shards may lack.

    A checkpoint begins a new journal; its base, when all files are complete, drops the journals
    before. Without a folder changes are in memory only. Raises FileError if the folder cannot be
    used, or holds changes of another table.
    """

    def __init__(self, table: HeadTable, folder: Path | None, base: Base) -> None:
        self._table = table
        self._folder = folder
        self.base = base
        self.updates: list[RowUpdate] = []
        self.bytes = 0  # of all records since the base
        self._mark = 0  # those before the latest journal
        self.tops: Tops = (np.zeros(0, np.uint64), np.zeros((0, HASH_BYTES), np.uint8))
        self._writer: JournalWriter | None = None
        if folder is not None:
            self._lock = _locked(folder)
            try:
                self._writer = self._open(folder)
                clean(folder, base)
            except BaseException:  # the head tries again, and locks the folder again
                os.close(self._lock)
                raise
        table.journal = self

    @property
    def durable(self) -> bool:
        """True if changes outlast the process."""
        return self._writer is not None

    def check(self) -> None:
        """Raises FileError if no change can be recorded."""
        if self._writer is not None:
            self._writer.check()

    @contextmanager
    def recording(self, message: bytes) -> Iterator[Record]:
        """Gives the function that records the change of a message, which the block makes."""

        def record(params: TableParams) -> None:
            numbers, hashes = self.tops
            if self._writer is not None:
                moved = numbers.tobytes() + hashes.tobytes()
                before = self._writer.end
                self._writer.append(JournalRecord(message, moved, params.id))
                self.bytes += self._writer.end - before

        yield record

    def is_long(self, most_bytes: int | None) -> bool:
        """Tests if a checkpoint is due: by default at an eighth of the table's bytes."""
        most = max(_LEAST_BYTES, self._table.bytes // 8) if most_bytes is None else most_bytes
        return self.durable and (self.bytes > most or len(self.updates) > _MAX_CHANGES)

    def advance(self) -> Base:
        """Begins a new journal; returns the base before it, without files.

        The caller holds `changing`. Raises FileError; changes then go on in the journal before.
        """
        assert self._folder is not None
        assert self._writer is not None
        self._writer.check()
        old, params = self._writer.head, self._table.params
        path = journal_path(self._folder, old.number + 1)
        try:
            writer = JournalWriter.create(path, Head.new(old.number + 1, old.origin, params.id))
            sync_folder(self._folder)
        except OSError as error:
            if path.exists():  # a start would read it, and miss the changes that follow before it
                self._writer.failure = f"a new journal could not be begun: {error.strerror}"
            raise FileError(f"{path} cannot be written: {error.strerror}") from error
        self._writer.close()
        self._writer = writer
        self._mark = self.bytes
        used, ids, last = self._table.history()
        return Base(
            params,
            self._table.tops.copy(),
            writer.head.number,
            old.origin,
            last=last,
            used=used.to_bytes(),
            ids=ids.to_bytes(),
            vacancy=self._table.extra_state(),
        )

    def switch(self, base: Base) -> None:
        """Takes the base of the latest `advance`, whose files are complete, in place of the older.

        Raises FileError if it cannot be stored; the older one then counts.
        """
        assert self._folder is not None
        store_base(self._folder, base)
        with self._table.changing():
            kept = self.since(base.params.id)
            assert kept is not None
            self.base, self.updates = base, list(kept)
            self.bytes -= self._mark
        clean(self._folder, base)

    def since(self, ident: bytes) -> list[RowUpdate] | None:
        """Lists the changes since the version with an id; None if that is unknown."""
        if ident == self._table.params.id:
            return []
        for first, update in enumerate(self.updates):
            if update.before == ident:
                return self.updates[first:]
        return None

    def _open(self, folder: Path) -> JournalWriter:
        """Makes the changes of all journals since the base again; returns the last one."""
        number = self.base.number
        path = journal_path(folder, number)
        if not path.exists():
            if self.base.files or journal_path(folder, number + 1).exists():
                raise FileError(f"{path} is missing: restore the folder from a backup")
            self._create(path)
        while True:
            reader = self._read(path)
            following = journal_path(folder, number + 1)
            if not following.exists():
                break
            number, path = number + 1, following
        try:
            writer = JournalWriter(path, reader.head, reader.end, reader.count)
            if reader.torn_bytes:
                writer.cut()
        except OSError as error:
            raise FileError(f"{path} cannot be used: {error.strerror}") from error
        return writer

    def _create(self, path: Path) -> None:
        ident = self.base.params.id
        try:
            JournalWriter.create(path, Head.new(self.base.number, ident, ident)).close()
            sync_folder(path.parent)
        except OSError as error:
            raise FileError(f"{path} cannot be used: {error.strerror}") from error

    def _read(self, path: Path) -> JournalReader:
        """Makes the changes of a journal again."""
        try:
            with path.open("rb") as file:
                reader = JournalReader(file)
                if reader.head.base != self._table.params.id:
                    raise FileError("it has changes of another table, expected those of this one")
                for record in reader:
                    self._replay(record)
        except OSError as error:
            raise FileError(f"{path} cannot be used: {error.strerror}") from error
        except NescioError as error:
            raise FileError(f"the journal {path}: {error}") from error
        self.bytes += reader.end - HEAD_BYTES
        return reader

    def _replay(self, record: JournalRecord) -> None:
        """Makes a recorded change at the head, with the tops that are in the record."""
        count = len(record.moved) // (8 + HASH_BYTES)
        numbers = np.frombuffer(record.moved[: 8 * count], np.uint64)
        hashes = np.frombuffer(record.moved[8 * count :], np.uint8).reshape(-1, HASH_BYTES)
        shards, self._table.shards = self._table.shards, _Replayed(self, (numbers, hashes))
        try:
            params = make_change(self._table, record.message)
        finally:
            self._table.shards = shards
        if params.id != record.after:
            kind = Change.parse(params, record.message, row_kind(self._table), None)
            raise FileError(f"change {kind.version!r} makes {params.id.hex()}, it is damaged")


class _Replayed:
    """Takes the place of shards while the changes of a journal are made again."""

    def __init__(self, journal: HeadJournal, tops: Tops) -> None:
        self._journal = journal
        self._tops = tops

    def prepare(self, update: RowUpdate) -> Tops:
        """Returns the tops of the record."""
        del update
        return self._tops

    def commit(self, update: RowUpdate) -> None:
        """Notes the change for shards that lack it."""
        self._journal.updates.append(update)

    def abandon(self, update: RowUpdate) -> None:
        """Does nothing: no shard has prepared anything."""


def _locked(folder: Path) -> int:
    """Locks a folder, which it makes. Raises FileError if another process has it."""
    try:
        make_folder(folder)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FileError(f"the data folder {folder} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise FileError(
            f"the data folder {folder} is in use by another process: stop it, or give each table "
            "a folder of its own"
        ) from error
    return lock
