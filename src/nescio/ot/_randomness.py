"""A party's source of random bytes: the operating system, or a seed for test vectors."""

import hashlib
import os
from typing import Protocol

import numpy as np

from .. import _core
from .._arrays import IndexArray, as_bytes
from ._blocks import as_blocks

_SEEDED_TAG = b"Nescio insecure test coins 1"
_READ_AHEAD = 4096


class Randomness(Protocol):
    """A source of uniform bytes."""

    def draw(self, count: int, /) -> bytes:
        """Draws the next `count` bytes."""

    def blocks(self, count: int, /) -> IndexArray:
        """Draws the next `count` blocks, uint64 of shape (count, 2), which can be wiped."""


class SystemRandomness:
    """The operating system's generator."""

    def draw(self, count: int, /) -> bytes:
        """Draws the next `count` bytes."""
        return os.urandom(count)

    def blocks(self, count: int, /) -> IndexArray:
        """Draws the next `count` blocks, without a copy in a Python object."""
        blocks: IndexArray = np.empty((count, 2), np.uint64)
        _core.fill_random(blocks.view(np.uint8).reshape(-1))
        return blocks


class _Seeded:
    """One output stream of SHAKE-128, read from its start."""

    def __init__(self, seed: bytes) -> None:
        self._shake = hashlib.shake_128(_SEEDED_TAG + seed)
        self._known = b""
        self._used = 0

    def draw(self, count: int, /) -> bytes:
        """Draws the next `count` bytes."""
        begin, end = self._used, self._used + count
        if end > len(self._known):
            # A shorter output is a prefix of a longer one, so this extends the stream.
            self._known = self._shake.digest(max(end, 2 * len(self._known), _READ_AHEAD))
        self._used = end
        return self._known[begin:end]

    def blocks(self, count: int, /) -> IndexArray:
        """Draws the next `count` blocks."""
        return as_blocks(bytearray(self.draw(16 * count)))


def insecure_seeded(seed: bytes) -> Randomness:
    """Makes a source that anyone who knows `seed` can predict: only for test vectors.

    Its bytes are the output of SHAKE-128 (FIPS 202) on a tag and the seed, however the draws divide
    them. Raises ArgumentError unless `seed` is bytes.
    """
    return _Seeded(as_bytes(seed, "seed").tobytes())
