"""The versions of a table: the current one, its reader and its changer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .. import _core
from .._arrays import ByteArray
from .._locks import SharedLock
from ..errors import ArgumentError
from ._params import TableParams
from ._rows import Target
from ._state import TableState
from ._versions import Journal, LastChange, Record, UsedVersions


class VersionedTable:
    """A table's current version, which readers share and one change at a time replaces."""

    def _begin(self, state: TableState, pool: _core.ThreadPool) -> None:
        self._state = state
        self._pool = pool
        self._lock = SharedLock()
        self._changes = threading.RLock()
        self._versions = UsedVersions(state.params.version)
        self._last: LastChange | None = None
        self.target: Target | None = None
        self.journal: Journal | None = None
        self._record: Record | None = None

    @property
    def params(self) -> TableParams:
        """The public parameters of the current version."""
        return self._state.params

    @property
    def layout(self) -> "bytes":
        """The text that tells clients which content is where; empty for most tables."""
        return self._state.layout

    @property
    def bytes(self) -> int:
        """The memory of the rows and of the hash tables in bytes."""
        return self._state.records.bytes + self._state.tree.bytes

    @property
    def tops(self) -> ByteArray:
        """The hashes that clients check rows against, uint8 (n, 32): `Client(params, tops)`.

        They hash to `params.digest`, and change with every version.
        """
        tops = self._state.tree.tops.view()
        tops.flags.writeable = False
        return tops

    @contextmanager
    def reading(self) -> Iterator[TableState]:
        """Gives the current version, and blocks changes until the block ends."""
        with self._lock.reading():
            yield self._state

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Lets one thread at a time prepare a change. Raises ArgumentError in one that reads."""
        if self._lock.is_mine:
            raise ArgumentError(
                "found a change of a table inside `reading()` by the same thread, which would wait "
                "for itself; expected the change after the block"
            )
        with self._changes:
            yield

    def history(self) -> tuple[UsedVersions, LastChange | None]:
        """Returns the versions that the table has had, and its last change, to be kept in a file.

        The caller holds `changing`.
        """
        return self._versions, self._last

    def restore(self, versions: UsedVersions, last: LastChange | None) -> None:
        """Replaces what `history` returned, in a table that was loaded from a file."""
        self._versions, self._last = versions, last

    def _recorded(self, params: TableParams) -> None:
        """Records the change that follows, if a journal is attached."""
        if self._record is not None:
            self._record(params)
        elif self.journal is not None:
            raise ArgumentError(
                "found a change that no message made, of a table whose changes are kept in a data "
                "folder: expected a change through the service, such as by TableAdmin"
            )

    @property
    def next_version(self) -> str | None:
        """The version that the next change gets if it names none; None if it would be too long."""
        with suppress(ArgumentError):
            return self._versions.choose(None, self.params.version)
        return None

    def has_had(self, version: str) -> bool:
        """Tests if the table has, or had before, a version."""
        return version in self._versions
