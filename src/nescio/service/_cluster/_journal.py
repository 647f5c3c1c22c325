"""The journal of a sharded table: one for all shards, because one record decides about a change.

A change that is in the journal is made: shards that have not made it are sent it again. The format
is that of a table's journal (../_data/_journal.py). A record's second part has the tops that the
change has changed, the numbers and then the hashes, so that the head of the table needs no shard to
start again.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..._arrays import ByteArray, IndexArray
from ..._disk import replacing, sync_folder
from ...errors import FileError, NescioError
from ...pir import TableParams
from ...pir._change import Change, make_change, row_kind
from ...pir._hash_shape import HASH_BYTES
from ...pir._sharded import HeadTable, RowUpdate
from ...pir._versions import Record
from .._data._journal import Head, JournalReader, JournalWriter
from .._data._journal import Record as JournalRecord

Tops = tuple[IndexArray, ByteArray]
Base = tuple[TableParams, ByteArray]
"""The parameters and all tops of a table before the first change of its journal."""


def stored_base(folder: Path | None) -> Base | None:
    """Reads the base of a folder; None if there is none. Raises FileError if it is damaged."""
    path = None if folder is None else folder / "base"
    if path is None or not path.exists():
        return None
    try:
        text, _, tops = path.read_bytes().partition(b"\n")
        params = TableParams.from_dict(json.loads(text))
        hashes = np.frombuffer(tops, np.uint8).reshape(-1, HASH_BYTES)
    except (OSError, ValueError, NescioError) as error:
        raise FileError(f"{path} cannot be used: {error}") from error
    if params.digest_of(hashes) != params.digest:
        raise FileError(f"{path} is damaged: restore the folder from a backup")
    return params, hashes


def store_base(folder: Path, base: Base) -> None:
    """Writes the base of a folder, which it makes. Raises FileError if that fails."""
    params, tops = base
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(folder / "base") as file:
            file.write(params.to_json().encode() + b"\n" + tops.tobytes())
        sync_folder(folder)
    except OSError as error:
        raise FileError(f"the data folder {folder} cannot be written: {error.strerror}") from error


class HeadJournal:
    """The journal of a table's head, which also keeps the changes that shards may lack.

    Without a folder changes are in memory only. Raises FileError if the folder cannot be used, or
    holds changes of another table.
    """

    def __init__(self, table: HeadTable, folder: Path | None) -> None:
        self._table = table
        self.updates: list[RowUpdate] = []
        self.tops: Tops = (np.zeros(0, np.uint64), np.zeros((0, HASH_BYTES), np.uint8))
        self._writer: JournalWriter | None = None
        if folder is not None:
            self._lock = _locked(folder)
            self._writer = self._open(folder / "journal")
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
                self._writer.append(JournalRecord(message, moved, params.id))

        yield record

    def since(self, ident: bytes) -> list[RowUpdate] | None:
        """Lists the changes since the version with an id; None if that is unknown."""
        if ident == self._table.params.id:
            return []
        for first, update in enumerate(self.updates):
            if update.before == ident:
                return self.updates[first:]
        return None

    def _open(self, path: Path) -> JournalWriter:
        base = self._table.params.id
        try:
            if not path.exists():
                return JournalWriter.create(path, Head.new(1, base, base))
            with path.open("rb") as file:
                reader = JournalReader(file)
                if reader.head.base != base:
                    raise FileError("it has changes of another table, expected those of this one")
                for record in reader:
                    self._replay(record)
            writer = JournalWriter(path, reader.head, reader.end, reader.count)
            if reader.torn_bytes:
                writer.cut()
        except OSError as error:
            raise FileError(f"{path} cannot be used: {error.strerror}") from error
        except NescioError as error:
            raise FileError(f"the journal {path}: {error}") from error
        return writer

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
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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
