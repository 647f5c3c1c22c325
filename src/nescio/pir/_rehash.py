"""The hashes of a table after an update, from the rows of the chunks that it changes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import starmap

import numpy as np

from .. import _core
from .._arrays import Array, ByteArray, IndexArray
from ._digest import CHUNK_ROWS, hash_chunks
from ._params import TableParams

_RUN_BYTES = 1 << 20
"""Bytes that are loaded and hashed at a time: they stay in a cache."""


def in_order(where: IndexArray, new: ByteArray) -> tuple[IndexArray, ByteArray]:
    """Sorts indices and their rows by chunk; the order within a chunk stays."""
    if (where[1:] >= where[:-1]).all():
        return where, new
    chunks = where // np.uint64(CHUNK_ROWS)
    if not chunks.max() >> np.uint64(16):
        chunks = chunks.astype(np.uint16)  # NumPy sorts these in linear time
    order = np.argsort(chunks, kind="stable")
    return where[order], _as_elements(new)[order].view(np.uint8).reshape(new.shape)


def rehash(
    rows: _core.Table,
    params: TableParams,
    hashes: ByteArray,
    where: IndexArray,
    new: ByteArray,
    *,
    threads: int,
) -> ByteArray:
    """Computes the hashes of all chunks for a table whose rows at `where` are `new`.

    `where` is in the order of `in_order`. The table itself does not change.
    """
    hashes = hashes.copy()
    chunks = (where // np.uint64(CHUNK_ROWS)).astype(np.int64)
    starts = np.flatnonzero(np.diff(chunks, prepend=-1))
    touched, ends = chunks[starts], np.append(starts, len(where))[1:]
    alone = _core.ThreadPool(1)

    def rehash_run(begin: int, end: int) -> None:
        first, last = int(touched[begin]), int(touched[end - 1]) + 1
        at, own = first * CHUNK_ROWS, slice(int(starts[begin]), int(ends[end - 1]))
        part = rows.load_range(at, min(last * CHUNK_ROWS, params.rows) - at, alone)
        # Of several rows for one index, NumPy keeps the last.
        _as_elements(part)[(where[own] - np.uint64(at)).view(np.int64)] = _as_elements(new[own])
        hashes[first:last] = hash_chunks(part, 1)

    runs = list(_runs(touched, max(1, _RUN_BYTES // (CHUNK_ROWS * params.row_bytes))))
    if threads == 1 or len(runs) <= 1:
        list(starmap(rehash_run, runs))
    else:
        with ThreadPoolExecutor(threads) as workers:
            list(workers.map(lambda run: rehash_run(*run), runs))
    return hashes


def _as_elements(rows: ByteArray) -> Array:
    """Views rows as elements, which NumPy copies one by one; integers where they have the size."""
    size = rows.shape[1]
    elements: Array = rows.view(f"u{size}" if size in {1, 2, 4, 8} else f"V{size}").reshape(-1)
    return elements


def _runs(numbers: Array, most: int) -> Iterator[tuple[int, int]]:
    """Yields the ranges of positions with consecutive numbers, of at most `most` numbers each."""
    begins = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
    for begin, end in zip(begins, np.append(begins, len(numbers))[1:], strict=True):
        for first in range(int(begin), int(end), most):
            yield first, min(first + most, int(end))
