"""The whole audit of a log: the attack, what it is worth, the control, remedies, the verdict."""

import time
from dataclasses import replace
from typing import Any

from ._attempt import AS_IT_IS, Attempt, Tried, attack_and_grade
from ._certify.grade import Thresholds, Verdict
from ._log import drift, remedies
from ._log.drift import Drift
from ._log.record import Log
from ._log.remedies import Remedy
from ._report.facts import Findings

__all__ = ["audit_log"]


def audit_log(
    log: Log,
    *,
    thresholds: Thresholds | None = None,
    source: str = "log",
    method: str = "auto",
    noise: float | None = None,
    time_limit: float | None = None,
    column_limit: float | None = None,
    seed: int = 0,
    threads: int = 0,
) -> Findings:
    """Attacks a log and grades it; the options are those of `solve`.

    Where updates change, and users are left, the attack is made again with each remedy, all of
    them within the time of the first; the verdict is that of the best attempt. Raises ArgumentError
    for options that cannot be.
    """
    begun = time.monotonic()
    thresholds = thresholds or Thresholds()
    options: dict[str, Any] = {
        "method": method,
        "noise": noise,
        "time_limit": time_limit,
        "column_limit": column_limit,
        "seed": seed,
        "threads": threads,
    }
    best = attack_and_grade(Remedy(AS_IT_IS, log), options, thresholds)
    changes = drift.measure(log, seed)
    tried: list[Tried] = []
    if not (changes.small or best.complete or log.counts is None):
        best, tried = _with_remedies(best, options, thresholds)
    return Findings(
        log,
        best,
        changes,
        tuple(tried),
        thresholds,
        _worded(best, changes, tried),
        source,
        time.monotonic() - begun,
    )


def _with_remedies(
    best: Attempt, options: dict[str, Any], thresholds: Thresholds
) -> tuple[Attempt, list[Tried]]:
    """The best of all attempts, the first among them, and all in numbers."""
    tried, possible = [best.summary()], remedies.remedies(best.remedy.log)
    limit = options["time_limit"]
    shared = {**options, "time_limit": limit and limit / max(len(possible), 1)}
    for remedy in possible:
        one = attack_and_grade(remedy, shared, thresholds, attempts=1 + len(possible))
        tried.append(one.summary())
        best = max(best, one, key=lambda each: each.rank)
    return best, tried


def _worded(best: Attempt, changes: Drift, tried: list[Tried]) -> Verdict:
    """The verdict, with what remedies have to do with it among the reasons."""
    name = best.remedy.name
    if len(tried) > 1 and name != AS_IT_IS:
        why = (
            f"the attack found this with {name}, the best of {len(tried)} attempts, because "
            "updates change; that there were several is counted against it"
        )
    elif len(tried) > 1:
        why = f"updates change, and none of {len(tried) - 1} remedies found more"
    elif not changes.small and best.remedy.log.counts is None:
        why = "updates change, and without counts no remedy was tried"
    else:
        return best.verdict
    return replace(best.verdict, reasons=(*best.verdict.reasons, why))
