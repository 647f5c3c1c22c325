"""The attack on a log: estimate the span, search for columns, assign them to users."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._arrays import Columns, IntArray
from .._log.record import Log
from .assignment import assign
from .estimate import column_space
from .milp import has_solver
from .options import METHODS_WITHOUT_COUNTS, Options
from .programs import Exclude, exclude
from .reflect import trial
from .span import Subspace
from .standardize import standardized_space
from .state import State
from .with_counts import find_columns
from .without_counts import columns_without_counts

__all__ = ["Attacked", "Clock", "attack"]

_TRIED = 48
"""Users on whom estimates of the span are compared."""

_CLEARLY = 0.95
"""Another estimate must reduce the distance to this fraction."""

_SEARCH = 0.75
"""Share of the time limit for the search; the rest is for proofs."""

_SMOOTH = 4
"""Common changes allowed for if there is noise and `drift` is not given."""


@dataclass(frozen=True, eq=False, slots=True)
class Attacked:
    """The best columns found, uint8 (users, rounds), in `subspace`.

    `active`: users who took part. `method`: the methods that found the columns. `exclude`: decides
    by integer programs if other columns exist; None if that is not wanted. `timed_out`: the search
    ended at its deadline.
    """

    columns: Columns
    subspace: Subspace
    active: IntArray
    method: str
    exclude: Exclude | None
    timed_out: bool = False


class Clock:
    """Seconds by step, the deadline of the search, and the end of the time limit."""

    def __init__(self, limit: float | None) -> None:
        now, limit = time.monotonic(), float("inf") if limit is None else limit
        self.deadline, self.end = now + _SEARCH * limit, now + limit
        self.seconds: dict[str, float] = {}

    @property
    def over(self) -> bool:
        """True after the end of the time limit."""
        return time.monotonic() > self.end

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Adds the time spent in the block to step `name`."""
        start = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start


def attack(log: Log, options: Options, clock: Clock) -> Attacked:
    """Searches for the participation columns of a log."""
    active = np.flatnonzero(~log.idle)
    with clock.step("space"):
        subspace = _nearest_space(
            log, _estimates(log, len(active), options), active, options.seed, clock.deadline
        )
    columns, method = np.zeros((log.users, log.rounds), np.uint8), options.method
    without_counts = options.method in METHODS_WITHOUT_COUNTS or log.counts is None
    if without_counts:
        with clock.step("without counts"):
            columns, method = columns_without_counts(
                log, subspace, active, options=options, deadline=clock.deadline
            )
    if log.counts is None:
        return Attacked(columns, subspace, active, method, None, time.monotonic() > clock.deadline)
    state = State.of(log, subspace, active, options, clock.deadline)
    state.columns[:] = columns
    if not without_counts:
        method = find_columns(state, options.method, clock.step)
    if has_solver():
        assign(state)
    late = time.monotonic() > clock.deadline
    state.deadline = clock.end  # of the programs that prove
    exact = options.method in ("auto", "program") and has_solver()
    others = partial(exclude, state) if exact else None
    return Attacked(state.columns, state.subspace, active, method, others, late)


def _estimates(log: Log, users: int, options: Options) -> Iterator[Subspace]:
    """Yields estimates of the span: with and without standardized parameters and drift."""
    noise, even, drift, seed = options.noise, options.even, options.drift, options.seed
    smooth = drift or 0
    plain = column_space(log, users, noise, seed, drift=smooth)
    if plain.exact or not even:
        yield plain
    if plain.exact or log.counts is None:
        return
    if even is not False:
        yield standardized_space(log, users, plain, smooth)
    if drift is None and int((~log.empty).sum()) > users + 2 * _SMOOTH:
        plain = column_space(log, users, noise, seed, drift=_SMOOTH)
        if not even:
            yield plain
        if even is not False:
            yield standardized_space(log, users, plain, _SMOOTH)


def _nearest_space(
    log: Log, spaces: Iterator[Subspace], active: IntArray, seed: int, deadline: float
) -> Subspace:
    """Returns the estimate of the span that is nearest to the columns of some users.

    Distances are per dimension outside the span. The first estimate is kept unless another is
    clearly nearer. Others are made only if the first one has noise that is not white.
    """
    chosen = next(spaces)
    if chosen.exact or log.counts is None:
        return chosen
    some = np.sort(np.random.default_rng(seed).permutation(active)[:_TRIED])
    options = Options(seed=seed, threads=1)
    nearest, colored = trial(State.of(log, chosen, some, options, deadline))
    nearest *= _CLEARLY
    while colored and time.monotonic() < deadline:
        space = next(spaces, None)
        if space is None:
            break
        off, _ = trial(State.of(log, space, some, options, deadline))
        if off < nearest:
            chosen, nearest = space, off
    return chosen
