"""The attack from sums and counts to columns, certificates and updates."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ._attack.driver import Clock, attack
from ._attack.options import Options, combined
from ._certify.certificates import certify_columns, certify_without_counts
from ._certify.result import Result
from ._certify.updates import least_squares
from ._log.record import Log
from ._log.scale import scaled

__all__ = ["SPACES", "disaggregate", "solve"]

SPACES = 4
"""Maximum estimates of the span compared: with or without standardized parameters and drift."""


def disaggregate(
    aggregates: object,
    windows: object = None,
    counts: object = None,
    users: int = 0,
    *,
    participants: object = None,
    count_error: int = 0,
    options: Options | None = None,
    **named: Any,  # noqa: ANN401 - the fields of Options
) -> Result:
    """Recovers participation columns and updates of single users from sums of updates.

    `aggregates`: float32 or float64 (rounds, dimensions), one sum per round. `windows`: a list of
    (start, stop) rounds. `counts`: integers (users, windows), the number of rounds of a window in
    which each user took part, -1 where unknown, each at most `count_error` off. Both are None for
    an attack without counts. `users`: the number of users. `participants`: integers (rounds,), the
    number of users in each round, or None.

    `options`, or fields of Options as keywords: `method`, `noise`, `time_limit`, `column_limit`,
    `seed`, `threads`, `updates`, `even`, `drift`, `certify`.

    Raises ArgumentError before any work if an argument is invalid or the sums are too few.
    Thesis chapter 6, Algorithm 4, with other solvers.
    """
    ranges: Any = () if windows is None else windows
    given: tuple[Any, Any, Any] = (aggregates, counts, participants)  # Log checks their types
    log = Log(given[0], users, ranges, given[1], given[2], count_error)
    return solve(log, options, **named)


def solve(log: Log, options: Options | None = None, **named: Any) -> Result:  # noqa: ANN401
    """Runs `disaggregate` on a Log, with `options` or fields of Options as keywords."""
    options = combined(options, named)
    options.check(log)
    small, exponent = scaled(log)
    if not exponent:
        return _solve(log, options)
    noise = options.noise and math.ldexp(options.noise, -exponent)
    result = _solve(small, replace(options, noise=noise))
    updates = None if result.updates is None else np.ldexp(result.updates, exponent)
    return replace(result, updates=updates, noise=math.ldexp(result.noise, exponent))


def _solve(log: Log, options: Options) -> Result:
    clock = Clock(options.time_limit)
    found = attack(log, options, clock)
    columns, subspace = found.columns, found.subspace
    with clock.step("certificates"):
        if log.counts is None:
            known = certify_without_counts(subspace, columns)
        else:
            known = certify_columns(
                log,
                subspace,
                found.active,
                columns,
                found.exclude,
                prove=options.certify,
                deadline=clock.end,
            )
    with clock.step("updates"):
        kept = np.array([one.status != "not found" for one in known.certificates])
        updates, conditioning = least_squares(log, subspace, columns, kept, wanted=options.updates)
    return Result(
        np.ascontiguousarray(columns.T),
        updates,
        known.certificates,
        conditioning,
        found.method,
        clock.seconds,
        noise=subspace.noise,
        labelled=log.counts is not None,
        standardized=subspace.standardized,
        drift=subspace.drift,
        determined=known.determined,
        groups=known.groups,
        timed_out=found.timed_out or clock.over,
    )
