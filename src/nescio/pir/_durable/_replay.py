"""Changes of a journal, made once more on the table of an older snapshot.

The memory of a snapshot may be later than the changes to make: blocks were copied one by one. Each
change overwrites whole rows with known contents, and its rows are those that it changed before. So
after the last change all rows are right, and the id of the table proves it; in between they may
not be, and ids are not compared. A change that builds the table anew reads rows of the memory, but
nothing later than it has reached the memory from which it was built.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array, ByteArray, IndexArray
from ...errors import FileError, NescioError
from .._bins import Bins
from .._change import Change, last_change_of, row_kind
from .._keyed._rows import KeyedRows
from .._params import TableParams
from .._table import Table

_MAX_WAITING = 64 << 20


class _Update(NamedTuple):
    """Rows to overwrite, with a target's or with the table's own indices."""

    indices: IndexArray
    rows: Array
    version: str


class Replay:
    """Makes changes on a table from a snapshot, whose journal is not attached yet.

    Consecutive updates are made as one: the last row for an index wins. `count` is the number of
    changes, `slow` that of changes that could not be joined to others.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._id = table.params.id
        self._waiting: list[_Update] = []
        self._waiting_bytes = 0
        self._last: bytes | None = None
        self.count = 0
        self.slow = 0

    def add(self, message: bytes, moved: bytes, after: bytes) -> None:
        """Makes a change, at the latest in `finish`; `after` is the id of the table after it.

        `moved` has the rows of `Target.moved` when it was made. Raises FileError if it does not
        follow the change before it.
        """
        table = self._table
        try:
            change = Change.parse(table.params, message, row_kind(table), self._id)
            if isinstance(table.target, KeyedRows):
                self._add_keyed(table.target, change, moved)
            elif change.operation == "update":
                self._wait(_Update(change.indices, change.values(table), change.version))
            else:
                self._make_all()
                self.slow += 1
                change.apply(table)
        except NescioError as error:
            raise FileError(f"change {self.count + 1} of the journal: {error}") from error
        self._id, self._last = after, message
        self._table.history()[1].add(after)
        self.count += 1

    def finish(self) -> None:
        """Makes all changes. Raises FileError if the table is not that of the last one."""
        try:
            self._make_all()
        except NescioError as error:
            raise FileError(f"changes up to {self.count} of the journal: {error}") from error
        if self._table.params.id != self._id:
            raise FileError(
                f"the table has the id {self._table.params.id.hex()} after all changes of the "
                f"journal, expected {self._id.hex()}"
            )
        if self._last is not None:
            versions, ids, _ = self._table.history()
            self._table.restore(versions, ids, last_change_of(self._last))

    def _add_keyed(self, target: KeyedRows, change: Change, moved: bytes) -> None:
        values = change.values(self._table)
        stand_in: Any = _StandIn(self, moved)
        target.change(stand_in, change.operation, change.indices, values, change.version)

    def _wait(self, update: _Update) -> None:
        self._waiting.append(update)
        self._waiting_bytes += update.rows.nbytes + update.indices.nbytes
        if self._waiting_bytes > max(_MAX_WAITING, self._table.bytes // 8):
            self._make_all()

    def _make_all(self) -> None:
        """Makes the updates that wait, as one."""
        if not self._waiting:
            return
        table, version = self._table, self._waiting[-1].version
        indices = np.concatenate([one.indices for one in self._waiting])
        rows = np.concatenate([one.rows for one in self._waiting])
        versions, _, _ = table.history()
        for one in self._waiting[:-1]:
            versions.add(one.version)
        self._waiting, self._waiting_bytes = [], 0
        if table.target is None or isinstance(table.target, KeyedRows):
            table.update(indices, rows, version=version)
        else:
            table.target.change(table, "update", indices, rows, version)


class _StandIn:
    """Stands in for the table of a keyed table whose changes are made again.

    Updates wait. Rows that a change moved come from the journal, because the memory may be later; a
    change that builds the table anew reads them all, after the updates before it.
    """

    def __init__(self, replay: Replay, moved: bytes) -> None:
        self._replay = replay
        self._moved = moved

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Does nothing: no other thread knows the table."""
        yield

    def __getitem__(self, slots: IndexArray) -> ByteArray:
        """Returns rows of the physical table."""
        row_bytes = self._replay._table.params.row_bytes
        if self._moved or not len(slots):
            if len(self._moved) != len(slots) * row_bytes:
                raise FileError(
                    f"found {len(self._moved)} bytes of moved rows, expected {len(slots)} rows of "
                    f"{row_bytes} bytes"
                )
            return np.frombuffer(self._moved, np.uint8).reshape(len(slots), row_bytes)
        self._replay._make_all()
        rows: ByteArray = self._replay._table[slots]
        return rows

    def update(self, slots: IndexArray, rows: ByteArray, *, version: str) -> None:
        """Lets an update wait."""
        self._replay._wait(_Update(slots.view(np.uint64), rows, version))

    def replace(
        self, rows: ByteArray, *, bins: tuple[Bins, ...], layout: bytes, version: str
    ) -> TableParams:
        """Builds the table anew."""
        self._replay._make_all()
        self._replay.slow += 1
        return self._replay._table.replace(rows, bins=bins, layout=layout, version=version)
