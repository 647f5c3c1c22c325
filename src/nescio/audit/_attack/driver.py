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
from .options import METHODS_WITHOUT_COUNTS, Options
from .search import Columnwise, Exclude
from .span import Subspace
from .without_counts import columns_without_counts

__all__ = ["Attacked", "Clock", "attack"]

_TRIED = 48
"""Users on whom estimates of the span are compared."""

_CLEARLY = 0.95
"""Another estimate must reduce the distance to this fraction."""

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
        return Attacked(columns, subspace, active, method, None)
    search = Columnwise(log, subspace, active, options, clock.deadline)
    search.columns[:] = columns
    if not without_counts:
        method = search.run(options.method, clock.step)
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

    def distance(space: Subspace) -> tuple[float, bool]:
        search = Columnwise(log, space, some, Options(seed=seed, threads=1), deadline)
        search.reflect(again=0)
        points = search.columns[some].astype(np.float64)
        off = float(np.median(space.distances(points)) / np.sqrt(max(space.free, 1)))
        return off, space.calibrated(points).colored

    nearest, colored = distance(chosen)
    nearest *= _CLEARLY
    for space in spaces if colored else ():
        off, _ = distance(space)
        if off < nearest:
            chosen, nearest = space, off
    return chosen
