"""One attack on a log or on a remedy: its result, the comparison with chance, and the grade.

If updates drift, several remedies are tried, and the best is reported. The more are tried, the more
likely one succeeds by chance, so the probability of each is multiplied by the number of attempts
(Bonferroni). The attack on the original log comes first in any case and keeps its own probability.
So a harmless log is graded "at risk" with at most twice the probability of the threshold.
"""

import time
from dataclasses import asdict, dataclass, replace

import numpy as np

from ._attack.options import Options
from ._certify import quality
from ._certify.control import Control, shuffled_control
from ._certify.grade import grade
from ._certify.quality import Quality
from ._certify.result import Result
from ._certify.verdict import Grade, Verdict
from ._disaggregate import solve
from ._log.remedies import Remedy
from ._thresholds import Thresholds

__all__ = ["AS_IT_IS", "Attempt", "Tried", "attack_and_grade"]

AS_IT_IS = "the log as it is"
"""Name of the original log, without a remedy."""


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
    grade: Grade
    seconds: float

    def as_json(self) -> dict[str, object]:
        """Returns the fields by name."""
        return asdict(self)


@dataclass(frozen=True, eq=False, slots=True)
class Attempt:
    """All results of an attempt."""

    remedy: Remedy
    result: Result
    quality: Quality
    control: Control | None
    verdict: Verdict
    seconds: float

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
            verdict.grade,
            self.seconds,
        )


def attack_and_grade(
    remedy: Remedy, options: Options, thresholds: Thresholds, *, attempts: int = 1
) -> Attempt:
    """Attacks a remedy's log and grades the result.

    The control, which takes as long as two more attacks, runs only if certificates alone do not
    break the log. Probabilities are multiplied by `attempts`, the number of attempts in all.
    """
    start, log = time.monotonic(), remedy.log
    result = solve(log, options, updates=False)
    worth = quality.measure(log, result, options.seed)
    sharp = attempts == 1  # few rounds show little noise
    verdict, control = grade(log, result, worth, thresholds, sharp=sharp), None
    if verdict.grade != "broken":
        control = shuffled_control(log, result, options)
        if control is not None:
            control = replace(control, probability=min(1.0, attempts * control.probability))
        verdict = grade(log, result, worth, thresholds, control, sharp=sharp)
    return Attempt(remedy, result, worth, control, verdict, time.monotonic() - start)
