"""All searches by relaxed-reflect-reflect, with local search and restarts in noise."""

import time

import numpy as np

from .independence import make_independent, separate_twins
from .local_search import LocalSearch, take_nearer
from .restart import MAX_RESTARTS, restart
from .rrr import Search
from .state import State, search

__all__ = ["reflect_all", "trial"]

_FIRST = 400
"""Iterations in noise before local search and the first measurement of the noise."""


def trial(state: State) -> tuple[float, bool]:
    """Searches without restarts, to compare estimates of the span.

    Returns the median distance of the columns per dimension outside the span, and True if the noise
    is not white.
    """
    reflect_all(state, again=0)
    space, points = state.subspace, state.columns[state.active].astype(np.float64)
    off = float(np.median(space.distances(points)) / np.sqrt(max(space.free, 1)))
    return off, space.calibrated(points).colored


def reflect_all(state: State, again: int = MAX_RESTARTS) -> None:
    """Searches for the columns of all users; in noise with up to `again` restarts."""
    noisy = not state.subspace.exact
    how = Search(deadline=state.deadline)
    if noisy:
        how = Search(iterations=_FIRST, starts=1, deadline=state.deadline)
    for batch in state.batches:
        state.columns[batch.users] = search(state, batch, how).columns
        separate_twins(state, batch)
    if noisy:
        for batch in state.batches:
            if time.monotonic() > state.deadline:
                break
            improve = LocalSearch(state.subspace, batch, state.log.empty, state.deadline)
            take_nearer(state, batch.users, improve(state.columns[batch.users]))
        if again:
            restart(state, again)
    make_independent(state)
