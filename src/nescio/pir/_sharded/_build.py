"""A shard made from its rows."""

from collections.abc import Callable

import numpy as np

from ... import _core
from ..._arrays import ByteArray
from .._checksums import Progress
from .._hash_shape import HASH_BYTES, HASH_ROW_BYTES
from .._hash_tree import HashTree
from .._params import TableParams
from .._state import TableState
from ._cut import Part

Load = Callable[[int, int], ByteArray]
"""Returns `count` rows from row `first` on, as bytes: uint8 (count, row_bytes)."""

_PART_BYTES = 32 << 20


def build_shard(
    params: TableParams,
    part: Part,
    load: Load,
    pool: _core.ThreadPool,
    progress: Progress | None = None,
) -> TableState:
    """Loads, stores and hashes the rows of a part.

    Of the tops, those of other shards are zeros. The parameters are those of the whole table, of
    which the digest may not be known yet.
    """
    tables = [
        _core.Table(*layout, window=part.window(params, level))
        for level, layout in enumerate(params.layouts)
    ]
    hashes = _store_records(params, part, load, tables[0], pool, progress)
    for level, table in enumerate(tables[1:], 1):
        first, end = part.span(params, level)
        missing = (end - first) * HASH_ROW_BYTES // HASH_BYTES - len(hashes)
        rows = np.pad(hashes, ((0, missing), (0, 0))).reshape(-1, HASH_ROW_BYTES)
        _store(table, first, rows, part.window(params, level)[0], pool)
        hashes = _core.hash_records(rows, level, first, pool)
    tops = np.zeros((params.hashes.tops, HASH_BYTES), np.uint8)
    tops[part.first : part.end] = hashes
    return TableState(params, tables[0], HashTree(tuple(tables[1:]), tops))


def _store_records(  # noqa: PLR0917 - one step of build_shard
    params: TableParams,
    part: Part,
    load: Load,
    table: _core.Table,
    pool: _core.ThreadPool,
    progress: Progress | None,
) -> ByteArray:
    """Stores the records, in steps that begin with a tile; returns their hashes."""
    (first, end), window = part.span(params, 0), part.window(params, 0)[0]
    tile = _core.TILE_ROWS
    step = max(1, _PART_BYTES // (tile * params.record_bytes)) * tile
    rows_end = part.rows(params)[1]
    hashes, at = [], first
    while at < end:
        until = min(end, (at // step + 1) * step)
        begin = at * params.record_rows
        rows = load(begin, min(until * params.record_rows, rows_end) - begin)
        missing = (until - at) * params.record_rows - len(rows)
        records = np.pad(rows, ((0, missing), (0, 0))) if missing else rows
        records = np.ascontiguousarray(records).reshape(-1, params.record_bytes)
        _store(table, at, records, window, pool)
        hashes.append(_core.hash_records(records, 0, at, pool))
        at = until
        if progress is not None:
            progress(at - first, end - first)
    return np.concatenate(hashes)


def _store(
    table: _core.Table, first: int, rows: ByteArray, window: int, pool: _core.ThreadPool
) -> None:
    """Stores rows; before the first ones, zeros fill their tile."""
    begin = max(window, first - first % _core.TILE_ROWS)
    if begin < first:
        rows = np.pad(rows, ((first - begin, 0), (0, 0)))
    table.store(begin, np.ascontiguousarray(rows), pool)
