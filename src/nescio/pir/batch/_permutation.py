"""Seeded permutations of row numbers, in closed form: a client needs no map of the table.

A number below `rows` is a point of a rectangle with at least so many places, and rounds of a
Feistel network add a hash of one coordinate to the other one. docs/wire-format.md defines it.
"""

from math import isqrt

import numpy as np

from ..._arrays import IndexArray

ROUNDS = 6
_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_HALF = np.uint64(32)


class Permutation:
    """A permutation of the places of a rectangle, of which the first `rows` are numbers of rows.

    `places` is the number of places, at least `rows`; `seed` and `number` choose the permutation.
    Points must be below `places`. Hashes are not cryptographic: the seed is public.
    """

    def __init__(self, rows: int, seed: int, number: int) -> None:
        self._height = isqrt(rows - 1) + 1
        self._width = -(-rows // self._height)
        self.places = self._height * self._width
        first = number * ROUNDS + 1
        self._keys = [
            _mix_integer(seed + step * _GOLDEN & _WORD) for step in range(first, first + ROUNDS)
        ]

    def __call__(self, rows: IndexArray) -> IndexArray:
        """Returns the places of numbers."""
        left, right = np.divmod(rows, np.uint64(self._width))
        for step, key in enumerate(self._keys):
            if step % 2:
                right = (right + _hashed(left, key, self._width)) % np.uint64(self._width)
            else:
                left = (left + _hashed(right, key, self._height)) % np.uint64(self._height)
        places: IndexArray = left * np.uint64(self._width) + right
        return places

    def inverse(self, places: IndexArray) -> IndexArray:
        """Returns the numbers at places; those from `rows` on are of no row."""
        width, height = np.uint64(self._width), np.uint64(self._height)
        left, right = np.divmod(places, width)
        for step, key in reversed(list(enumerate(self._keys))):
            if step % 2:
                right = (right + width - _hashed(left, key, self._width)) % width
            else:
                left = (left + height - _hashed(right, key, self._height)) % height
        rows: IndexArray = left * width + right
        return rows


def _hashed(values: IndexArray, key: int, limit: int) -> IndexArray:
    """Hashes values to numbers below `limit`, which has at most 32 bits."""
    words = _mix(values * np.uint64(_GOLDEN) + np.uint64(key))
    hashed: IndexArray = (words >> _HALF) * np.uint64(limit) >> _HALF
    return hashed


def _mix(words: IndexArray) -> IndexArray:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed: IndexArray = words ^ words >> np.uint64(31)
    return mixed


def _mix_integer(word: int) -> int:
    return int(_mix(np.array([word], np.uint64))[0])
