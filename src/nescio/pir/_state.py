"""One version of a table, and how it is made: from rows, or from the version before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays import Array, ByteArray, IndexArray
from ._bins import Span
from ._checksums import Progress
from ._hash_shape import ARITY
from ._hash_tree import HashTree, HashTreeBuilder
from ._params import TableParams

DENSE = 4
"""An update of a row in so many records builds the table anew: it is faster, and answers go on."""

_PART_BYTES = 32 << 20
_CACHED_BYTES = 8 << 20
_MAX_RECENT = 256  # updates that device copies of the table can follow


@dataclass(frozen=True, slots=True)
class Overwritten:
    """The records and tops that an update changed, and the id of the version before, `since`."""

    since: bytes
    indices: IndexArray
    tops: IndexArray


@dataclass(frozen=True, slots=True)
class Kept:
    """A version before an update: its parameters, and what the update overwrote.

    `tops` has the numbers and the hashes of the tops, `patches` those of the records, then of each
    hash table.
    """

    params: TableParams
    tops: tuple[IndexArray, ByteArray]
    patches: tuple[_core.Patch, ...]

    @property
    def bytes(self) -> int:
        """The memory of the version."""
        tops = sum(array.nbytes for array in self.tops)
        return tops + sum(patch.bytes for patch in self.patches)


@dataclass(frozen=True, slots=True)
class TableState:
    """One version of a table: its parameters, its records in the engine, and its hash tables.

    `recent` lists the latest updates, as far back as a device copy can profit from them. `kept` has
    older versions in the same memory, newest first; `before` is the state before a rebuild, if it
    still answers (see _history.py).
    """

    params: TableParams
    records: _core.Table
    tree: HashTree
    recent: tuple[Overwritten, ...] = ()
    layout: bytes = b""
    kept: tuple[Kept, ...] = ()
    before: "TableState | None" = None

    def table(self, number: int) -> _core.Table:
        """Returns the table of the records (0), or a hash table (from 1 on)."""
        return self.tree.tables[number - 1] if number else self.records

    def load(self, wanted: IndexArray) -> ByteArray:
        """Loads the rows at some indices: (n, row_bytes)."""
        if self.params.record_rows == 1:
            return self.records.load(wanted)
        numbers, at = self._in_records(wanted)
        rows: ByteArray = self.records.load(numbers).reshape(-1, self.params.row_bytes)[at]
        return rows

    def _in_records(self, rows: IndexArray) -> tuple[IndexArray, NDArray[np.int64]]:
        """Returns the records of rows, each once, and the places of the rows among theirs."""
        count = np.uint64(self.params.record_rows)
        bins, places = self.params.grouping.split(rows)
        records = self.params.hashes.levels[0].join(bins, places // count)
        numbers, position = np.unique(records, return_inverse=True)
        return numbers, position.reshape(-1) * int(count) + (places % count).astype(np.int64)

    def changed(self, where: IndexArray, new: ByteArray) -> tuple[IndexArray, ByteArray]:
        """Returns the numbers and contents of the records in which new rows overwrite old ones.

        Of several new rows for one index, the last one wins.
        """
        numbers, _, records = self.overlaid(where, new)
        return numbers, records

    def overlaid(
        self, where: IndexArray, new: ByteArray
    ) -> tuple[IndexArray, ByteArray, ByteArray]:
        """Returns what `changed` does, with the old contents of the records before the new ones."""
        numbers, at = self._in_records(where)
        before = self.records.load(numbers)
        records = before.copy()
        _as_elements(records.reshape(-1, self.params.row_bytes))[at] = _as_elements(new)
        return numbers, before, records

    def overwritten(
        self, where: IndexArray, new: ByteArray, pool: _core.ThreadPool
    ) -> Iterator[ByteArray]:
        """Yields all rows in parts, with new rows in the place of old ones.

        Of several new rows for one index, the last one wins. Parts are small, so that they stay in
        a cache and the system reuses their memory.
        """
        params = self.params
        if params.grouping.bins > 1:
            yield from self._overwritten_bins(where, new, pool)
            return
        step = HashTreeBuilder.PART_RECORDS * params.record_rows
        if params.rows * params.row_bytes <= _CACHED_BYTES:
            step = -(-params.rows // step) * step  # all in one part: nothing is sorted
        at, elements, ends = where.view(np.int64), _as_elements(new), [len(where)]
        if params.rows > step:
            parts = at // step
            if params.rows // step < 1 << 16:
                parts = parts.astype(np.uint16)  # NumPy sorts these in linear time
            order = np.argsort(parts, kind="stable")
            at, elements = at[order], elements[order]
            ends = np.searchsorted(at // step, np.arange(-(-params.rows // step)), "right").tolist()
        for first, (begin, end) in zip(range(0, params.rows, step), pairwise([0, *ends])):  # noqa: B905
            count = min(step, params.rows - first)
            part = self.records.load_range(
                first // params.record_rows, -(-count // params.record_rows), pool
            ).reshape(-1, params.row_bytes)[:count]
            own = at[begin:end] - first if first else at[begin:end]
            _as_elements(part)[own] = elements[begin:end]
            yield part

    def _overwritten_bins(
        self, where: IndexArray, new: ByteArray, pool: _core.ThreadPool
    ) -> Iterator[ByteArray]:
        """Yields what `overwritten` does, in the parts of `part_spans`."""
        params, records = self.params, self.params.hashes.levels[0]
        order = np.argsort(where, kind="stable")
        where, elements = where[order], _as_elements(new)[order]
        for span in part_spans(params):
            held = span.divided(params.record_rows)
            part = self.records.load_range(records.first(held), held.total, pool)
            rows = part.reshape(span.bins, -1, params.row_bytes)[:, : span.rows]
            rows = np.ascontiguousarray(rows).reshape(-1, params.row_bytes)
            first = params.grouping.first(span)
            begin, end = np.searchsorted(where, np.array([first, first + span.total], np.uint64))
            _as_elements(rows)[where[begin:end].astype(np.int64) - first] = elements[begin:end]
            yield rows

    def changed_since(self, version: bytes) -> IndexArray | None:
        """Lists the records that changed since the version with an id; None if that is unknown."""
        since = self._since(version)
        return None if since is None else _union([one.indices for one in since])

    def tops_since(self, version: bytes) -> IndexArray | None:
        """Lists the tops that changed since the version with an id; None if that is unknown."""
        since = self._since(version)
        return None if since is None else _union([one.tops for one in since])

    def _since(self, version: bytes) -> tuple[Overwritten, ...] | None:
        if version == self.params.id:
            return ()
        for first, overwritten in enumerate(self.recent):
            if overwritten.since == version:
                return self.recent[first:]
        return None


def _union(parts: Sequence[IndexArray]) -> IndexArray:
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.uint64)


def _as_elements(rows: ByteArray) -> Array:
    """Views rows as elements, which NumPy copies one by one; integers where they have the size."""
    size = rows.shape[1]
    elements: Array = rows.view(f"u{size}" if size in {1, 2, 4, 8} else f"V{size}").reshape(-1)
    return elements


def part_spans(params: TableParams) -> Iterator[Span]:
    """Yields the parts in which a table is made: about 32 MB, whole records or whole bins."""
    step = HashTreeBuilder.PART_RECORDS * params.record_rows
    return params.grouping.spans(step * max(1, _PART_BYTES // (step * params.row_bytes)))


def build_state(
    params: TableParams,
    parts: Iterator[ByteArray],
    pool: _core.ThreadPool,
    progress: Progress | None,
    layout: bytes = b"",
) -> TableState:
    """Stores and hashes rows, which arrive in parts.

    They are those of `part_spans`; in a table of one bin, of any multiple of PART_RECORDS records.
    """
    records = _core.Table(*params.layouts[0])
    tree = HashTreeBuilder(params.hashes, params.layouts, pool)
    done, spans = 0, part_spans(params)
    for part in parts:
        span = next(spans) if params.grouping.bins > 1 else Span(0, 0, 1, done, len(part))
        held = span.divided(params.record_rows)
        joined = _joined(part, span, params)
        records.store(params.hashes.levels[0].first(held), joined, pool)
        tree.add(held, joined)
        done += len(part)
        if progress is not None:
            progress(done * params.row_bytes, params.rows * params.row_bytes)
    made = tree.finish()
    digest = made.digest(params)
    return TableState(replace(params, digest=digest), records, made, layout=layout)


def _joined(rows: ByteArray, span: Span, params: TableParams) -> ByteArray:
    """Joins rows to records; zeros fill the last one of each bin."""
    missing = -span.rows % params.record_rows
    if missing:
        bins = rows.reshape(span.bins, span.rows, params.row_bytes)
        rows = np.pad(bins, ((0, 0), (0, missing), (0, 0)))
    return rows.reshape(-1, params.record_bytes)


def new_version(old: TableState, tops: ByteArray, where: IndexArray, version: str) -> TableState:
    """Returns the state after an update of the records at `where`, which has these tops."""
    tree = HashTree(old.tree.tables, tops)
    params = replace(old.params, digest=tree.digest(old.params), version=version)
    shape = params.hashes
    changed_tops = np.unique(shape.tree_numbers(0, where) // np.uint64(ARITY**shape.height))
    recent = [*old.recent, Overwritten(old.params.id, where, changed_tops)]
    while len(recent) > _MAX_RECENT or sum(len(one.indices) for one in recent) > params.records:
        del recent[0]  # copying the whole table is as fast as following these updates
    return TableState(params, old.records, tree, tuple(recent), old.layout)
