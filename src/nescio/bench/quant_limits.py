"""Lower bounds of a bit-serial product, and its arithmetic intensity."""

from typing import NamedTuple

import numpy as np

from .. import _core

_ROW_BYTES = 64
_MAX_VECTORS = 16  # multiplied together by the engine


class Limit(NamedTuple):
    """The time of each part of a product alone, in seconds."""

    memory: float
    arithmetic: float

    @property
    def longest(self) -> float:
        """The lower bound of the product's time."""
        return max(self)


class Reading:
    """Reads a number of bytes once with the threads of a pool, from cache or memory."""

    def __init__(self, count: int, pool: _core.ThreadPool) -> None:
        self._table = _core.Table([(1, -(-count // _ROW_BYTES), 1)], _ROW_BYTES, "bit")
        self._table.memory()[:] = 1  # writing allocates the memory
        self._pool = pool
        self._share = count / self._table.bytes

    def __call__(self) -> object:
        """Reads the bytes."""
        return self._table.read_all(self._pool)

    def seconds(self, measured: float) -> float:
        """Returns the time for exactly these bytes; the table that is read is slightly longer."""
        return measured * self._share


def arithmetic_seconds(
    size: int, bits: tuple[int, int], *, batch: int, threads: int, tier: str
) -> float:
    """Returns the time of the inner loops with data in the first-level cache.

    `bits` are those of weights and of activations.
    """
    slices = [min(_MAX_VECTORS, batch - first) for first in range(0, batch, _MAX_VECTORS)]
    each = sum(_core.seconds_per_weight(*bits, size, vectors, tier) for vectors in slices)
    return each * size * size / threads


def intensity(size: int, weight_bits: int, activation_bits: int, batch: int = 1) -> float:
    """Returns the operations per byte of a bit-serial product, as Figure 3.2 counts them.

    Operations are a multiplication and an addition for each bit of a weight and each bit of an
    activation. Bytes are those of the weights and of the float32 vectors read and written.
    """
    operations = 2 * size * size * weight_bits * activation_bits * batch
    return operations / (size * size * weight_bits / 8 + 2 * 4 * size * batch)


def standard_intensity(size: int, bits: int, batch: int = 1) -> float:
    """Returns the operations per byte if weights and activations have the same width.

    Operations are a multiplication and an addition of numbers of that width. Input vectors have
    that width, output vectors are float32.
    """
    operations = 2 * size * size * batch
    return operations / ((size * size + size * batch) * bits / 8 + 4 * size * batch)


def random_activations(batch: int, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Returns random vectors of shape (batch, size)."""
    return np.random.default_rng(1).standard_normal((batch, size), np.float32)
