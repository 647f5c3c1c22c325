"""Which of several bases of binary columns: the one whose updates are smallest.

Where two columns never meet their sum is binary, too, and where one is inside the other their
difference is; the span says nothing about which two are users. The updates do: if x_j + x_i takes
the place of x_j, the update of i becomes g_i - g_j. Updates of different users are nearly
orthogonal beside what all have in common, so a wrong one is a sum of two, and larger.
"""

import numpy as np
import numpy.typing as npt

from .problem import FloatArray, Log
from .subspace import gram_matrix

__all__ = ["settle"]

Columns = npt.NDArray[np.uint8]

_FEW = 8


def settle(log: Log, columns: Columns) -> Columns:
    """The columns (k, rounds), independent, with sums or differences of two in place of some."""
    if not len(columns):
        return columns
    current = columns.astype(np.int64)
    inverse = np.linalg.pinv(columns.T.astype(np.float64))
    products = inverse @ gram_matrix(log.aggregates) @ inverse.T
    for _ in range(4 * len(columns)):
        step = _best_step(current, _apart(products))
        if step is None:
            break
        i, j, sign = step
        current[j] += sign * current[i]
        products[i] -= sign * products[j]
        products[:, i] -= sign * products[:, j]
    return current.astype(np.uint8)


def _apart(products: FloatArray) -> FloatArray:
    """Products of updates without their common direction, that of their mean."""
    if len(products) < _FEW:
        return products
    along = products.sum(axis=1)
    return np.asarray(products - np.outer(along, along) / max(float(along.sum()), 1e-300))


def _best_step(columns: npt.NDArray[np.int64], products: FloatArray) -> tuple[int, int, int] | None:
    """(i, j, sign): x_j + sign x_i is binary, and makes the sum of squares smallest; None: none."""
    both = columns @ columns.T
    sizes = np.diag(both)
    squares = np.diag(products)
    gain = np.full((2, *both.shape), -np.inf)
    gain[0] = np.where(both == 0, 2 * products - squares, -np.inf)
    gain[1] = np.where(both == sizes[:, None], -2 * products - squares, -np.inf)
    gain[:, np.eye(len(both), dtype=np.bool_)] = -np.inf
    best = np.unravel_index(int(np.argmax(gain)), gain.shape)
    if not gain[best] > 1e-9 * float(squares.max()):
        return None
    return int(best[1]), int(best[2]), 1 if best[0] == 0 else -1
