"""Gram matrix of the aggregates, computed in blocks of dimensions."""

from collections.abc import Callable

import numpy as np

from .._arrays import FloatArray

__all__ = ["gram_matrix"]

_BLOCK_BYTES = 1 << 27


def gram_matrix(
    aggregates: FloatArray, factors: Callable[[FloatArray], FloatArray] | None = None
) -> FloatArray:
    """Returns A A^T in float64.

    `factors` returns, for a block of float64 (rounds, dimensions), what to multiply each dimension
    by: (dimensions,).
    """
    rounds, dimensions = aggregates.shape
    step = max(1, _BLOCK_BYTES // (8 * rounds))
    total = np.zeros((rounds, rounds))
    for start in range(0, dimensions, step):
        block = np.asarray(aggregates[:, start : start + step], np.float64)
        if factors is not None:
            block = block * factors(block)
        total += block @ block.T
    return total
