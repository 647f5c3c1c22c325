"""Integer programs of a search: for columns that are missing, and for other columns that fit."""

import os
import time
from collections.abc import Callable

import numpy as np

from ..._arrays import as_threads
from .._arrays import Columns, FloatArray, IntArray
from .._log.windows import Batch
from .local_search import nearer
from .milp import Limits, Others, Program
from .state import State

__all__ = ["Exclude", "exclude", "solve_programs"]

Exclude = Callable[[FloatArray, Batch, IntArray, Columns], list[Others]]
"""`exclude` of a state: integer programs for users at places of a batch."""

_NODES = 100
_OTHERS, _FEW = 8, 32
"""Other columns listed for each user without noise, if there are few such users."""
_WORK = 2_000_000
"""Entries of integer programs (rounds times rank) solved in method "auto", all columns together."""


def solve_programs(state: State, *, every: bool) -> None:
    """Runs integer programs for the columns that do not fit: for `every` one, or a few."""
    noisy = not state.subspace.exact
    for batch in state.batches:
        left = np.flatnonzero(~state.fit.fits(state.columns[batch.users], batch.users))
        if not every:  # with noise a program takes minutes each
            left = left[: 0 if noisy else _side_columns(state)]
        if not len(left) or time.monotonic() > state.deadline:
            continue
        program = _program(state, state.subspace.plain, batch, noisy=noisy)
        columns, found = program.find(left, _limits(state, bounded=not every))
        users = batch.users[left]
        better = found & nearer(state.subspace, columns, state.columns[users])
        state.columns[users[better]] = columns[better]
        state.method = "program" if every else f"{state.method} and program"


def exclude(
    state: State, basis: FloatArray, batch: Batch, places: IntArray, columns: Columns
) -> list[Others]:
    """Searches for other columns in the span of `basis` that have the counts of these columns."""
    first = places[: _side_columns(state) if time.monotonic() < state.deadline else 0]
    found: list[Others] = []
    if len(first):
        program = _program(state, basis, batch, noisy=False)
        most = _OTHERS if state.subspace.exact and len(first) <= _FEW else 1
        found = program.others(first, columns[: len(first)], _limits(state, bounded=True), most)
    return found + [Others(columns[:0], complete=False)] * (len(places) - len(first))


def _program(state: State, basis: FloatArray, batch: Batch, *, noisy: bool) -> Program:
    soft = state.log.count_error > 0 and noisy
    return Program(basis, state.subspace if noisy else None, batch, state.log.empty, soft)


def _side_columns(state: State) -> int:
    """Returns the number of columns that have programs in method "auto"."""
    return _WORK // (state.log.rounds * state.subspace.rank)


def _limits(state: State, *, bounded: bool) -> Limits:
    """Returns the limits of the programs, `bounded` in nodes where no time limit is given."""
    seconds, threads = state.options.column_limit, state.options.threads
    nodes = _NODES if bounded and seconds is None else None
    return Limits(seconds, nodes, state.deadline, as_threads(threads) or (os.cpu_count() or 1))
