"""The whole audit of a log: attack, control, remedies for drift, verdict."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ._attack.options import Options, combined
from ._attempt import AS_IT_IS, Attempt, Progress, Tried, attack_and_grade
from ._log import drift, remedies
from ._log.record import Log
from ._log.remedies import Remedy
from ._log.rows import readings_of
from ._log.scale import scaled
from ._report.facts import Findings, explained
from ._thresholds import Thresholds

__all__ = ["audit_log"]

_READINGS = (AS_IT_IS, "averages times participants")
"""Names of the logs attacked if the rows are unclear; otherwise there is one."""

_ATTACKS = 3
"""Attacks of an attempt: its own, and two of the control."""

_LEAST = 1e-3
"""Seconds that an attempt has after the time limit."""


def audit_log(
    log: Log,
    options: Options | None = None,
    *,
    thresholds: Thresholds | None = None,
    source: str = "log",
    rows: str = "auto",
    progress: Progress | None = None,
    **named: Any,  # noqa: ANN401 - the fields of Options
) -> Findings:
    """Attacks a log and grades it, with `options` or fields of Options as keywords.

    `rows`: "sums", "averages" (sums divided by the number of participants) or "auto" to tell
    from the log. Averages are multiplied by the participants first. If updates drift and users
    are left, the attack is repeated with each remedy. The verdict is that of the best attempt.
    The time limit is that of all searches together: each of the first attempt ends after a
    sixth of it, and those of the remedies share what is left. `source` names the log in the
    report. `progress` is called with a text before each attack. Raises ArgumentError if an
    option is invalid.
    """
    start = time.monotonic()
    options = combined(options, named)
    options.check(log)
    audit = _Audit(thresholds or Thresholds(), progress, start)
    small, exponent = scaled(log)
    options = replace(options, noise=options.noise and math.ldexp(options.noise, -exponent))
    kind, readings = readings_of(small, rows)
    first = [Remedy(name, one) for name, one in zip(_READINGS, readings, strict=False)]
    attempts = [*audit.attempts(first, options, len(first), part=0.5)]
    best = max(attempts, key=lambda each: each.rank)
    measured = drift.measure(best.remedy.log, options.seed)
    tried: list[Tried] = []
    if not measured.small and not best.complete and log.counts is not None:
        possible = remedies.remedies(best.remedy.log)
        attempts += audit.attempts(possible, options, len(first) + len(possible), part=1.0)
        best = max(attempts, key=lambda each: each.rank)
        tried = [one.summary() for one in attempts]
    late = any(one.timed_out for one in attempts)
    return Findings(
        log,
        best,
        measured,
        tuple(tried),
        audit.thresholds,
        explained(best, measured, tried, kind, timed_out=late),
        source,
        time.monotonic() - start,
        kind,
        late,
    )


@dataclass(frozen=True, slots=True)
class _Audit:
    """Settings of all attempts of an audit that began at `start` (monotonic clock)."""

    thresholds: Thresholds
    progress: Progress | None
    start: float

    def attempts(
        self, changed: list[Remedy], options: Options, number: int, part: float
    ) -> Iterator[Attempt]:
        """Attacks changed logs within `part` of the time limit; `number` attempts in all."""
        limit = options.time_limit
        for i, one in enumerate(changed):
            if limit is not None:
                left = part * limit - (time.monotonic() - self.start)
                share = max(left, _LEAST) / (_ATTACKS * (len(changed) - i))
                options = replace(options, time_limit=share)
            yield attack_and_grade(
                one, options, self.thresholds, attempts=number, progress=self.progress
            )
