"""The whole audit of a log: attack, control, remedies for drift, verdict."""

import time
from dataclasses import replace
from typing import Any

from ._attack.options import Options, combined
from ._attempt import AS_IT_IS, Attempt, Tried, attack_and_grade
from ._log import drift, remedies
from ._log.record import Log
from ._log.remedies import Remedy
from ._report.facts import Findings, explained
from ._thresholds import Thresholds

__all__ = ["audit_log"]


def audit_log(
    log: Log,
    options: Options | None = None,
    *,
    thresholds: Thresholds | None = None,
    source: str = "log",
    **named: Any,  # noqa: ANN401 - the fields of Options
) -> Findings:
    """Attacks a log and grades it, with `options` or fields of Options as keywords.

    If updates drift and users are left, the attack is repeated with each remedy, all of them within
    the time limit of the first. The verdict is that of the best attempt. `source` names the log in
    the report. Raises ArgumentError if an option is invalid.
    """
    start = time.monotonic()
    thresholds = thresholds or Thresholds()
    options = combined(options, named)
    options.check(log)
    measured = drift.measure(log, options.seed)
    drifts = not measured.small
    best = attack_and_grade(Remedy(AS_IT_IS, log), options, thresholds)
    tried: list[Tried] = []
    if drifts and not best.complete and log.counts is not None:
        best, tried = _with_remedies(best, options, thresholds)
    return Findings(
        log,
        best,
        measured,
        tuple(tried),
        thresholds,
        explained(best, measured, tried),
        source,
        time.monotonic() - start,
    )


def _with_remedies(
    best: Attempt, options: Options, thresholds: Thresholds
) -> tuple[Attempt, list[Tried]]:
    """Returns the best of all attempts, including the first, and a summary of each."""
    tried, possible = [best.summary()], remedies.remedies(best.remedy.log)
    limit = options.time_limit
    shared = replace(options, time_limit=limit and limit / max(len(possible), 1))
    for remedy in possible:
        one = attack_and_grade(remedy, shared, thresholds, attempts=1 + len(possible))
        tried.append(one.summary())
        best = max(best, one, key=lambda each: each.rank)
    return best, tried
