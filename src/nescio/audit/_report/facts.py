"""The findings of an audit, and their facts as JSON; `html.py` presents them as a page.

Neither contains an update or a column, so a report can be shown to people who may not see those.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from ... import __version__
from .._attempt import Attempt, Tried, Tries
from .._certify.control import Control
from .._certify.quality import Quality
from .._certify.result import Result
from .._certify.verdict import Grade, Verdict
from .._log.drift import Drift
from .._log.record import Log
from .._log.rows import Rows
from .._log.scale import large_rounds
from .._thresholds import Thresholds
from .advice import CAUTION, advice

__all__ = ["Findings", "about", "as_json", "explained", "users"]


@dataclass(frozen=True, eq=False, slots=True)
class Findings:
    """Everything in a report.

    `best`: the reported attempt, on the log itself or on a remedy. `tries`: summaries of several
    attempts. `verdict`: that of the best attempt, with the effect of the remedies. `source`: the
    log's name. `seconds`: the time of the whole audit. `rows`: what the rows of the log are.
    `timed_out`: the time limit ended a search.
    """

    log: Log
    best: Attempt
    drift: Drift
    tries: Tries
    thresholds: Thresholds
    verdict: Verdict
    source: str
    seconds: float
    rows: Rows = "sums"
    timed_out: bool = False

    @property
    def result(self) -> Result:
        """The result of the best attempt."""
        return self.best.result

    @property
    def quality(self) -> Quality:
        """The estimated errors of its updates."""
        return self.best.quality

    @property
    def tried(self) -> tuple[Tried, ...]:
        """The log without a remedy, then the remedies tried; empty if none was."""
        return self.tries.remedies

    @property
    def control(self) -> Control | None:
        """Its comparison with chance, or None."""
        return self.best.control

    @property
    def remedies(self) -> str:
        """The remedies tried for drift and their effect, in words."""
        if self.tried:
            return self.tries.effect(self.best.remedy.name)
        if self.drift.small:
            return "no remedy was tried"
        if self.log.counts is None:
            return "no remedy was tried: without counts there is no control"
        return "no remedy was tried: every user was found without one"


_ROWS = {
    "probably sums": (
        "the rows are probably sums, but noise or equal numbers of participants hide if they are "
        "averages with weights, so the log is not called safe unless you say so (--rows sums)"
    ),
    "averages": (
        "the log has averages, not sums; the sums attacked are averages times the number of "
        "participants"
    ),
    "averages without participants": (
        "the log seems to have averages, not sums, and without the participants of each round they "
        "cannot be attacked: log participants, or the sums"
    ),
    "unclear": (
        "the log does not show if it has sums or averages, so it is never called safe: log the "
        "participants of each round, or say what the rows are (--rows sums or --rows averages)"
    ),
}

_NAMED = 3
"""Maximum large rounds that are named; the JSON has all."""

_WEIGHTED = (
    "averages with weights, such as numbers of examples, are attacked in vain as plain ones, so "
    "the log is not called safe: log the sums, or say that weights are equal (--rows averages)"
)


def explained(
    best: Attempt,
    measured: Drift,
    tries: Tries,
    rows: Rows = "sums",
    large: Sequence[tuple[int, float]] = (),
    *,
    named: bool = False,
    timed_out: bool = False,
) -> Verdict:
    """Returns the verdict, with its reasons from the rows of the log, time and the remedies.

    `large`: rounds far larger than the median, and how many times. `named`: the caller says what
    the rows are.
    """
    verdict = _with_large_rounds(best.verdict, large)
    if timed_out and verdict.grade != "broken":
        why = (
            "the time limit ended a search or a proof, so this log is not called safe; an attacker "
            "may search for longer (--time-limit)"
        )
        verdict = replace(verdict, grade="at risk", reasons=(*verdict.reasons, why))
    if rows in _ROWS and not (rows == "probably sums" and verdict.grade == "broken"):
        verdict = replace(verdict, reasons=(*verdict.reasons, _ROWS[rows]))
    if rows != "sums" and not named and verdict.grade == "safe":
        why = _WEIGHTED if rows == "averages" else ""
        reasons = (*verdict.reasons, why) if why else verdict.reasons
        verdict = replace(verdict, grade="at risk", reasons=reasons)
    why = _about_remedies(best, measured, tries)
    return replace(verdict, reasons=(*verdict.reasons, why)) if why else verdict


def _with_large_rounds(verdict: Verdict, large: Sequence[tuple[int, float]]) -> Verdict:
    """Names rounds that may have failed, and does not call a log with such rounds safe."""
    if not large:
        return verdict
    named = ", ".join(f"round {at} ({times:.2g} times)" for at, times in large[:_NAMED])
    more = f", and {len(large) - _NAMED} others" if len(large) > _NAMED else ""
    why = (
        f"some rounds are far larger than the median round, and hide what others reveal: {named}"
        f"{more}, counted from 0; leave out rounds that failed, and count windows without them"
    )
    grade: Grade = "at risk" if verdict.grade == "safe" else verdict.grade
    return replace(verdict, grade=grade, reasons=(*verdict.reasons, why))


def _about_remedies(best: Attempt, measured: Drift, tries: Tries) -> str:
    name, tried = best.remedy.name, tries.remedies
    if tried and name != tried[0].remedy:
        return (
            f"updates drift; this was found with {name}, the best of {len(tried)} attempts, and "
            "probabilities are corrected for their number"
        )
    if len(tried) > 1:
        return f"updates drift, and none of {len(tried) - 1} remedies found more"
    if tried:
        return "updates drift, and there was no time to try a remedy"
    if not measured.small and best.remedy.log.counts is None:
        return "updates drift, and without counts no remedy was tried"
    return ""


def as_json(findings: Findings) -> str:
    """Returns the report as strict JSON: numbers that are not finite are null."""
    log, verdict, result = findings.log, findings.verdict, findings.result
    control, about_log, everybody = findings.control, about(log), users(findings)
    document = {
        "nescio": __version__,
        "source": findings.source,
        "verdict": {**asdict(verdict), "exit_code": verdict.code},
        "thresholds": asdict(findings.thresholds),
        "caution": CAUTION,
        "advice": advice(log, verdict, findings.quality),
        "log": {
            **about_log,
            "rows": findings.rows,
            "large_rounds": [{"round": at, "times_median": x} for at, x in large_rounds(log)],
            "readings": [one.as_json() for one in findings.tries.readings],
        },
        "method": result.method,
        "evened": result.standardized,
        "common_changes": result.drift,
        "labelled": result.labelled,
        "noise": findings.quality.noise,
        "control": None
        if control is None
        else {"probability": control.probability, "clear": int(control.clear.sum())},
        "drift": {
            "words": findings.drift.words,
            "remedies": findings.remedies,
            "change": findings.drift.change,
            "half_life": findings.drift.half_life,
            "tail": findings.drift.tail,
            "energy_by_quarters": findings.drift.trend.tolist(),
            "tried": [one.as_json() for one in findings.tried],
        },
        "seconds": {**result.seconds, "all": findings.seconds},
        "timed_out": findings.timed_out,
        "sums_known_of_groups": [list(group) for group in findings.quality.groups],
        "users": everybody,
    }
    return json.dumps(_plain(document), indent=1, allow_nan=False) + "\n"


def about(log: Log) -> dict[str, object]:
    """Returns the facts about the log by name."""
    lengths = [stop - start for start, stop in log.windows]
    return {
        "rounds": log.rounds,
        "dimensions": log.dimensions,
        "users": log.users,
        "users_who_took_part": int((~log.idle).sum()),
        "windows": len(log.windows),
        "rounds_of_a_window": float(np.median(lengths)) if lengths else None,
        "counts_known": None if log.counts is None else float(np.mean(log.counts >= 0)),
        "count_error": log.count_error,
        "participants": log.participants is not None,
    }


def users(findings: Findings) -> list[dict[str, object]]:
    """Returns the certificate and the estimated error of each user."""
    errors = findings.quality.errors
    certain = findings.quality.certain
    return [
        {
            **asdict(c),
            "relative_error": float(errors[c.user]),
            "update_certain": bool(certain[c.user]),
        }
        for c in findings.result.certificates
    ]


def _plain(value: object) -> object:
    """Converts values for JSON: tuples to lists, numbers that are not finite to None."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
