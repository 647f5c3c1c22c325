"""The whole audit of a log: attack, control, remedies for drift, verdict."""

import math
import time
from dataclasses import replace
from typing import Any

from ._attack.options import Options, combined
from ._attempt import AS_IT_IS, Audit, Progress, Tries
from ._log import drift, remedies
from ._log.record import Log
from ._log.remedies import Remedy
from ._log.rows import readings_of
from ._log.scale import large_rounds, scaled
from ._report.facts import Findings, explained
from ._thresholds import Thresholds

__all__ = ["audit_log"]

_READINGS = (AS_IT_IS, "averages times participants")
"""Names of the logs attacked if the rows are unclear; otherwise there is one."""


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
    The time limit is that of the whole audit: each attack of the first attempt ends after a
    sixth of it, and those of the remedies share what is left. When it is over, nothing further
    starts, and what is missing is said in the report. `source` names the log in the report.
    `progress` is called with a text before each attack. Raises ArgumentError if an option is
    invalid.
    """
    start = time.monotonic()
    options = combined(options, named)
    options.check(log)
    small, exponent = scaled(log)
    options = replace(options, noise=options.noise and math.ldexp(options.noise, -exponent))
    kind, readings = readings_of(small, rows)
    limit, guessed = options.time_limit, kind == "unclear"
    audit = Audit(thresholds or Thresholds(), progress, start, limit, guessed)
    first = [Remedy(name, one) for name, one in zip(_READINGS, readings, strict=False)]
    read = [*audit.attempts(first, options, len(first), part=1.0 if log.counts is None else 0.5)]
    reading = max(read, key=lambda each: each.rank)
    measured = drift.measure(reading.remedy.log, options.seed, audit.deadline)
    possible: list[Remedy] = []
    if not measured.small and not reading.complete and log.counts is not None:
        possible = remedies.remedies(reading.remedy.log)
    number = len(first) + len(possible)
    changed = [*audit.attempts(possible, options, number, part=1.0)]
    done = [reading, *changed]
    best = max(done, key=lambda each: each.rank)
    tried = Tries(
        tuple(one.summary() for one in done) if possible else (),
        tuple(one.summary() for one in read) if len(first) > 1 else (),
        number,
        len(possible) - len(changed),
    )
    late = any(one.timed_out for one in (*read, *changed)) or not measured.complete
    late |= len(read) + len(changed) < number
    large, named_rows = large_rounds(small), rows != "auto"
    verdict = explained(best, measured, tried, kind, large, named=named_rows, timed_out=late)
    spent = time.monotonic() - start
    return Findings(
        log, best, measured, tried, audit.thresholds, verdict, source, spent, kind, late
    )
