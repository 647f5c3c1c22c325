"""Assignment of columns to users, where counts leave a choice.

Where counts are inexact or missing, a column can fit several users. Then all columns are assigned
to users so that the sum of squared count errors is smallest (the chapter's soft constraint, over
the whole matrix).
"""

import numpy as np

from .._arrays import Columns, FloatArray, IntArray
from .._log.counts import window_sums
from .._log.record import Log
from .state import State

__all__ = ["assign"]

_FORBIDDEN = 1e9


def assign(state: State) -> None:
    """Assigns columns to users by the best match of all counts, where counts leave a choice."""
    counts = state.log.counts
    assert counts is not None
    if state.log.count_error == 0 and (counts >= 0).all():
        return
    users = np.concatenate([batch.users for batch in state.batches])
    users.sort()
    state.columns[users] = state.columns[users[_assigned(state.log, users, state.columns[users])]]


def _assigned(log: Log, users: IntArray, columns: Columns) -> IntArray:
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
