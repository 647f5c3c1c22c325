"""The bins of a table: groups of bins of one size, each with keys of its own in every lookup.

An ordinary table is one bin of all its rows, with one key a lookup. In a table of many bins a key
is for its bin alone, so that a lookup of one row from each bin costs little more than a lookup of
one row from the whole table: the partial batch retrieval of section 4.1 of "GPU-based Private
Information Retrieval for On-Device Machine Learning Inference" (2024).

Rows are numbered group by group, bin by bin. Rows are joined to records inside their bin; the last
record of a bin may end with zeros.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import IndexArray, shown
from ..errors import ArgumentError

MAX_BINS = 4096
"""Of a table: every bin has at least one hash of its own among those that clients keep."""

MAX_SLOTS = 1 << 16
MAX_BIN_ROWS = 1 << 40


class Bins(NamedTuple):
    """A group of bins: their number, the rows of each, and the keys of a lookup for each."""

    bins: int
    rows: int
    keys: int = 1

    @property
    def slots(self) -> int:
        """The keys of a lookup for this group."""
        return self.bins * self.keys

    @property
    def total_rows(self) -> int:
        """The rows of all bins."""
        return self.bins * self.rows


class Span(NamedTuple):
    """Consecutive rows of a group: `rows` from row `first` on, in each of `bins` bins.

    If there are several bins, the span has all their rows.
    """

    group: int
    bin: int
    bins: int
    first: int
    rows: int

    @property
    def total(self) -> int:
        """The number of rows."""
        return self.bins * self.rows

    def divided(self, by: int) -> "Span":
        """Returns the span of the records, or of the hash rows, that hold `by` rows each."""
        return self._replace(first=self.first // by, rows=-(-self.rows // by))


class Grouping:
    """Numbers the rows of groups of bins, the first as 0."""

    def __init__(self, groups: Sequence[Bins]) -> None:
        self.groups = tuple(groups)
        ends = np.cumsum([group.total_rows for group in groups], dtype=np.uint64)
        self.total = int(ends[-1])
        self._ends = ends
        self._firsts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
        self._rows = np.array([group.rows for group in groups], np.uint64)
        bins = np.cumsum([0, *(group.bins for group in groups)], dtype=np.uint64)
        self._bins = bins[:-1]
        self.bins = int(bins[-1])

    def first(self, span: Span) -> int:
        """Returns the number of the first row of a span."""
        rows = self.groups[span.group].rows
        return int(self._firsts[span.group]) + span.bin * rows + span.first

    def split(self, numbers: IndexArray) -> tuple[IndexArray, IndexArray]:
        """Returns the bin of each row, counted over all groups, and the row's place in its bin."""
        if self.bins == 1:
            return np.zeros_like(numbers), numbers
        group = np.searchsorted(self._ends, numbers, "right")
        bins, places = np.divmod(numbers - self._firsts[group], self._rows[group])
        return bins + self._bins[group], places

    def join(self, bins: IndexArray, places: IndexArray) -> IndexArray:
        """Returns the numbers of rows: the inverse of `split`."""
        if self.bins == 1:
            return places
        group = np.searchsorted(self._bins, bins, "right") - 1
        joined: IndexArray = (
            self._firsts[group] + (bins - self._bins[group]) * self._rows[group] + places
        )
        return joined

    def spans(self, step: int) -> Iterator[Span]:
        """Yields spans over all rows: parts of bins of `step` rows, or as many bins as fit."""
        for number, group in enumerate(self.groups):
            if group.rows >= step:
                for at in range(group.bins):
                    for first in range(0, group.rows, step):
                        yield Span(number, at, 1, first, min(step, group.rows - first))
                continue
            several = step // group.rows
            for at in range(0, group.bins, several):
                yield Span(number, at, min(several, group.bins - at), 0, group.rows)


def bin_problems(bins: Sequence[Bins], rows: int) -> Iterator[str]:
    """Yields the problems of the bins of a table with a number of rows."""
    for group in bins:
        if group.bins < 1 or not 1 <= group.rows <= MAX_BIN_ROWS or group.keys < 1:
            yield (
                f"bins: found {shown(list(group))}, expected a number of bins, their rows, and the "
                "keys of a lookup for each, all at least 1"
            )
    if sum(group.bins for group in bins) > MAX_BINS:
        yield f"bins: found {sum(group.bins for group in bins)}, expected at most {MAX_BINS}"
    if sum(group.slots for group in bins) > MAX_SLOTS:
        found = sum(group.slots for group in bins)
        yield f"bins: found {shown(found)} keys a lookup, expected at most {MAX_SLOTS}"
    if sum(group.total_rows for group in bins) != rows:
        found = sum(group.total_rows for group in bins)
        yield f"bins: they have {shown(found)} rows, expected the table's {shown(rows)}"


def check_bins(bins: object, fewest_fields: int = 2) -> tuple[Bins, ...]:
    """Converts groups of bins to `Bins`. Raises ArgumentError unless they are integers."""
    groups = []
    for group in (isinstance(bins, list | tuple) and bins) or (None,):
        fields = list(group) if isinstance(group, list | tuple) else []
        if not fewest_fields <= len(fields) <= 3 or any(type(n) is not int for n in fields):
            raise ArgumentError(
                f"bins: found {shown(bins)}, expected a list of (bins, rows of each, keys for each)"
            )
        groups.append(Bins(*fields))
    return tuple(groups)
