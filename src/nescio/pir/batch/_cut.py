"""The content of a batch table: every row at each of its places, with its neighbors."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, ByteArray, IndexArray
from .._params import TableParams
from .._state import part_spans
from ._layout import Layout
from ._positions import Positions

Numbers = npt.NDArray[np.int64]
Gather = Callable[[IndexArray], ByteArray]
"""Returns the bytes of rows, (n, row_bytes), in an array that may be changed."""


class Cut:
    """The places of the rows of a layout in its table, whose rows are numbered over all bins."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._positions = Positions(layout)
        sizes = [np.full(group.bins, group.rows) for group in layout.bins]
        ends = np.cumsum(np.concatenate(sizes), dtype=np.uint64)
        self._firsts: IndexArray = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
        self._owned: tuple[Numbers, Numbers] | None = None

    def first_places(self, rows: IndexArray) -> IndexArray:
        """Returns a place of each row: the one of the first hash."""
        bins, places = self._positions.candidates(rows)
        at = 0 if self.layout.hot is None else 1
        numbers: IndexArray = self._firsts[bins[:, at]] + places[:, at]
        return numbers

    def all_places(self, rows: IndexArray) -> tuple[Numbers, IndexArray]:
        """Returns all places of rows, and for each place which of the rows is there."""
        bins, places = self._positions.candidates(rows)
        at, choice = np.nonzero(bins >= 0)
        return at, self._firsts[bins[at, choice]] + places[at, choice]

    def with_owners(self, rows: IndexArray) -> IndexArray:
        """Returns rows and those with which they arrive, each once, ascending."""
        together = self.layout.together
        if together is None:
            return np.unique(rows)
        if self._owned is None:
            near = together.neighbors.reshape(-1)
            order = np.argsort(near, kind="stable")
            self._owned = near[order], order // together.count
        near, owners = self._owned
        wanted = np.unique(rows).astype(np.int64)
        begins, ends = np.searchsorted(near, wanted), np.searchsorted(near, wanted, "right")
        counts = ends - begins
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.unique(
            np.concatenate([rows, together.rows[owners[np.repeat(begins, counts) + within]]])
        )

    def slots(self, rows: Numbers, gather: Gather) -> ByteArray:
        """Returns the content of slots for rows, (n, bytes); zeros for row -1."""
        together, known = self.layout.together, np.maximum(rows, 0).astype(np.uint64)
        lists = rows[:, None]
        if together is not None:
            lines = np.where(rows < 0, -1, self._positions.lists(known))
            near = np.where((lines < 0)[:, None], -1, together.neighbors[lines])
            lists = np.concatenate([lists, near], axis=1)
        found = gather(np.maximum(lists, 0).reshape(-1).astype(np.uint64))
        found[lists.reshape(-1) < 0] = 0
        return found.reshape(len(rows), self.layout.slot_rows * found.shape[1])

    def parts(self, params: TableParams, gather: Gather) -> Iterator[ByteArray]:
        """Yields the content of all slots, in parts of some megabytes."""
        for span in part_spans(params):
            first = params.grouping.first(span)
            yield self.slots(self._positions.rows_at(first, span.total), gather)


def bytes_of(values: Array) -> Gather:
    """Returns a function for the rows of an array as bytes."""

    def gather(rows: IndexArray) -> ByteArray:
        own = np.ascontiguousarray(values[rows.astype(np.int64)])
        return own.reshape(-1).view(np.uint8).reshape(len(rows), values[:1].nbytes)

    return gather
