"""Gram matrix of the aggregates, computed in blocks of dimensions."""

import numpy as np

from .._arrays import FloatArray

__all__ = ["gram_matrix"]

_BLOCK_BYTES = 1 << 27


def gram_matrix(aggregates: FloatArray, *, standardize: bool = False) -> FloatArray:
    """Returns A A^T in float64; `standardize` divides parameters by their standard deviation."""
    rounds, dimensions = aggregates.shape
    step = max(1, _BLOCK_BYTES // (8 * rounds))
    total = np.zeros((rounds, rounds))
    for start in range(0, dimensions, step):
        block = np.asarray(aggregates[:, start : start + step], np.float64)
        if standardize:
            block = block * _standardizing(block)
        total += block @ block.T
    return total


def _standardizing(block: FloatArray) -> FloatArray:
    """(dimensions,): 1 / standard deviation of each parameter over the rounds; 0 for constants.

    Parameters that change little relative to their size count as constants.
    """
    deviation = block.std(axis=0)
    size = np.sqrt(np.mean(block**2, axis=0))
    changes = deviation > 1e-3 * size
    return np.asarray(np.where(changes, 1 / np.where(changes, deviation, 1), 0))
