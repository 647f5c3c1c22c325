"""The whole audit of a log: attack, control, remedies for drift, verdict."""

import time
from dataclasses import replace
from typing import Any

from ._attack.options import Options, combined
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
    options, thresholds = combined(options, named), thresholds or Thresholds()
    best = attack_and_grade(Remedy(AS_IT_IS, log), options, thresholds)
    measured = drift.measure(log, options.seed)
    tried: list[Tried] = []
    if not (measured.small or best.complete or log.counts is None):
        best, tried = _with_remedies(best, options, thresholds)
    return Findings(
        log,
        best,
        measured,
        tuple(tried),
        thresholds,
        _explained(best, measured, tried),
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


def _explained(best: Attempt, measured: Drift, tried: list[Tried]) -> Verdict:
    """Returns the verdict, with the effect of the remedies among its reasons."""
    name = best.remedy.name
    if len(tried) > 1 and name != AS_IT_IS:
        why = (
            f"updates drift; this was found with {name}, the best of {len(tried)} attempts, and "
            "probabilities are corrected for their number"
        )
    elif len(tried) > 1:
        why = f"updates drift, and none of {len(tried) - 1} remedies found more"
    elif not measured.small and best.remedy.log.counts is None:
        why = "updates drift, and without counts no remedy was tried"
    else:
        return best.verdict
    return replace(best.verdict, reasons=(*best.verdict.reasons, why))
