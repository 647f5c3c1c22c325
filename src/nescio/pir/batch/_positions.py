"""The places of rows in the bins of a layout, and the rows at places."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ... import _core
from ..._arrays import IndexArray
from ._layout import Layout
from ._permutation import Permutation

BinArray = npt.NDArray[np.int32]
ChoiceArray = npt.NDArray[np.int8]
Offsets = npt.NDArray[np.int64]
Values = TypeVar("Values", bound=npt.NDArray[Any])

DROPPED = -1
COVERED = -2


class Candidates(NamedTuple):
    """The bins that rows may come from, (n, choices), and their places there; bin -1 is none."""

    bins: BinArray
    places: IndexArray


class Positions:
    """The places of a layout's rows. Bins are counted over all parts, the hot ones first.

    The time to compute positions may depend on the rows. This runs on the device of their owner.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        full, hot = layout.full, layout.hot
        self.capacity: BinArray = np.concatenate(
            [np.full(group.bins, group.keys, np.int32) for group in layout.bins]
        )
        self._hashes = [
            Permutation(layout.rows, full.seed, number + 1) for number in range(full.hashes)
        ]
        self._hot = None if hot is None else Permutation(len(hot.rows), full.seed, 0)
        self._hot_bins = 0 if hot is None else hot.bins

    @property
    def choices(self) -> int:
        """The bins that a row may come from, at most."""
        return len(self._hashes) + (self._hot is not None)

    def candidates(self, rows: IndexArray) -> Candidates:
        """Returns the bins and places of rows, those of the hot part first."""
        bins = np.empty((len(rows), self.choices), np.int32)
        places = np.empty((len(rows), self.choices), np.uint64)
        choice = 0
        if self._hot is not None:
            bins[:, 0], places[:, 0] = self._hot_places(rows)
            choice = 1
        count = np.uint64(self.layout.full.bins)
        for number, permutation in enumerate(self._hashes):
            place, own = np.divmod(permutation(rows), count)
            bins[:, choice + number] = own.astype(np.int32) + self._first_bin(number)
            places[:, choice + number] = place
        return Candidates(bins, places)

    def _first_bin(self, number: int) -> int:
        return self._hot_bins + number * self.layout.full.bins

    def _hot_places(self, rows: IndexArray) -> tuple[npt.NDArray[np.int64], IndexArray]:
        assert self.layout.hot is not None
        assert self._hot is not None
        ranks, is_hot = _found(self.layout.hot.rows, rows)
        places, bins = np.divmod(self._hot(ranks), np.uint64(self._hot_bins))
        return np.where(is_hot, bins.astype(np.int64), -1), places

    def lists(self, rows: IndexArray) -> npt.NDArray[np.int64]:
        """Returns the line of each row in the layout's neighbors; -1 if it has none."""
        together = self.layout.together
        if together is None:
            return np.full(len(rows), -1, np.int64)
        line, known = _found(together.rows, rows)
        return np.where(known, line.astype(np.int64), -1)

    def together(self, offsets: Offsets, rows: IndexArray, pool: _core.ThreadPool) -> BinArray:
        """Returns, for each access, the accesses of its set that arrive with it: (n, C)."""
        near = self.layout.together
        if near is None:
            return np.zeros((len(rows), 0), np.int32)
        own, lists = rows.astype(np.int64), self.per_row(self.lists, rows)
        return _core.find_together(offsets, own, lists, near.neighbors, pool)

    def per_row(self, function: Callable[[IndexArray], Values], rows: IndexArray) -> Values:
        """Returns a function's values for rows; for the rows of a long log, from a table of all."""
        if len(rows) <= self.layout.rows:
            return function(rows)
        return function(np.arange(self.layout.rows, dtype=np.uint64))[rows]  # type: ignore[return-value]

    def rows_at(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """Returns the rows at places of the table in bins, which are numbered; -1 for none."""
        numbers = np.arange(first, first + count, dtype=np.int64)
        rows = np.full(count, -1, np.int64)
        before = 0
        for group, (bins, size, _) in enumerate(self.layout.bins):
            own = (numbers >= before) & (numbers < before + bins * size)
            rows[own] = self._rows_of(group, *np.divmod(numbers[own] - before, size))
            before += bins * size
        return rows

    def _rows_of(
        self, group: int, bins: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Returns the rows at places of bins of a part."""
        hot = self.layout.hot
        if hot is not None and group == 0:
            assert self._hot is not None
            ranks = _inverse(self._hot, places * hot.bins + bins, len(hot.rows))
            return np.where(ranks < 0, -1, hot.rows[ranks].astype(np.int64))
        rows = np.full(len(bins), -1, np.int64)
        count = self.layout.full.bins
        for number, permutation in enumerate(self._hashes):
            own = bins // count == number
            positions = places[own] * count + bins[own] % count
            rows[own] = _inverse(permutation, positions, self.layout.rows)
        return rows


def _found(values: IndexArray, rows: IndexArray) -> tuple[IndexArray, npt.NDArray[np.bool_]]:
    """Returns the indices of rows among sorted values, and which rows are among them."""
    at = np.minimum(np.searchsorted(values, rows), len(values) - 1)
    return at.astype(np.uint64), values[at] == rows


def _inverse(
    permutation: Permutation, positions: npt.NDArray[np.int64], rows: int
) -> npt.NDArray[np.int64]:
    """Returns the rows at positions; -1 for positions of no row."""
    inside = np.minimum(positions, permutation.places - 1).astype(np.uint64)
    found = permutation.inverse(inside).astype(np.int64)
    return np.where((positions < permutation.places) & (found < rows), found, -1)
