"""The attack on a log: estimate the span, search for columns, assign them to users."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from .._arrays import Columns, IntArray
from .._log.record import Log
from . import estimate
from .milp import has_solver
from .options import Options
from .search import Columnwise, Exclude, nearest_space
from .span import Subspace
from .without_counts import columns_without_counts

__all__ = ["Attacked", "Clock", "attack"]

_SMOOTH = 4
"""Common changes allowed for if there is noise and `drift` is not given."""


@dataclass(frozen=True, eq=False, slots=True)
class Attacked:
    """The best columns found, uint8 (users, rounds), in `subspace`.

    `active`: users who took part. `method`: the methods that found the columns. `exclude`: decides
    by integer programs if other columns exist; None if that is not wanted.
    """

    columns: Columns
    subspace: Subspace
    active: IntArray
    method: str
    exclude: Exclude | None


class Clock:
    """Seconds by step, and the deadline of the search."""

    def __init__(self, limit: float | None) -> None:
        self.deadline = float("inf") if limit is None else time.monotonic() + limit
        self.seconds: dict[str, float] = {}

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
        subspace = nearest_space(
            log, _estimates(log, len(active), options), active, options.seed, clock.deadline
        )
    columns, method = np.zeros((log.users, log.rounds), np.uint8), options.method
    without_counts = options.without_counts or log.counts is None
    if without_counts:
        with clock.step("without counts"):
            columns, method = columns_without_counts(
                log, subspace, active, options=options, deadline=clock.deadline
            )
    if log.counts is None:
        return Attacked(columns, subspace, active, method, None)
    search = Columnwise(log, subspace, active, options, clock.deadline)
    search.columns[:] = columns
    if not without_counts:
        method = _search(search, options.method, clock)
    if has_solver():
        search.assign()
    exact = options.method in ("auto", "program") and has_solver()
    return Attacked(
        search.columns, search.subspace, active, method, search.exclude if exact else None
    )


def _estimates(log: Log, users: int, options: Options) -> Iterator[Subspace]:
    """Yields estimates of the span: with and without standardized parameters and drift."""
    noise, even, drift, seed = options.noise, options.even, options.drift, options.seed
    smooth = drift or 0
    plain = estimate.column_space(log, users, noise, seed, drift=smooth)
    if plain.exact or not even:
        yield plain
    if plain.exact or log.counts is None:
        return
    if even is not False:
        yield estimate.standardized_space(log, users, plain, smooth)
    if drift is None and int((~log.empty).sum()) > users + 2 * _SMOOTH:
        plain = estimate.column_space(log, users, noise, seed, drift=_SMOOTH)
        if not even:
            yield plain
        if even is not False:
            yield estimate.standardized_space(log, users, plain, _SMOOTH)


def _search(search: Columnwise, method: str, clock: Clock) -> str:
    """Searches for the columns of all users by counts; returns the methods that found them."""
    if method != "program":
        with clock.step("reflect"):
            search.reflect()
    if method == "auto":
        with clock.step("lattice"):
            search.lattice()
    if method == "program" or (method == "auto" and has_solver()):
        with clock.step("program"):
            search.program(every=method == "program")
    return search.method
