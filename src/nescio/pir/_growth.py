"""Growth of a table at its end: a copy of its memory, in which only what is new is hashed.

Rows are laid out tile after tile, and hashed by their numbers in the tree, so that both tables
begin with the same bytes. A hash table that growth makes necessary has the old tops as its first
hashes.
"""

from dataclasses import replace

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray
from ._bins import Bins
from ._hash_shape import ARITY, HASH_ROW_BYTES
from ._hash_tree import HashTree, TreeChange
from ._params import Layout, TableParams
from ._state import TableState

_PART_BYTES = 4 << 20


def grown(old: TableState, params: TableParams, pool: _core.ThreadPool) -> TableState:
    """Copies a version of one bin, with zeros for the rows that `params` have after its rows.

    Nothing may overwrite rows of the old version meanwhile, except for records that `overwrite`
    writes to the copy afterwards.
    """
    records = _prolonged(old.records, params.layouts[0], old.params.records, None, pool)
    first = old.params.records
    hashes = _hashes_of_zeros(first, params, pool)
    tables = []
    for level, layout in enumerate(params.layouts[1:], 1):
        kept, own = first // ARITY, first % ARITY
        if level <= len(old.tree.tables):
            table = old.tree.tables[level - 1]
            begun = table.load(np.array([kept] * bool(own), np.uint64)).reshape(-1, 32)[:own]
        else:
            table, kept, begun = None, 0, old.tree.tops[:first]
        rows = _hash_rows(np.concatenate([begun, hashes]))
        tables.append(_prolonged(table, layout, kept, rows, pool))
        hashes = _core.hash_records(rows, level, kept, pool)
        first = kept
    tops = np.concatenate([old.tree.tops[:first], hashes])
    tree = HashTree(tuple(tables), tops)
    made = replace(params, digest=tree.digest(params))
    return TableState(made, records, tree, layout=old.layout)


def overwrite(
    state: TableState, numbers: IndexArray, records: ByteArray, pool: _core.ThreadPool
) -> TableState:
    """Overwrites records of a version that nobody else has; returns it with its new digest."""
    bins = state.params.layouts[0].bins
    changes = _core.RowChanges(numbers, records, bins, pool)
    change = TreeChange.of(state.tree, state.params.hashes, numbers, records, pool)
    _core.replace_all([(state.records, changes), *change.tables], pool)
    tree = HashTree(state.tree.tables, change.tops)
    params = replace(state.params, digest=tree.digest(state.params))
    return TableState(params, state.records, tree, layout=state.layout)


def _hashes_of_zeros(first: int, params: TableParams, pool: _core.ThreadPool) -> ByteArray:
    """Returns the hashes of the records from `first` on, which are zeros."""
    step = max(1, _PART_BYTES // params.record_bytes)
    zeros = np.zeros((min(step, params.records - first), params.record_bytes), np.uint8)
    parts = [
        _core.hash_records(zeros[: params.records - begin], 0, begin, pool)
        for begin in range(first, params.records, step)
    ]
    return np.concatenate([np.zeros((0, 32), np.uint8), *parts])


def _hash_rows(hashes: ByteArray) -> ByteArray:
    """Joins hashes to rows of a hash table; zeros fill the last one."""
    missing = -len(hashes) % ARITY
    return np.pad(hashes, ((0, missing), (0, 0))).reshape(-1, HASH_ROW_BYTES)


def _prolonged(
    old: _core.Table | None,
    layout: Layout,
    kept: int,
    rows: ByteArray | None,
    pool: _core.ThreadPool,
) -> _core.Table:
    """Returns a table with the first `kept` rows of an old one, then `rows`, or zeros if None."""
    made = _core.Table(*layout)
    whole = kept - kept % _core.TILE_ROWS
    memory = np.asarray(made.memory()).reshape(-1)
    same = _core.table_bytes([Bins(1, whole)], layout.row_bytes, layout.output) if whole else 0
    parts = []
    if old is not None:
        _copy(np.asarray(old.memory()).reshape(-1)[:same], memory[:same])
        parts.append(old.load_range(whole, kept - whole, pool))
    if rows is None:
        memory[same:] = 0
    else:
        parts.append(rows)
    if parts:
        made.store(whole, np.concatenate(parts), pool)
    return made


def _copy(source: ByteArray, to: ByteArray) -> None:
    """Copies memory, without the interpreter's lock."""
    np.copyto(to, source)
