"""A table at one instant, as a data folder stores it: its memory, and all that is not in there."""

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ... import _core
from ..._arrays import ByteArray, IndexArray, as_threads
from ...errors import ArgumentError, FileError, MessageError
from .. import _stored as stored
from .._checksums import BLOCK_BYTES, Progress
from .._history import KnownIds
from .._keyed import KeyedLayout
from .._keyed._rows import KeyedRows
from .._layout_kind import layout_kind
from .._state import TableState
from .._table import Table
from .._versions import LastChange, UsedVersions
from ..batch import BatchTable


@dataclass(frozen=True, slots=True)
class Kept:
    """The parts of a table at one instant that are not in its memory.

    `used` are the versions that it has had, `ids` their ids, `extra` its vacant rows, `slots` and
    `words` the places of a keyed table's keys, which other tables lack: see
    `UsedVersions.to_bytes`, `KnownIds.to_bytes`, `Table.extra_state` and `Cuckoo.entries`.
    """

    used: bytes
    ids: bytes
    last: LastChange | None
    extra: bytes
    slots: IndexArray
    words: IndexArray

    @classmethod
    def of(cls, table: Table) -> "Kept":
        """Returns the parts of a table. The caller holds `table.changing()`."""
        used, ids, last = table.history()
        slots, words = np.zeros(0, np.int64), np.zeros((0, 4), np.uint64)
        if isinstance(table.target, KeyedRows):
            slots, words = table.target.places.entries()
        extra, places = table.extra_state(), slots.view(np.uint64)
        return cls(used.to_bytes(), ids.to_bytes(), last, extra, places, words)


def save_snapshot(path: Path, table: Table, state: TableState, pause: Callable[[], None]) -> None:
    """Writes a snapshot of a state, while the table changes; see `stored.write`.

    Each block is that of one instant, and no change waits for longer than the copy of one. A block
    may have changes that are later than the state: the journal, which begins with the state, has
    them too. `pause` is called after each block; what it raises ends the snapshot.
    """
    # Pages of their own: a heap that keeps freed memory would grow by blocks that fit no hole.
    buffer: ByteArray = np.frombuffer(mmap.mmap(-1, BLOCK_BYTES), np.uint8)

    def copy(block: ByteArray) -> ByteArray:
        pause()
        content = buffer[: len(block)]
        with table.reading():
            np.copyto(content, block)
        return content

    stored.write(
        path, state.params, state.records, state.tree, layout=state.layout, source=None, copy=copy
    )


def open_snapshot(path: Path, kept: Kept, threads: int, progress: Progress | None) -> Table:
    """Reads a snapshot into memory, which is a table after a replay of its journal.

    Raises FileError if the file is not a snapshot, or does not fit the other parts.
    """
    pool = _core.ThreadPool(as_threads(threads))
    found = stored.read(path, pool.threads, progress, snapshot=True)
    try:
        table = Table.of_stored(found, pool, kept.extra)
    except (ArgumentError, MessageError) as error:
        raise _unfit(path, error) from error
    used = UsedVersions.from_bytes(kept.used, table.params.version)
    table.restore(used, KnownIds.from_bytes(kept.ids, table.params.id), kept.last)
    kind = layout_kind(table.layout)
    try:
        if kind == "keyed":
            layout = KeyedLayout.from_bytes(table.layout)
            table.target = KeyedRows.restored(layout, kept.slots.view(np.int64), kept.words)
        elif kind == "batch":
            BatchTable(table)
    except (ArgumentError, MessageError) as error:
        raise _unfit(path, error) from error
    return table


def _unfit(path: Path, error: Exception) -> FileError:
    return FileError(f"{path} does not fit the file of its state: {error}")
