"""What a product of bits could do at most, and how much arithmetic it has for a byte."""

from typing import NamedTuple

import numpy as np

from .. import _core

_ROW_BYTES = 64
_MOST_VECTORS = 16  # that the engine multiplies together


class Limit(NamedTuple):
    """Seconds for each half of a product by itself."""

    memory: float
    arithmetic: float

    @property
    def longest(self) -> float:
        """What a product cannot be faster than."""
        return max(self)


class Reading:
    """So many bytes, to be read once by a pool's threads from wherever they are kept."""

    def __init__(self, count: int, pool: _core.ThreadPool) -> None:
        self._table = _core.Table(-(-count // _ROW_BYTES), _ROW_BYTES, "bit")
        self._table.memory()[:] = 1  # what was never written is no memory yet
        self._pool = pool
        self._share = count / self._table.bytes

    def __call__(self) -> object:
        """Reads them."""
        return self._table.read_all(self._pool)

    def seconds(self, measured: float) -> float:
        """The time for the bytes alone, of that of a call: a table is some bytes longer."""
        return measured * self._share


def arithmetic_seconds(
    size: int, bits: tuple[int, int], *, batch: int, threads: int, tier: str
) -> float:
    """The time of the inner loops, their data in the first-level cache, on so many threads.

    `bits` are those of weights and of activations.
    """
    slices = [min(_MOST_VECTORS, batch - first) for first in range(0, batch, _MOST_VECTORS)]
    each = sum(_core.seconds_per_weight(*bits, size, vectors, tier) for vectors in slices)
    return each * size * size / threads


def intensity(size: int, weight_bits: int, activation_bits: int, batch: int = 1) -> float:
    """Operations for a byte of a bit-serial product, as Figure 3.2 counts them.

    A multiplication and an addition for each bit of a weight and each bit of an activation. Bytes
    are those of the weights and of the vectors, which come in and go out as float32.
    """
    operations = 2 * size * size * weight_bits * activation_bits * batch
    return operations / (size * size * weight_bits / 8 + 2 * 4 * size * batch)


def standard_intensity(size: int, bits: int, batch: int = 1) -> float:
    """Operations for a byte where weights and activations have as many bits.

    A multiplication and an addition of such numbers; vectors have as many bits coming in and
    float32 going out.
    """
    operations = 2 * size * size * batch
    return operations / ((size * size + size * batch) * bits / 8 + 4 * size * batch)


def random_activations(batch: int, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Vectors (batch, size) that mean nothing."""
    return np.random.default_rng(1).standard_normal((batch, size), np.float32)
