"""Which of several bases of binary columns: the one whose updates are smallest.

Where two columns never meet their sum is binary, too, and where one is inside the other their
difference is; the span does not say which are users. The updates do. If v = c_1 x_1 + ... takes the
place of x_j, with c_j = 1 or -1, the update of any other i becomes g_i - c_i c_j g_j. Updates of
different users are nearly orthogonal beside what all have in common, so wrong ones, which are sums
of several, are larger.
"""

import numpy as np
import numpy.typing as npt

from .._arrays import Columns, FloatArray
from .._log.gram import gram_matrix
from .._log.record import Log

__all__ = ["binary", "binary_pairs", "select_basis"]


_ROUNDS = 8
_FEW = 8
"""Of fewer users the mean update is no common direction."""


def select_basis(log: Log, columns: Columns, pool: Columns) -> Columns:
    """The columns (k, rounds), independent, with some of the pool (m, rounds) in place of some.

    The pool, and sums and differences of two of the columns. Always the exchange that makes the sum
    of squares of the updates smallest, while there is one.
    """
    if not len(columns):
        return columns
    columns = columns.copy()
    gram = gram_matrix(log.aggregates)
    for _ in range(_ROUNDS):
        inverse = np.linalg.pinv(columns.T.astype(np.float64))
        wider = np.unique(np.concatenate((pool, binary_pairs(columns.astype(np.int64)))), axis=0)
        weights = wider @ inverse.T
        inside = np.abs(weights @ columns - wider).max(axis=1) < 1e-6
        products = inverse @ gram @ inverse.T
        if not _descend(columns, wider[inside], np.rint(weights[inside]), products):
            break
    return columns


def _descend(columns: Columns, pool: Columns, weights: FloatArray, products: FloatArray) -> bool:
    """Exchanges columns for those of the pool, in place; whether there was one to exchange.

    `weights` (m, k): of the columns in the pool. `products` (k, k): of updates.
    """
    for step in range(4 * len(columns)):
        best = _best_exchange(weights, _apart(products))
        if best is None:
            return step > 0
        new, place = best
        columns[place] = pool[new]
        turn = np.eye(len(columns))
        turn[place] = weights[new]
        back = np.linalg.inv(turn)
        products = back.T @ products @ back
        weights = np.rint(weights @ back)
    return True


def binary_pairs(rows: npt.NDArray[np.int64]) -> Columns:
    """uint8 (m, n): the different binary ones of rows (k, n), their sums and their differences."""
    found = [rows]
    for k, row in enumerate(rows[:-1]):
        for others in (rows[k + 1 :] + row, rows[k + 1 :] - row):
            found += [others[_is_binary(others)]]
    return binary(np.concatenate(found))


def binary(rows: npt.NDArray[np.int64]) -> Columns:
    """uint8 (m, n): the different ones of rows (k, n) that are binary, up to their sign."""
    return np.unique(np.abs(rows[_is_binary(rows)]).astype(np.uint8), axis=0)


def _is_binary(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    low, high = rows.min(axis=1), rows.max(axis=1)
    return np.asarray(((low >= 0) & (high == 1)) | ((low == -1) & (high <= 0)))


def _apart(products: FloatArray) -> FloatArray:
    """Products of updates without their common direction, that of their mean."""
    if len(products) < _FEW:
        return products
    along = products.sum(axis=1)
    return np.asarray(products - np.outer(along, along) / max(float(along.sum()), 1e-300))


def _best_exchange(weights: FloatArray, products: FloatArray) -> tuple[int, int] | None:
    """(number in the pool, place in the basis) that lowers the sum of squares most; None: none."""
    squares = np.diag(products)
    others = (weights**2).sum(axis=1)[:, None] - 1
    change = squares * others - 2 * weights * (weights @ products - weights * squares)
    change[np.abs(weights) != 1] = np.inf
    best = np.unravel_index(int(np.argmin(change)), change.shape)
    if not change[best] < -1e-9 * float(squares.max()):
        return None
    return int(best[0]), int(best[1])
