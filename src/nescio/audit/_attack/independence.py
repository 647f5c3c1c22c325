"""Searches again for columns that two users share, or that depend on those of others.

Columns of active users are independent if their number is the rank of the span. So if recovered
columns are dependent, one of them is wrong, however well it fits; it is searched again outside the
span of the others.
"""

import contextlib
import time

import numpy as np

from .._arrays import Columns, IntArray
from .._log.windows import Batch
from .rrr import Search
from .state import State, search

__all__ = ["make_independent", "separate_twins", "suspects"]

_TWINS = 6
"""Maximum attempts to find different columns for users who got the same one."""
_AT_ONCE = 1  # a second column found outside may depend on the first


def separate_twins(state: State, batch: Batch) -> None:
    """Searches again for users of a batch whose column another user also has."""
    for _ in range(_TWINS):
        _, first = np.unique(state.columns[batch.users], axis=0, return_index=True)
        again = np.setdiff1d(np.arange(len(batch.users)), first)
        if not len(again) or time.monotonic() > state.deadline:
            return
        how = Search(iterations=300, starts=1, deadline=state.deadline)
        taken = state.columns[batch.users[first]]
        _replace(state, batch, again, how, taken)


def make_independent(state: State) -> None:
    """Searches again for columns that depend on others, outside the span of those."""
    if state.subspace.basis.shape[1] < sum(len(batch.users) for batch in state.batches):
        return
    for batch in state.batches * _TWINS:
        users = np.flatnonzero(state.columns.any(axis=1))
        dependent = users[suspects(state.columns[users])]
        doubtful = np.intersect1d(dependent, batch.users)
        if not len(dependent) or time.monotonic() > state.deadline:
            return
        if not len(doubtful):
            continue
        again = np.searchsorted(batch.users, doubtful[:_AT_ONCE])
        how = Search(iterations=600, starts=1, deadline=state.deadline)
        _replace(state, batch, again, how, state.columns[users], outside=True)


def _replace(
    state: State,
    batch: Batch,
    again: IntArray,
    how: Search,
    taken: Columns,
    *,
    outside: bool = False,
) -> None:
    """Searches for the users at places `again`, and keeps the columns that fit."""
    part = batch.part(again)
    found = search(state, part, how, taken, outside=outside)
    state.columns[part.users[found.fits]] = found.columns[found.fits]


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
