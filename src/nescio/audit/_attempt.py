"""One attack on a log or on a remedy: its result, the comparison with chance, and the grade.

If updates drift, several remedies are tried, and the best is reported. The more are tried, the more
likely one succeeds by chance, so the probability of each is multiplied by the number of attempts
(Bonferroni). The attack on the original log comes first in any case and keeps its own probability.
So a harmless log is graded "at risk" with at most twice the probability of the threshold.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from ._attack.options import Options
from ._certify import quality
from ._certify.control import Control, shuffled_control
from ._certify.grade import grade
from ._certify.known import known_columns
from ._certify.quality import Quality
from ._certify.result import Result
from ._certify.verdict import Grade, Verdict
from ._disaggregate import solve
from ._log.remedies import Remedy
from ._thresholds import Thresholds

__all__ = [
    "AS_IT_IS",
    "Attempt",
    "Audit",
    "Outcome",
    "Progress",
    "Tried",
    "Tries",
    "attack_and_grade",
]

_ATTACKS = 3
"""Attacks of an attempt: its own, and with counts two of the control."""

_LEAST = 1e-3
"""Seconds that an attempt has after the time limit."""

AS_IT_IS = "the log as it is"
"""Name of the original log, without a remedy."""


Progress = Callable[[str], None]

Outcome = Grade | Literal["not decided in time"]
"""The grade of an attempt; an attempt that ran out of time is never called safe."""


@dataclass(frozen=True, slots=True)
class Tried:
    """Summary of an attempt in numbers.

    `rounds` were left, in which `users` took part; of their columns `found` fit, `unique` are
    proven, `clear` fit far better than chance allows. `distance`, `chance`: the median distance of
    columns, and of those from shuffled rounds; None without that control. `probability`: of such
    distances by chance, times the number of attempts.
    """

    remedy: str
    rounds: int
    users: int
    found: int
    unique: int
    clear: int
    distance: float
    chance: float | None
    probability: float | None
    grade: Outcome
    seconds: float
    timed_out: bool = False

    def as_json(self) -> dict[str, object]:
        """Returns the fields by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Tries:
    """Summaries of the attempts of an audit.

    `remedies`: the log without a remedy, then each remedy tried; empty if none was to be tried.
    `readings`: the log read as sums, then as averages, if it does not show which it has. `number`:
    what probabilities of remedies are multiplied by. `left_out`: remedies for which there was no
    time.
    """

    remedies: tuple[Tried, ...] = ()
    readings: tuple[Tried, ...] = ()
    number: int = 1
    left_out: int = 0

    def effect(self, best: str) -> str:
        """Returns what remedies were tried, and if `best` of them found more, in words."""
        if not self.remedies:
            return ""
        tried, late = len(self.remedies) - 1, ""
        if not tried:
            return "there was no time to try a remedy"
        if self.left_out:
            late = f"; there was no time for {self.left_out} more"
        if best == self.remedies[0].remedy:
            return f"{tried} remedies were tried, and none found more{late}"
        return f"{tried} remedies were tried; this report is about the best attempt: {best}{late}"


@dataclass(frozen=True, eq=False, slots=True)
class Attempt:
    """All results of an attempt; `timed_out`: the time limit ended one of the searches."""

    remedy: Remedy
    result: Result
    quality: Quality
    control: Control | None
    verdict: Verdict
    seconds: float
    timed_out: bool

    @property
    def complete(self) -> bool:
        """True if every user was found."""
        return max(self.verdict.unique, self.verdict.clear) >= self.verdict.users

    @property
    def rank(self) -> tuple[int, ...]:
        """Sort key, larger for more serious findings."""
        verdict = self.verdict
        return (verdict.code, verdict.usable, verdict.unique, verdict.clear)

    def summary(self) -> Tried:
        """Returns the row of a table."""
        log, control, verdict = self.remedy.log, self.control, self.verdict
        active = ~log.idle
        distances = np.array([c.distance for c in self.result.certificates], np.float64)[active]
        undecided = self.timed_out and verdict.grade == "safe"
        return Tried(
            self.remedy.name,
            log.rounds,
            verdict.users,
            int((self.result.found & active).sum()),
            verdict.unique,
            verdict.clear,
            float(np.median(distances if control is None else control.found)),
            None if control is None else float(np.median(control.chance)),
            None if control is None else control.probability,
            "not decided in time" if undecided else verdict.grade,
            self.seconds,
            self.timed_out,
        )


def attack_and_grade(
    remedy: Remedy,
    options: Options,
    thresholds: Thresholds,
    *,
    attempts: int = 1,
    progress: Progress | None = None,
    deadline: float = float("inf"),
) -> Attempt:
    """Attacks a remedy's log and grades the result.

    The control, which takes as long as two more attacks, runs only if certificates alone do not
    break the log, and only before the `deadline` (monotonic clock) of the whole audit.
    Probabilities are multiplied by `attempts`, the number of attempts in all. `progress` is called
    with a text before each attack.
    """
    progress = progress or (lambda _: None)
    progress(f"attack on {remedy.name}")
    start, log = time.monotonic(), remedy.log
    result = solve(log, options, updates=False)
    known, control = known_columns(log, result, None, thresholds, deadline), None
    worth = quality.measure(log, result, options.seed, known, deadline=deadline)
    sharp = attempts == 1  # few rounds show little noise
    verdict = grade(log, result, worth, thresholds, known=known, sharp=sharp)
    if verdict.grade != "broken" and time.monotonic() < deadline:
        progress(f"control: attacks on shuffled rounds of {remedy.name}")
        control = shuffled_control(log, result, _limited(options, deadline))
        if control is not None:
            control = replace(control, probability=min(1.0, attempts * control.probability))
            before, known = known, known_columns(log, result, control, thresholds, deadline)
            if (known != before).any():
                worth = quality.measure(log, result, options.seed, known, deadline=deadline)
        verdict = grade(log, result, worth, thresholds, control, known=known, sharp=sharp)
    late = result.timed_out or (control is not None and control.timed_out)
    late |= time.monotonic() > deadline
    return Attempt(remedy, result, worth, control, verdict, time.monotonic() - start, late)


def _limited(options: Options, deadline: float) -> Options:
    """Returns options whose time limit leaves both attacks of the control before the deadline."""
    limit = options.time_limit
    if limit is None:
        return options
    left = max(deadline - time.monotonic(), _LEAST)
    return replace(options, time_limit=min(limit, left / (_ATTACKS - 1)))


@dataclass(frozen=True, slots=True)
class Audit:
    """Settings of all attempts of an audit that began at `start` (monotonic clock).

    `limit`: seconds for all of them. `guessed`: the log does not show if its rows are sums or
    averages.
    """

    thresholds: Thresholds
    progress: Progress | None
    start: float
    limit: float | None = None
    guessed: bool = False

    @property
    def deadline(self) -> float:
        """The end of the time limit (monotonic clock)."""
        return float("inf") if self.limit is None else self.start + self.limit

    def attempts(
        self, changed: list[Remedy], options: Options, number: int, part: float
    ) -> Iterator[Attempt]:
        """Attacks changed logs within `part` of the time limit; `number` attempts in all.

        When the limit is over, no further log is attacked except the original one.
        """
        for i, one in enumerate(changed):
            if self.limit is not None:
                left = part * self.limit - (time.monotonic() - self.start)
                if left <= 0 and one.name != AS_IT_IS:
                    return
                attacks = 1 if one.log.counts is None else _ATTACKS
                share = max(left, _LEAST) / (attacks * (len(changed) - i))
                options = replace(options, time_limit=share)
            attempt = attack_and_grade(
                one,
                options,
                self.thresholds,
                attempts=number,
                progress=self.progress,
                deadline=self.deadline,
            )
            yield _with_a_guess(attempt) if self.guessed else attempt


def _with_a_guess(attempt: Attempt) -> Attempt:
    """Returns an attempt none of whose updates is certain: others fit the other kind of rows."""
    quality = replace(attempt.quality, certain=np.zeros_like(attempt.quality.certain))
    verdict = attempt.verdict
    if verdict.grade == "broken":
        reason = (
            f"the updates of {verdict.usable} of {verdict.users} users can be estimated, if the "
            f"rows are what this attempt ({attempt.remedy.name}) took them for"
        )
        verdict = replace(verdict, reasons=(reason, *verdict.reasons[1:]))
    return replace(attempt, quality=quality, verdict=verdict)
