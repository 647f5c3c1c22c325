"""The hash tables of a table: made with it, changed with it, answered with it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray
from ._bins import Span
from ._hash_shape import ARITY, HASH_BYTES, HASH_ROW_BYTES, HashShape
from ._params import Layout, TableParams

_SPARSE = 64
"""Below a changed row in so many, the rows of a hash table that change are sorted, not marked."""


@dataclass(frozen=True, slots=True)
class HashTree:
    """The hash tables of one version, lowest first, in the engine; and the tops, (n, 32).

    A change writes the hash tables in place, as it does the rows, and replaces the tops.
    """

    tables: tuple[_core.Table, ...]
    tops: ByteArray

    def digest(self, params: TableParams) -> str:
        """Computes the digest of the table."""
        return params.digest_of(self.tops)

    @property
    def bytes(self) -> int:
        """The memory of the hash tables."""
        return sum(table.bytes for table in self.tables)


class HashTreeBuilder:
    """Makes hash tables from records in order, which arrive in the spans of `spans`."""

    PART_RECORDS = ARITY * _core.TILE_ROWS

    def __init__(self, shape: HashShape, layouts: Sequence[Layout], pool: _core.ThreadPool) -> None:
        self._shape = shape
        self._pool = pool
        self._tables = tuple(_core.Table(*layout) for layout in layouts[1:])
        # of the records without a hash table, else of the rows of the first one; by group
        self._hashes: list[list[ByteArray]] = [[] for _ in shape.levels[0].groups]

    def add(self, span: Span, records: ByteArray) -> None:
        """Adds the next records; parts of a bin begin at multiples of PART_RECORDS."""
        hashes = self._hash(0, span, records)
        self._hashes[span.group].append(self._store(1, span, hashes) if self._tables else hashes)

    def finish(self) -> HashTree:
        """Makes the hash tables above the first one, and the tops."""
        tops = []
        for number, parts in enumerate(self._hashes):
            hashes = np.concatenate(parts)
            for level in range(2, len(self._tables) + 1):
                group = self._shape.levels[level - 1].groups[number]
                span = Span(number, 0, group.bins, 0, group.rows)
                hashes = self._store(level, span, hashes)
            tops.append(hashes)
        return HashTree(self._tables, np.concatenate(tops))

    def _store(self, level: int, below: Span, hashes: ByteArray) -> ByteArray:
        """Stores the hashes of a span one level below; returns those of their hash rows."""
        span = below.divided(ARITY)
        padded = hashes.reshape(below.bins, below.rows, HASH_BYTES)
        missing = span.rows * ARITY - below.rows
        if missing:
            padded = np.pad(padded, ((0, 0), (0, missing), (0, 0)))
        records = padded.reshape(-1, HASH_ROW_BYTES)
        first = self._shape.levels[level].first(span)
        self._tables[level - 1].store(first, records, self._pool)
        return self._hash(level, span, records)

    def _hash(self, level: int, span: Span, records: ByteArray) -> ByteArray:
        """Hashes a span of records, or of rows of a hash table."""
        first = self._shape.levels[level].first(span)
        if span.bins == 1:
            start = int(self._shape.tree_numbers(level, np.array([first], np.uint64))[0])
            return _core.hash_records(records, level, start, self._pool)
        rows = np.arange(first, first + span.total, dtype=np.uint64)
        numbers = self._shape.tree_numbers(level, rows)
        return _core.hash_records_at(records, level, numbers, self._pool)


@dataclass(frozen=True, slots=True)
class TreeChange:
    """The rows of each hash table that an update changes, and the tops after it.

    `rows` has their numbers, which increase, their old bytes and their new ones. `old_tops` has the
    numbers of the tops that change, and their old hashes.
    """

    tree: HashTree
    rows: Sequence[tuple[IndexArray, ByteArray, ByteArray]]
    changes: Sequence[_core.RowChanges]
    tops: ByteArray
    old_tops: tuple[IndexArray, ByteArray]

    @classmethod
    def of(
        cls,
        tree: HashTree,
        shape: HashShape,
        where: IndexArray,
        new: ByteArray,
        pool: _core.ThreadPool,
    ) -> "TreeChange":
        """Computes the change for the records at `where`; see `tables`."""
        numbers = shape.tree_numbers(0, where)
        hashes = _core.hash_records_at(new, 0, numbers, pool)
        changes, all_rows = [], []
        for level, table in enumerate(tree.tables, 1):
            numbers, at = _parents(numbers)
            rows = shape.table_rows(level, numbers)
            before = table.load(rows)
            changed = before.copy()
            _put(changed.reshape(-1, HASH_BYTES), at, hashes)
            changes.append(_core.RowChanges(rows, changed, list(shape.levels[level].groups), pool))
            all_rows.append((rows, before, changed))
            hashes = _core.hash_records_at(changed, level, numbers, pool)
        tops, at = tree.tops.copy(), numbers.astype(np.int64)
        _put(tops, at, hashes)
        return cls(tree, all_rows, changes, tops, (numbers, tree.tops[at]))

    @property
    def tables(self) -> list[tuple[_core.Table, _core.RowChanges]]:
        """The hash tables and their changes, to be made while nobody reads."""
        return list(zip(self.tree.tables, self.changes, strict=True))


def _parents(where: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Returns the rows of a hash table that hold some hashes, and the places of these in them."""
    above = where // np.uint64(ARITY)
    if not len(where) or len(where) * _SPARSE < int(above.max()):
        parents, position = np.unique(above, return_inverse=True)
    else:
        marked = np.zeros(int(above.max()) + 1, np.bool_)
        marked[above] = True
        parents = np.flatnonzero(marked).astype(np.uint64)
        position = (np.cumsum(marked) - 1)[above]
    return parents, position.reshape(-1).astype(np.int64) * ARITY + (where % ARITY).astype(np.int64)


def _put(hashes: ByteArray, at: IndexArray, new: ByteArray) -> None:
    """Overwrites hashes; NumPy keeps the last of several for one place."""
    hashes.view(f"V{HASH_BYTES}").reshape(-1)[at] = new.view(f"V{HASH_BYTES}").reshape(-1)
