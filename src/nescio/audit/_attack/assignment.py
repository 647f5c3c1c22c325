"""Conditions on all columns together: independence, and assignment of columns to users.

Columns of active users are independent if their number is the rank of the span. So if recovered
columns are dependent, one of them is wrong, however well it fits; it is searched again outside the
span of the others. Where counts are inexact or missing, a column can fit several users. Then all
columns are assigned to users so that the sum of squared count errors is smallest (the chapter's
soft constraint, over the whole matrix).
"""

import contextlib

import numpy as np
import numpy.typing as npt

from .._arrays import Columns, FloatArray, IntArray
from .._log.counts import window_sums
from .._log.record import Log

__all__ = ["assigned", "outside_of", "suspects"]


_FORBIDDEN = 1e9


def suspects(columns: Columns) -> IntArray:
    """Returns the rows of `columns` (k, rounds) that take part in a linear dependence."""
    points = columns.astype(np.float64)
    with contextlib.suppress(np.linalg.LinAlgError):  # dependent: no Cholesky factor
        root = np.linalg.cholesky(points @ points.T)
        if np.diag(root).min(initial=1) > 1e-5:  # the distance of a row from those before it
            return np.zeros(0, np.int64)
    _, values, right = np.linalg.svd(columns.T.astype(np.float64), full_matrices=False)
    null = right[values < 1e-9 * max(values.max(initial=0), 1.0)]
    return np.flatnonzero((np.abs(null) > 1e-7).any(axis=0))


def outside_of(known: Columns, columns: Columns) -> npt.NDArray[np.bool_]:
    """(k,): True for rows of `columns` outside the span of the rows `known`."""
    left, values, _ = np.linalg.svd(known.T.astype(np.float64), full_matrices=False)
    basis = left[:, values > 1e-9 * values.max(initial=1e-300)]
    points = columns.astype(np.float64)
    rest = points - (points @ basis) @ basis.T
    return np.asarray(np.linalg.norm(rest, axis=1) > 1e-6)


def assigned(log: Log, users: IntArray, columns: Columns) -> IntArray:
    """(k,): the row of `columns` (k, rounds) that each of `users` gets.

    Unchanged if no other assignment reduces the errors of the counts.
    """
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - an extra

    assert log.counts is not None
    cost = _count_errors(log, users, columns)
    rows, places = linear_sum_assignment(cost)
    before = np.arange(len(users))
    if cost[rows, places].sum() >= cost[before, before].sum():
        return before
    return np.asarray(places, np.int64)


def _count_errors(log: Log, users: IntArray, columns: Columns) -> FloatArray:
    """(users, columns): squared errors of the counts, very large beyond `count_error`."""
    assert log.counts is not None
    sums = window_sums(columns, log.windows)
    cost = np.zeros((len(users), len(columns)))
    for k, counts in enumerate(log.counts[users]):
        error = np.where(counts < 0, 0, np.abs(sums - counts))
        cost[k] = (error**2).sum(axis=1) + _FORBIDDEN * (error > log.count_error).any(axis=1)
    return cost
