"""Restarts of the search in noise, for users whose column is too far from the span."""

import time
from dataclasses import replace

import numpy as np

from .local_search import LocalSearch, take_nearer
from .rrr import Search
from .state import State, search

__all__ = ["MAX_RESTARTS", "restart"]

MAX_RESTARTS = 12
_IDLE = 3
"""Maximum consecutive restarts without progress."""


def restart(state: State, again: int) -> None:
    """Measures the noise on the columns, and searches `again` times for those that do not fit."""
    how, idle = Search(starts=1, deadline=state.deadline), 0
    while again and idle < _IDLE and time.monotonic() < state.deadline:
        before = _number_that_fit(state)
        for batch in state.batches:
            left = ~state.fit.fits(state.columns[batch.users], batch.users)
            part = batch.part(np.flatnonzero(left))
            if not len(part.users) or time.monotonic() > state.deadline:
                continue
            found = search(state, part, how)
            improve = LocalSearch(state.subspace, part, state.log.empty, state.deadline)
            take_nearer(state, part.users, improve(found.columns))
        now = _number_that_fit(state)
        idle = 0 if now > before else idle + 1
        again = 0 if now == len(state.active) else again - 1


def _number_that_fit(state: State) -> int:
    """Measures the noise again and counts the users whose column fits."""
    state.subspace = state.subspace.calibrated(state.columns.astype(np.float64))
    state.fit = replace(state.fit, subspace=state.subspace)
    return sum(
        int(state.fit.fits(state.columns[batch.users], batch.users).sum())
        for batch in state.batches
    )
