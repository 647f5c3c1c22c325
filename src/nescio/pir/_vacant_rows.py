"""Operations of a table on vacant rows: to append in their place, to make more of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray, as_array, as_count, as_indices
from ..errors import ArgumentError
from ._growth import grown, overwrite
from ._params import MAX_ROWS, TableParams
from ._rows import rows_as_bytes
from ._state import TableState
from ._vacancy import NO_ROWS, Vacancy, VacancyInfo
from ._versioned import VersionedTable

GROWTH = 8
"""A table without enough vacant rows grows by its rows divided by this."""

Note = Callable[[], None]
"""Called when a change is made, while nobody reads: changes the set of vacant rows."""


class VacantRows(VersionedTable, ABC):
    """The part of `Table` that is about vacant rows."""

    def _begin(self, state: TableState, pool: _core.ThreadPool) -> None:
        super()._begin(state, pool)
        self._vacancy = Vacancy(state.params.rows)

    @abstractmethod
    def check_uncut(self) -> None:
        """Raises ArgumentError for a table in bins."""

    @abstractmethod
    def _overwrite(
        self, where: IndexArray, new: ByteArray, version: str | None, note: Note
    ) -> TableParams:
        """Overwrites rows."""

    @abstractmethod
    def _publish(self, state: TableState, note: Note) -> TableParams:
        """Makes a state that was built beside the current one the current version."""

    def _set(self, state: TableState, note: Note) -> None:
        """Makes a state the current one, while nobody reads."""
        self._state = state
        self._vacancy.appended = NO_ROWS
        note()

    def _no_vacancy(self) -> None:
        self._vacancy = Vacancy(self.params.rows)

    @property
    def vacant(self) -> IndexArray:
        """The vacant rows in order, uint64 (n,): zeros that `append` overwrites, lowest first."""
        with self.reading():
            return self._vacancy.lowest(self._vacancy.count)

    def lowest_vacant(self, count: int) -> tuple[IndexArray, VacancyInfo]:
        """Returns the `count` lowest vacant rows, or all, and the number of all of them."""
        with self.reading():
            return self._vacancy.lowest(count), self._vacancy.info

    def append(
        self, rows: object, *, at: object | None = None, version: str | None = None
    ) -> IndexArray:
        """Puts rows in the place of vacant ones; returns their indices, uint64 (n,).

        They get the lowest vacant rows in order, or those `at` given indices. All other rows keep
        their indices. If there are too few vacant rows, the table grows by an eighth, or more if
        that is not sufficient, under the same new version: this copies the table.

        Raises ArgumentError for rows of another shape or dtype, for a row `at` an index that is
        not vacant or occurs twice, and for a table in bins; and the errors of `update`.

        >>> table = Table(np.eye(3, dtype=np.uint8), spare=2)
        >>> table.append(np.full((1, 3), 7, np.uint8)).tolist()
        [3]
        >>> table.clear([0])  # doctest: +ELLIPSIS
        TableParams(...)
        >>> table.vacant.tolist()
        [0, 4]
        """
        with self.changing():
            self.check_uncut()
            count = len(_rows_of(rows))
            new = rows_as_bytes(rows, count, self._state.params)
            missing = count - self._vacancy.count if at is None else 0
            if missing > 0:
                return self._append_and_grow(new, max(missing, self._eighth), version)
            where = self._vacancy.lowest(count) if at is None else self._vacant_at(at, count)
            self._overwrite(where, new, version, lambda: self._vacancy.fill(where))
            return where

    def clear(self, indices: object, *, version: str | None = None) -> TableParams:
        """Overwrites rows with zeros and makes them vacant; returns the new parameters.

        All other rows keep their indices. Raises ArgumentError for a row that is vacant already,
        and for a table in bins; and the errors of `update`.
        """
        with self.changing():
            self.check_uncut()
            params = self._state.params
            where = np.unique(as_indices(indices, params.rows, "an index").reshape(-1))
            already = where[self._vacancy.has(where)]
            if len(already):
                raise ArgumentError(
                    f"found row {already[0]}, which is vacant already, expected occupied rows"
                )
            zeros = np.zeros((len(where), params.row_bytes), np.uint8)
            return self._overwrite(where, zeros, version, lambda: self._vacancy.add(where))

    def grow(self, count: int, *, version: str | None = None) -> TableParams:
        """Adds vacant rows at the end; returns the parameters of the new version.

        The memory of the table is copied, while the old version continues to serve. Raises
        ArgumentError for a number that is not positive, or too large, and for a table in bins.
        """
        with self.changing():
            self.check_uncut()
            rows = self._state.params.rows
            rows += as_count(count, "rows to grow by", 1, MAX_ROWS - rows)
            state = self._grown(rows, version)
            return self._publish(state, lambda: self._vacancy.grow(rows))

    def extra_state(self) -> bytes:
        """Encodes what a stored table lacks, for `Table.load(path, extra=...)`: the vacant rows.

        Empty for a table without vacant rows.
        """
        with self.reading():
            return self._vacancy.to_bytes()

    @property
    def _eighth(self) -> int:
        return -(-self._state.params.rows // GROWTH)

    def _grown(self, rows: int, version: str | None) -> TableState:
        """Builds a version with more rows."""
        self._forget_before()
        old = self._state
        version = self._versions.choose(version, old.params.version)
        params = replace(old.params, rows=rows, bins=(), version=version)
        return grown(old, params, self._pool)

    def _append_and_grow(self, new: ByteArray, more: int, version: str | None) -> IndexArray:
        """Puts rows in vacant places of a table that first grows."""
        first = self._state.params.rows
        rows = as_count(first + more, "rows of the table", 1, MAX_ROWS)
        state = self._grown(rows, version)
        free = self._vacancy.lowest(len(new))
        added = np.arange(first, first + len(new) - len(free), dtype=np.uint64)
        where = np.concatenate([free, added])
        state = overwrite(state, *state.changed(where, new), self._pool)

        def note() -> None:
            self._vacancy.grow(rows)
            self._vacancy.fill(where)

        self._publish(state, note)
        return where

    def _vacant_at(self, at: object, count: int) -> IndexArray:
        """Checks the indices of rows to append. Raises ArgumentError."""
        where = as_indices(at, self._state.params.rows, "an index").reshape(-1)
        if len(where) != count:
            raise ArgumentError(f"found {len(where)} indices for {count} rows, expected one each")
        occupied = where[~self._vacancy.has(where)]
        if len(occupied):
            raise ArgumentError(
                f"found an append to row {occupied[0]}, which is not vacant: update the row, or "
                "append to the rows that `vacant` lists"
            )
        if len(np.unique(where)) != count:
            raise ArgumentError("found an index twice, expected different vacant rows")
        return where


def _rows_of(rows: object) -> ByteArray:
    """Converts rows to an array. Raises ArgumentError for one without a first axis."""
    values = as_array(rows, "the rows")
    if values.ndim == 0:
        raise ArgumentError("the rows have shape (), expected an array of rows")
    return values
