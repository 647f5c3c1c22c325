"""From sums and counts to columns, updates and certificates: the whole attack, a step at a time."""

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._arrays import as_count, as_threads
from .._timing import Clock
from ..errors import ArgumentError
from ._arrays import IntArray
from ._attack import without_counts
from ._attack.milp import has_solver
from ._attack.search import Columnwise, nearest_space
from ._attack.span import MAX_DRIFT, Subspace, column_space, standardized_space
from ._attack.updates import least_squares
from ._certify.certificates import certify_columns, certify_without_counts
from ._certify.result import Result
from ._log.record import Log

__all__ = ["METHODS", "SPACES", "disaggregate", "solve"]

METHODS = ("auto", "reflect", "program", *without_counts.METHODS)

_SMOOTH = 4
"""Changes common to all that are allowed for where noise is met and nothing was said."""

SPACES = 4
"""Estimates of the span that are compared, at most: parameters evened or not, drift or none."""


def disaggregate(
    aggregates: object,
    windows: object = None,
    counts: object = None,
    users: int = 0,
    *,
    participants: object = None,
    count_error: int = 0,
    method: str = "auto",
    noise: float | None = None,
    time_limit: float | None = None,
    column_limit: float | None = None,
    seed: int = 0,
    threads: int = 0,
    updates: bool = True,
    even: bool | None = None,
    drift: int | None = None,
    certify: bool = True,
) -> Result:
    """Tells users apart from the sums of their updates.

    `aggregates`: float32 or float64 (rounds, dimensions), a sum for each round. `windows`: a list
    of (start, stop) rounds; `counts`: integers (users, windows), how often each took part there,
    -1 where unknown, each at most `count_error` off; both None for an attack without counts.
    `users`: how many there are. `participants`: integers (rounds,), how many took part, or None.

    `method`: "auto", or one of METHODS by name ("lattice": python-flint, at most 160 users; a call
    of LLL, some seconds, is not interrupted). `noise`: the standard deviation of an entry of one
    user's update between rounds; 0 for none, None to find out. `time_limit`: seconds after which no
    further search begins; `column_limit`: seconds for an integer program; without both, the same
    seed gives the same result. `threads`: for integer
    programs, 0 for every processor (products of matrices take what the BLAS was told). `updates`:
    whether to compute them; without them memory does not grow with the dimensions. `even`: whether
    to divide parameters by their standard deviation over the rounds, where there is noise; None for
    what brings columns nearer. `drift`: how many smooth changes, common to all who take part in a
    round, to allow for (0 to MAX_DRIFT), which asks for as many more rounds; None for none without
    noise, and with noise for what brings columns nearer.
    `certify`: whether to prove columns to be the only ones.

    Raises ArgumentError, before any work, for what cannot be true or cannot be enough.
    Thesis chapter 6, Algorithm 4, with other solvers.
    """
    ranges: Any = () if windows is None else windows
    given: tuple[Any, Any, Any] = (aggregates, counts, participants)  # Log checks their types
    log = Log(given[0], users, ranges, given[1], given[2], count_error)
    return solve(
        log,
        method=method,
        noise=noise,
        time_limit=time_limit,
        column_limit=column_limit,
        seed=seed,
        threads=threads,
        updates=updates,
        even=even,
        drift=drift,
        certify=certify,
    )


def solve(
    log: Log,
    *,
    method: str = "auto",
    noise: float | None = None,
    time_limit: float | None = None,
    column_limit: float | None = None,
    seed: int = 0,
    threads: int = 0,
    updates: bool = True,
    even: bool | None = None,
    drift: int | None = None,
    certify: bool = True,
) -> Result:
    """The same for a record that has been checked."""
    _check_options(log, method, noise, (time_limit, column_limit))
    _check_drift(log, drift, noise)
    threads = as_threads(threads) or (os.cpu_count() or 1)
    seed = as_count(seed, "seed", 0, (1 << 63) - 1)
    clock = _Clock(time_limit)
    active = np.flatnonzero(~log.idle)
    with clock.step("space"):
        subspace = _space(log, active, noise, even, drift, seed=seed, deadline=clock.deadline)
    unlabelled = method in without_counts.METHODS or log.counts is None
    columns, name = np.zeros((log.users, log.rounds), np.uint8), method
    if unlabelled:
        with clock.step("without counts"):
            columns, name = without_counts.columns_without_counts(
                log, subspace, active, method=method, seed=seed, deadline=clock.deadline
            )
    exclude = None
    if log.counts is not None:
        search = Columnwise(
            log,
            subspace,
            active,
            seed=seed,
            deadline=clock.deadline,
            column_limit=column_limit,
            threads=threads,
        )
        search.columns[:] = columns
        if not unlabelled:
            name = _look(search, method, clock)
        if has_solver():
            search.assign()
        exclude = search.exclude if method in ("auto", "program") and has_solver() else None
        columns, subspace = search.columns, search.subspace
    with clock.step("certificates"):
        if log.counts is None:
            certificates = certify_without_counts(subspace, columns)
        else:
            certificates = certify_columns(log, subspace, active, columns, exclude, prove=certify)
    with clock.step("updates"):
        found = np.array([c.found for c in certificates])
        solution, conditioning = least_squares(log, subspace, columns, found, wanted=updates)
    return Result(
        np.ascontiguousarray(columns.T),
        solution,
        tuple(certificates),
        conditioning,
        name,
        clock.seconds,
        noise=subspace.noise,
        labelled=log.counts is not None,
        standardized=subspace.standardized,
        drift=subspace.drift,
    )


def _look(search: Columnwise, method: str, clock: "_Clock") -> str:
    """Looks for everybody's column by counts; what found them."""
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


class _Clock(Clock):
    """Seconds by step, and the deadline of the search."""

    def __init__(self, limit: float | None) -> None:
        super().__init__()
        self.deadline = float("inf") if limit is None else time.monotonic() + limit


def _check_options(
    log: Log, method: str, noise: float | None, limits: tuple[float | None, float | None]
) -> None:
    if method not in METHODS:
        raise ArgumentError(f"method: found {method!r}, expected one of {', '.join(METHODS)}")
    if noise is not None and not 0 <= noise < float("inf"):
        raise ArgumentError(f"noise: found {noise}, expected a standard deviation, 0 or more")
    for name, limit in zip(("time_limit", "column_limit"), limits, strict=True):
        if limit is not None and not limit > 0:
            raise ArgumentError(f"{name}: found {limit}, expected seconds, more than 0")
    if log.counts is None and method in ("reflect", "program"):
        raise ArgumentError(
            f"method {method} needs counts; without them, use auto, lattice or skewness"
        )
    without_counts.check(log, method)


def _check_drift(log: Log, drift: int | None, noise: float | None) -> None:
    if drift is None:
        return
    as_count(drift, "drift", 0, MAX_DRIFT)
    active, filled = log.users - int(log.idle.sum()), log.rounds - int(log.empty.sum())
    if drift and filled <= active + drift:
        raise ArgumentError(
            f"drift: found {drift}, with {filled} rounds of {active} active users; allow for at "
            f"most {max(filled - active - 1, 0)} common changes, or log more rounds"
        )
    if drift and noise == 0:
        raise ArgumentError("drift: found it beside noise=0; what drifts is never free of noise")


def _space(
    log: Log,
    active: IntArray,
    noise: float | None,
    even: bool | None,
    drift: int | None,
    *,
    seed: int,
    deadline: float,
) -> Subspace:
    """The span, estimated in the way that columns are nearest to."""
    users, smooth = len(active), drift or 0

    def estimates() -> Iterator[Subspace]:
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

    return nearest_space(log, estimates(), active, seed, deadline)
