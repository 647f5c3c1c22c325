"""A shard at one version, to be written to a file while changes go on.

Changes write rows in place. What they overwrite for the first time since the version is noted. The
memory is copied in parts of whole tiles, each at one instant; in the copy, rows that have changed
by then get their noted bytes again. So the parts are those of the version, byte for byte.
"""

import mmap
from collections.abc import Iterator, Sequence

import numpy as np

from ... import _core
from ..._arrays import ByteArray, IndexArray
from ..._locks import SharedLock
from .._checksums import BLOCK_BYTES
from .._state import TableState
from ._cut import Part

Rows = tuple[IndexArray, ByteArray]
"""Numbers of records, or of rows of a hash table, and their bytes."""


class Frozen:
    """One version of a shard. It takes memory for the rows that change until it is dropped."""

    def __init__(
        self, state: TableState, part: Part, lock: SharedLock, pool: _core.ThreadPool
    ) -> None:
        self.state = state
        self.part = part
        self._lock = lock
        self._pool = pool
        self._old: list[list[Rows]] = [[] for _ in state.params.layouts]

    @property
    def tops(self) -> ByteArray:
        """The tops of the part."""
        return self.state.tree.tops[self.part.first : self.part.end]

    def note(self, overwritten: Sequence[Rows]) -> None:
        """Notes the rows that a change overwrites, of each level, while nobody reads."""
        for own, rows in zip(self._old, overwritten, strict=True):
            own.append(rows)

    def blocks(self, level: int) -> Iterator[ByteArray]:
        """Yields the memory of the records (0) or of a hash table in blocks of 4 MiB.

        The last one may be shorter. A block is valid until the next one.
        """
        rest: ByteArray = np.zeros(0, np.uint8)
        for part in self._parts(level):
            joined = np.concatenate([rest, part]) if len(rest) else part
            end = len(joined) - len(joined) % BLOCK_BYTES
            for first in range(0, end, BLOCK_BYTES):
                yield joined[first : first + BLOCK_BYTES]
            rest = joined[end:].copy()
        if len(rest):
            yield rest

    def _parts(self, level: int) -> Iterator[ByteArray]:
        """Yields the memory in parts of whole tiles, of at most 4 MiB, or one tile."""
        params, table = self.state.params, self.state.table(level)
        layout, (first, count) = params.layouts[level], self.part.window(params, level)
        memory: ByteArray = np.asarray(table.memory()).reshape(-1)
        tile = _core.table_bytes(*layout, window=(first, min(count, _core.TILE_ROWS)))
        step = max(1, BLOCK_BYTES // tile) * _core.TILE_ROWS
        buffer: ByteArray = np.frombuffer(mmap.mmap(-1, max(BLOCK_BYTES, tile)), np.uint8)
        at = 0
        for begin in range(first, first + count, step):
            window = begin, min(step, first + count - begin)
            size = _core.table_bytes(*layout, window=window)
            copy = buffer[:size]
            with self._lock.reading():
                np.copyto(copy, memory[at : at + size])
                changes = list(self._old[level])
            self._undo(level, copy, window, changes)
            at += size
            yield copy

    def _undo(
        self, level: int, copy: ByteArray, window: tuple[int, int], changes: Sequence[Rows]
    ) -> None:
        """Gives rows of a copied window their bytes from before the first of some changes."""
        first, count = window
        inside = [
            (numbers[own], old[own])
            for numbers, old in changes
            for own in [(numbers >= first) & (numbers < first + count)]
            if own.any()
        ]
        if not inside:
            return
        layout = self.state.params.layouts[level]
        numbers, at = np.unique(np.concatenate([one for one, _ in inside]), return_index=True)
        old = np.concatenate([one for _, one in inside])[at]
        table = _core.Table(*layout, copy, window=window)
        table.replace(_core.RowChanges(numbers, old, layout.bins, self._pool), self._pool)
