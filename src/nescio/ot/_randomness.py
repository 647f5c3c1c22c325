"""Where a party's coins come from: the operating system, or a seed in test vectors."""

import hashlib
import os
from typing import Protocol

from .._arrays import as_bytes

_SEEDED_TAG = b"Nescio insecure test coins 1"
_READ_AHEAD = 4096


class Randomness(Protocol):
    """A source of uniform bytes."""

    def draw(self, count: int, /) -> bytes:
        """The next `count` bytes."""


class SystemRandomness:
    """The operating system's generator."""

    def draw(self, count: int, /) -> bytes:
        """The next `count` bytes."""
        return os.urandom(count)


class _Seeded:
    """One output of SHAKE-128, handed out from its beginning."""

    def __init__(self, seed: bytes) -> None:
        self._shake = hashlib.shake_128(_SEEDED_TAG + seed)
        self._known = b""
        self._used = 0

    def draw(self, count: int, /) -> bytes:
        """The next `count` bytes."""
        begin, end = self._used, self._used + count
        if end > len(self._known):
            # An output begins with every shorter one, so a longer one goes on where that ended.
            self._known = self._shake.digest(max(end, 2 * len(self._known), _READ_AHEAD))
        self._used = end
        return self._known[begin:end]


def insecure_seeded(seed: bytes) -> Randomness:
    """Coins that whoever knows `seed` knows too: for test vectors, never for a protocol's run.

    They are the output of SHAKE-128 (FIPS 202) on a tag and the seed, however they are drawn.
    Raises ArgumentError unless `seed` is bytes.
    """
    return _Seeded(as_bytes(seed, "seed").tobytes())
