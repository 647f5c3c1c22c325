"""Updates of rows: the hashes of the new version first, then the rows themselves."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .. import _core
from .._arrays import Array, ByteArray, IndexArray
from ._digest import CHUNK_ROWS, hash_chunks, hashes_in_threads
from ._params import TableParams

_RUN_BYTES = 512 << 10
"""Bytes that are loaded and hashed at a time: they stay in a cache."""

_COPY_BYTES = 8 << 20
"""Maximum bytes of rows that are copied as a whole: they stay in a cache."""

_COPY_SHARE = 32
"""A table is copied if one in so many rows changes, or more."""


class Update:
    """New rows of a table, written in two steps. `hashes` has the hashes of all chunks after both.

    The first step computes the hashes, and the table stays as it is. The second step is `write`. Of
    several rows for one index, the last wins. There are two ways:

    - in groups: the new rows are copied in the order of the table. The runs that change are loaded,
      changed and hashed, and later the rows are changed in place. This takes the bytes of the new
      rows, up to 10 bytes for each, 1/25 byte per row of the table, and per thread `_RUN_BYTES`,
      or a chunk if it is longer;
    - as a whole: a small table of which much changes is copied, changed, hashed, and later written
      anew, as when it was made. This takes the bytes of all rows, at most `_COPY_BYTES`.
    """

    def __init__(
        self,
        table: _core.Table,
        params: TableParams,
        hashes: ByteArray,
        indices: IndexArray,
        rows: ByteArray,
        *,
        pool: _core.ThreadPool,
    ) -> None:
        self._table, self._params, self._pool = table, params, pool
        if _copies(params, indices):
            self._copy: ByteArray | None = table.load_range(0, params.rows, pool)
            # Of several rows for one index, NumPy keeps the last.
            _as_elements(self._copy)[indices.view(np.int64)] = _as_elements(rows)
            self.hashes = hash_chunks(self._copy, pool.threads)
        else:
            self._copy = None
            self._changes = _core.RowChanges(indices, rows, params.rows, pool)
            self.hashes = hashes.copy()
            self._rehash(self._changes)

    def write(self) -> None:
        """Writes the rows. Nothing else may read or write the table."""
        if self._copy is not None:
            self._table.store(0, self._copy, self._pool)
        else:
            self._table.replace(self._changes, self._pool)

    def _rehash(self, changes: _core.RowChanges) -> None:
        row_bytes, threads = self._params.row_bytes, self._pool.threads
        run_chunks = max(1, _RUN_BYTES // (CHUNK_ROWS * row_bytes))
        buffers: list[ByteArray] = []  # those that no thread uses
        alone = _core.ThreadPool(1)

        def rehash_run(run: tuple[int, int]) -> None:
            begin, stop = run[0] * CHUNK_ROWS, min(run[1] * CHUNK_ROWS, self._params.rows)
            try:
                buffer = buffers.pop()
            except IndexError:
                buffer = np.empty((run_chunks * CHUNK_ROWS, row_bytes), np.uint8)
            part = buffer[: stop - begin]
            self._table.load_changed(begin, changes, part, alone)
            self.hashes[slice(*run)] = hash_chunks(part, 1)
            buffers.append(buffer)

        runs = list(_runs(changes.touched(CHUNK_ROWS), run_chunks))
        if threads == 1 or len(runs) <= 1 or not hashes_in_threads(row_bytes):
            for run in runs:
                rehash_run(run)
        else:
            with ThreadPoolExecutor(threads) as workers:
                list(workers.map(rehash_run, runs))


def _copies(params: TableParams, indices: IndexArray) -> bool:
    """Decides if an update copies the table: a small one, if many rows change, not side by side."""
    if params.rows * params.row_bytes > _COPY_BYTES or len(indices) * _COPY_SHARE < params.rows:
        return False
    return 2 * int(indices.max() - indices.min()) >= params.rows


def _as_elements(rows: ByteArray) -> Array:
    """Views rows as elements, which NumPy copies one by one; integers where they have the size."""
    size = rows.shape[1]
    elements: Array = rows.view(f"u{size}" if size in {1, 2, 4, 8} else f"V{size}").reshape(-1)
    return elements


def _runs(numbers: Array, most: int) -> Iterator[tuple[int, int]]:
    """Yields the ranges of consecutive numbers, of at most `most` numbers each."""
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    for own in np.split(numbers, breaks) if len(numbers) else []:
        end = int(own[-1]) + 1
        for begin in range(int(own[0]), end, most):
            yield begin, min(begin + most, end)
