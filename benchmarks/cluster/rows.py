"""Rows of any number that a seed determines: each can be made again from its index."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nescio._arrays import ByteArray

__all__ = ["GeneratedRows"]

_BLOCK_ROWS = 4096


@dataclass(frozen=True, slots=True)
class GeneratedRows:
    """Rows of `row_bytes` random bytes, a multiple of 8, as the input of a build.

    They are made in blocks, each by a generator of its own, and are nowhere stored.
    """

    rows: int
    row_bytes: int
    seed: int

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row."""
        return (self.row_bytes,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return np.dtype(np.uint8)

    def read(self, first: int, count: int) -> ByteArray:
        """Makes `count` rows from row `first` on: (count, row_bytes)."""
        blocks = range(first // _BLOCK_ROWS, -(-(first + count) // _BLOCK_ROWS))
        made = [self._block(number) for number in blocks]
        if not made:
            return np.zeros((0, self.row_bytes), np.uint8)
        begin = first - blocks[0] * _BLOCK_ROWS
        return np.concatenate(made)[begin : begin + count]

    def _block(self, number: int) -> ByteArray:
        words = np.random.SFC64((self.seed, number)).random_raw(_BLOCK_ROWS * self.row_bytes // 8)
        return np.asarray(words).view(np.uint8).reshape(_BLOCK_ROWS, self.row_bytes)
