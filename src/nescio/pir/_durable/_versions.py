"""The versions that a table answers again after a start: those of the latest changes.

The memory of a snapshot is that of no version, until all changes are made that the snapshot may
have in part: those before the mark of the complete snapshot in the journal. After the mark each
change makes the version that it made before. The changes before the latest ones are made as one,
which is several times as fast; the latest ones are made one by one, and their versions kept.
"""

from collections import deque
from typing import NamedTuple

from ...errors import FileError, NescioError
from .._change import Change, last_change_of, row_kind
from .._table import Table
from ._replay import Replay

_LATEST_BYTES = 4 << 20


class _Made(NamedTuple):
    """A change in a journal; see `Replay.add`."""

    message: bytes
    moved: bytes
    after: bytes


class Versions:
    """Makes the changes of journals again, so that at most `keep` versions are answered.

    One by one are only changes of 4 MiB together. `count` is the number of changes, `slow` that of
    changes that could not be joined to others, and `exact` tells if the mark was found.
    """

    def __init__(self, table: Table, keep: int) -> None:
        table.keep_versions(1)
        self._table = table
        self._keep = keep
        self._replay = Replay(table)
        self._latest: deque[_Made] = deque()
        self._latest_bytes = 0
        self._slow = 0
        self.id = table.params.id
        self.exact = False

    @property
    def count(self) -> int:
        """The number of changes so far."""
        return self._replay.count + len(self._latest)

    @property
    def slow(self) -> int:
        """The number of changes that could not be joined to others."""
        return self._replay.slow + self._slow

    def mark(self) -> None:
        """Notes that the snapshot has none of the changes that follow."""
        self.exact = True

    def add(self, message: bytes, moved: bytes, after: bytes) -> None:
        """Makes a change, at the latest in `finish`; see `Replay.add`. Raises FileError."""
        self._latest.append(_Made(message, moved, after))
        self._latest_bytes += len(message) + len(moved)
        self.id = after
        self._join(self._keep - 1 if self.exact else 0)

    def _join(self, most: int) -> None:
        """Makes all changes but the latest ones as one."""
        latest = self._latest
        while len(latest) > most or self._latest_bytes > _LATEST_BYTES:
            made = latest.popleft()
            self._latest_bytes -= len(made.message) + len(made.moved)
            self._replay.add(*made)

    def finish(self) -> None:
        """Makes all changes. Raises FileError if the table is not that of the last one."""
        self._replay.finish()
        self._table.keep_versions(self._keep)
        for number, made in enumerate(self._latest, self._replay.count + 1):
            try:
                self._make(made)
            except NescioError as error:
                raise FileError(f"change {number} of the journal: {error}") from error

    def _make(self, made: _Made) -> None:
        table, message = self._table, made.message
        with table.reading() as state:
            records = state.records
        Change.parse(table.params, message, row_kind(table)).apply(table)
        if table.params.id != made.after:
            raise FileError(
                f"the table has the id {table.params.id.hex()} after it, expected "
                f"{made.after.hex()}"
            )
        with table.reading() as state:
            self._slow += state.records is not records
        versions, ids, _ = table.history()
        table.restore(versions, ids, last_change_of(message))
