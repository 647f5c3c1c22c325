"""The hash tables of a table: made with it, changed with it, answered with it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray
from ._hash_shape import ARITY, HASH_BYTES, HASH_ROW_BYTES, HashShape
from ._params import TableParams

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
    """Makes hash tables from records in order, which arrive in multiples of PART_RECORDS."""

    PART_RECORDS = ARITY * _core.TILE_ROWS

    def __init__(self, shape: HashShape, pool: _core.ThreadPool) -> None:
        self._pool = pool
        self._tables = tuple(
            _core.Table([(1, rows, 1)], HASH_ROW_BYTES, "bit") for rows in shape.domains
        )
        self._hashes: list[ByteArray] = []  # of records without a hash table, else of its rows

    def add(self, first: int, records: ByteArray) -> None:
        """Adds the next records; the first of them has the number `first`."""
        hashes = _core.hash_records(records, 0, first, self._pool)
        self._hashes.append(self._store(1, first, hashes) if self._tables else hashes)

    def finish(self) -> HashTree:
        """Makes the hash tables above the first one, and the tops."""
        hashes = np.concatenate(self._hashes)
        for level in range(2, len(self._tables) + 1):
            hashes = self._store(level, 0, hashes)
        return HashTree(self._tables, hashes)

    def _store(self, level: int, first: int, hashes: ByteArray) -> ByteArray:
        """Stores hashes, the first of which has the number `first`; returns those of their rows."""
        padded = np.zeros((-(-len(hashes) // ARITY) * ARITY, HASH_BYTES), np.uint8)
        padded[: len(hashes)] = hashes
        records = padded.reshape(-1, HASH_ROW_BYTES)
        self._tables[level - 1].store(first // ARITY, records, self._pool)
        return _core.hash_records(records, level, first // ARITY, self._pool)


@dataclass(frozen=True, slots=True)
class TreeChange:
    """The rows of each hash table that an update changes, and the tops after it."""

    tree: HashTree
    changes: Sequence[_core.RowChanges]
    tops: ByteArray

    @classmethod
    def of(
        cls,
        tree: HashTree,
        shape: HashShape,
        where: IndexArray,
        new: ByteArray,
        pool: _core.ThreadPool,
    ) -> "TreeChange":
        """Computes the change for the records at `where`; `apply` makes it."""
        hashes = _core.hash_records_at(new, 0, where, pool)
        changes = []
        for level, (table, rows) in enumerate(zip(tree.tables, shape.domains, strict=True), 1):
            parents, at = _parents(where)
            changed = table.load(parents)
            _put(changed.reshape(-1, HASH_BYTES), at, hashes)
            changes.append(_core.RowChanges(parents, changed, [(1, rows, 1)], pool))
            where, hashes = parents, _core.hash_records_at(changed, level, parents, pool)
        tops = tree.tops.copy()
        _put(tops, where.astype(np.int64), hashes)
        return cls(tree, changes, tops)

    def apply(self, pool: _core.ThreadPool) -> None:
        """Writes the rows of the hash tables. Nothing else may read or write them."""
        for table, changes in zip(self.tree.tables, self.changes, strict=True):
            table.replace(changes, pool)


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
