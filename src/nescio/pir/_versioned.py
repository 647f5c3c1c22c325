"""The versions of a table: the current one, its reader and its changer, and older ones."""

import builtins
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from .. import _core
from .._arrays import ByteArray, as_count, shown
from .._locks import SharedLock
from ..errors import ArgumentError, MismatchError, VersionGoneError
from ._history import (
    DEFAULT_FRACTION,
    DEFAULT_VERSIONS,
    MAX_VERSIONS,
    Keeping,
    KnownIds,
    Version,
    find_version,
    kept_bytes,
    versions_of,
    without,
)
from ._params import TableParams
from ._rows import Target
from ._state import TableState
from ._versions import Journal, LastChange, Record, UsedVersions
from ._wire import wrong_table


class VersionedTable:
    """A table's current version, which readers share and one change at a time replaces.

    Older versions are kept for answers to clients who do not know the current one yet.
    """

    def _begin(self, state: TableState, pool: _core.ThreadPool) -> None:
        self._state = state
        self._pool = pool
        self._lock = SharedLock()
        self._changes = threading.RLock()
        self._versions = UsedVersions(state.params.version)
        self._ids = KnownIds(state.params.id)
        self._keeping = Keeping()
        self._last: LastChange | None = None
        self.target: Target | None = None
        self.journal: Journal | None = None
        self.remote: Callable[[builtins.bytes], TableParams] | None = None
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

    def history(self) -> tuple[UsedVersions, KnownIds, LastChange | None]:
        """Returns the versions of the table, their ids, and its last change, for a file.

        The caller holds `changing`.
        """
        return self._versions, self._ids, self._last

    def restore(self, versions: UsedVersions, ids: KnownIds, last: LastChange | None) -> None:
        """Replaces what `history` returned, in a table that was loaded from a file."""
        self._versions, self._ids, self._last = versions, ids, last

    def _recorded(self, params: TableParams) -> None:
        """Records the change that follows, if a journal is attached."""
        if self._record is not None:
            self._record(params)
        elif self.journal is not None:
            raise ArgumentError(
                "found a change that no message made, of a table whose changes are kept in a data "
                "folder: expected a change through the service, such as by TableAdmin"
            )

    def change(
        self,
        made: LastChange,
        make: Callable[[TableParams], TableParams],
        record: Record | None = None,
    ) -> TableParams:
        """Applies the change of a message once, even if the message arrives several times.

        `make` gets the current parameters and changes the table; no other change can interleave.
        If the last change was the same one, nothing happens. `record` is called with the new
        parameters after all preparation, before anything changes; what it raises prevents the
        change.
        """
        with self.changing():
            if made != self._last:
                self._record = record
                try:
                    make(self.params)
                finally:
                    self._record = None
                self._last = made
            return self.params

    @property
    def last_change(self) -> LastChange | None:
        """The message of the last change; None if there was none, or no message made it."""
        return self._last

    @property
    def next_version(self) -> str | None:
        """The version that the next change gets if it names none; None if it would be too long."""
        with suppress(ArgumentError):
            return self._versions.choose(None, self.params.version)
        return None

    def has_had(self, version: str) -> bool:
        """Tests if the table has, or had before, a version."""
        return version in self._versions

    def keep_versions(
        self, count: int = DEFAULT_VERSIONS, fraction: float = float(DEFAULT_FRACTION)
    ) -> None:
        """Limits the versions that are answered: `count` of them, with the current one.

        Older ones take memory for the rows that updates have changed since. All of it together is
        at most `fraction` of the table's bytes, except that the version before the last update is
        kept in any case. A change that builds the table again (an insertion, a deletion, an update
        of many rows) keeps the whole table before it until the next change, or until `release`.
        A `count` of 1 keeps no older version. Raises ArgumentError for limits out of range.
        """
        count = as_count(count, "versions to keep", 1, MAX_VERSIONS)
        number = isinstance(fraction, int | float) and not isinstance(fraction, bool)
        if not number or not 0 <= fraction <= 1:
            raise ArgumentError(f"fraction: found {shown(fraction)}, expected a number from 0 to 1")
        with self.changing():
            self._keeping = Keeping(count, float(fraction))
            self._state = self._keeping.limited(self._state)

    @property
    def versions(self) -> tuple[TableParams, ...]:
        """The parameters of the versions that are answered, newest first: [0] is the current one.

        `params.id` identifies each of them for `tops_of`, `layout_of` and `release`.
        """
        return tuple(version.params for version in versions_of(self._state))

    @property
    def kept_bytes(self) -> int:
        """The memory of older versions in bytes, in addition to `bytes`."""
        return kept_bytes(self._state)

    def tops_of(self, version: builtins.bytes) -> ByteArray:
        """Returns the tops of the version with an id, uint8 (n, 32): see `tops`.

        Raises VersionGoneError for a version that is no longer answered, and MismatchError for an
        id that the table has not had.
        """
        tops = self.version_of(version).tops.view()
        tops.flags.writeable = False
        return tops

    def layout_of(self, version: builtins.bytes) -> builtins.bytes:
        """Returns the layout of the version with an id. Raises the errors of `tops_of`."""
        return self.version_of(version).state.layout

    def release(self, version: builtins.bytes) -> None:
        """Frees the memory of an older version with an id, and of all versions before it.

        Raises the errors of `tops_of`, and ArgumentError for the current version.
        """
        with self.changing():
            found = self.version_of(version)
            if found.params.id == self.params.id:
                raise ArgumentError(
                    f"found version {found.params.version!r}, which is the current one, expected "
                    "an older one: the current version cannot be released"
                )
            self._state = without(self._state, found)

    @property
    def current(self) -> Version:
        """The current version."""
        return Version(self._state, 0)

    def find_version(self, ident: builtins.bytes) -> Version | None:
        """Finds a version that is answered by its id."""
        return find_version(self._state, ident)

    def version_of(self, ident: builtins.bytes) -> Version:
        """Finds a version that is answered by its id. Raises the errors of `tops_of`."""
        found = self.find_version(ident)
        if found is None:
            raise self.not_answered(ident, "an id")
        return found

    def not_answered(self, ident: builtins.bytes, kind: str) -> MismatchError:
        """Makes the error for a message to a version that is not answered."""
        params = self.params
        if ident not in self._ids:
            return wrong_table(kind, ident, params)
        return VersionGoneError(
            f"{kind} for a version that is gone: found {ident.hex()}, expected {params.id.hex()}, "
            f"which is version {params.version!r}, or one of the last before it; fetch the table's "
            "parameters again",
            found=ident.hex(),
            expected=params.id.hex(),
        )

    def _forget_before(self) -> None:
        """Frees the state before the last rebuild, in a change that builds the table again."""
        self._state = replace(self._state, before=None)
