"""Chooses among candidate binary bases the one with the smallest update norms.

The sum of two columns that never overlap is binary, and so is the difference if one contains the
other; the span does not determine which are users. The updates do. If v = c_1 x_1 + ... replaces
x_j, with c_j = 1 or -1, the update of any other i becomes g_i - c_i c_j g_j. Updates of different
users are nearly orthogonal apart from their common part, so wrong ones, which are sums of several,
are larger.
"""

import time

import numpy as np
import numpy.typing as npt

from .._arrays import Columns, FloatArray
from .._log.gram import gram_matrix
from .._log.record import Log

__all__ = ["binary", "binary_pairs", "column_basis", "select_basis"]


_ROUNDS = 8
_FEW = 8
"""With fewer users, the mean update is not used as a common direction."""


def select_basis(
    log: Log, columns: Columns, pool: Columns, deadline: float = float("inf")
) -> Columns:
    """Returns the columns (k, rounds), independent, with some replaced from the pool (m, rounds).

    Candidates are the pool, and sums and differences of two columns. The exchange that reduces the
    sum of squares of the updates most is repeated until none reduces it, or until the deadline
    (monotonic clock).
    """
    if not len(columns) or time.monotonic() > deadline:
        return columns
    columns = columns.copy()
    gram = gram_matrix(log.aggregates)
    for _ in range(_ROUNDS):
        inverse = np.linalg.pinv(columns.T.astype(np.float64))
        wider = np.unique(np.concatenate((pool, binary_pairs(columns.astype(np.int64)))), axis=0)
        weights = wider @ inverse.T
        inside = np.abs(weights @ columns - wider).max(axis=1) < 1e-6
        products = inverse @ gram @ inverse.T
        if not _descend(columns, wider[inside], np.rint(weights[inside]), products, deadline):
            break
    return columns


def _descend(
    columns: Columns, pool: Columns, weights: FloatArray, products: FloatArray, deadline: float
) -> bool:
    """Exchanges columns with the pool in place; returns True if it exchanged any.

    `weights` (m, k): the pool in terms of the columns. `products` (k, k): of the updates.
    """
    for step in range(4 * len(columns)):
        if time.monotonic() > deadline:
            return False
        best = _best_exchange(weights, _without_mean(products))
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
    """uint8 (m, n): distinct binary rows among (k, n) rows, their sums and differences."""
    found = [rows]
    for k, row in enumerate(rows[:-1]):
        for others in (rows[k + 1 :] + row, rows[k + 1 :] - row):
            found += [others[_is_binary(others)]]
    return binary(np.concatenate(found))


def binary(rows: npt.NDArray[np.int64]) -> Columns:
    """uint8 (m, n): the distinct binary rows among (k, n) rows, up to sign."""
    return np.unique(np.abs(rows[_is_binary(rows)]).astype(np.uint8), axis=0)


def _is_binary(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    low, high = rows.min(axis=1), rows.max(axis=1)
    return np.asarray(((low >= 0) & (high == 1)) | ((low == -1) & (high <= 0)))


def _without_mean(products: FloatArray) -> FloatArray:
    """Returns products of updates without their common direction, that of their mean."""
    if len(products) < _FEW:
        return products
    along = products.sum(axis=1)
    return np.asarray(products - np.outer(along, along) / max(float(along.sum()), 1e-300))


def _best_exchange(weights: FloatArray, products: FloatArray) -> tuple[int, int] | None:
    """Returns (index in the pool, place in the basis) of the best exchange; None if none helps."""
    squares = np.diag(products)
    others = (weights**2).sum(axis=1)[:, None] - 1
    change = squares * others - 2 * weights * (weights @ products - weights * squares)
    change[np.abs(weights) != 1] = np.inf
    best = np.unravel_index(int(np.argmin(change)), change.shape)
    if not change[best] < -1e-9 * float(squares.max()):
        return None
    return int(best[0]), int(best[1])


def column_basis(columns: Columns) -> FloatArray:
    """Returns an orthonormal basis (rounds, rank) of columns (k, rounds)."""
    left, values, _ = np.linalg.svd(columns.T.astype(np.float64), full_matrices=False)
    return np.asarray(left[:, values > 1e-9 * values.max(initial=1e-300)])
