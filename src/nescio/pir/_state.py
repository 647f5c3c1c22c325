"""One version of a table, and how it is made: from rows, or from the version before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .. import _core
from .._arrays import Array, ByteArray, IndexArray
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
class TableState:
    """One version of a table: its parameters, its records in the engine, and its hash tables.

    `recent` lists the latest updates, as far back as a device copy can profit from them.
    """

    params: TableParams
    records: _core.Table
    tree: HashTree
    recent: tuple[Overwritten, ...] = ()

    def table(self, number: int) -> _core.Table:
        """Returns the table of the records (0), or a hash table (from 1 on)."""
        return self.tree.tables[number - 1] if number else self.records

    def load(self, wanted: IndexArray) -> ByteArray:
        """Loads the rows at some indices: (n, row_bytes)."""
        count, width = np.uint64(self.params.record_rows), self.params.row_bytes
        if count == 1:
            return self.records.load(wanted)
        numbers, position = np.unique(wanted // count, return_inverse=True)
        rows = self.records.load(numbers).reshape(-1, width)
        at = position.reshape(-1) * int(count) + (wanted % count).astype(np.int64)
        found: ByteArray = rows[at]
        return found

    def changed(self, where: IndexArray, new: ByteArray) -> tuple[IndexArray, ByteArray]:
        """Returns the numbers and contents of the records in which new rows overwrite old ones.

        Of several new rows for one index, the last one wins.
        """
        count = np.uint64(self.params.record_rows)
        numbers, position = np.unique(where // count, return_inverse=True)
        records = self.records.load(numbers)
        at = position.reshape(-1) * int(count) + (where % count).astype(np.int64)
        _as_elements(records.reshape(-1, self.params.row_bytes))[at] = _as_elements(new)
        return numbers, records

    def overwritten(
        self, where: IndexArray, new: ByteArray, pool: _core.ThreadPool
    ) -> Iterator[ByteArray]:
        """Yields all rows in parts, with new rows in the place of old ones.

        Of several new rows for one index, the last one wins. Parts are small, so that they stay in
        a cache and the system reuses their memory.
        """
        params = self.params
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


def part_rows(params: TableParams) -> int:
    """Returns the rows per part: about 32 MB, whole records."""
    step = HashTreeBuilder.PART_RECORDS * params.record_rows
    return step * max(1, _PART_BYTES // (step * params.row_bytes))


def build_state(
    params: TableParams,
    parts: Iterator[ByteArray],
    pool: _core.ThreadPool,
    progress: Progress | None,
) -> TableState:
    """Stores and hashes rows, which arrive in parts of a multiple of PART_RECORDS records."""
    layout = params.layouts[0]
    records = _core.Table([(1, layout.rows, 1)], layout.row_bytes, layout.output)
    tree = HashTreeBuilder(params.hashes, pool)
    done = 0
    for part in parts:
        joined = _joined(part, params)
        records.store(done // params.record_rows, joined, pool)
        tree.add(done // params.record_rows, joined)
        done += len(part)
        if progress is not None:
            progress(done * params.row_bytes, params.rows * params.row_bytes)
    made = tree.finish()
    return TableState(replace(params, digest=made.digest(params)), records, made)


def _joined(rows: ByteArray, params: TableParams) -> ByteArray:
    """Joins rows to records; zeros fill the last one."""
    missing = -len(rows) % params.record_rows
    if missing:
        rows = np.concatenate([rows, np.zeros((missing, params.row_bytes), np.uint8)])
    return rows.reshape(-1, params.record_bytes)


def new_version(old: TableState, tops: ByteArray, where: IndexArray, version: str) -> TableState:
    """Returns the state after an update of the records at `where`, which has these tops."""
    tree = HashTree(old.tree.tables, tops)
    params = replace(old.params, digest=tree.digest(old.params), version=version)
    changed_tops = np.unique(where // np.uint64(ARITY**params.hashes.levels))
    recent = [*old.recent, Overwritten(old.params.id, where, changed_tops)]
    while len(recent) > _MAX_RECENT or sum(len(one.indices) for one in recent) > params.records:
        del recent[0]  # copying the whole table is as fast as following these updates
    return TableState(params, old.records, tree, tuple(recent))
