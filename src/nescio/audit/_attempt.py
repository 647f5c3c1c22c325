"""One attack on a record in some remedy's way: what it found, against chance, and its grade.

Where updates change, several remedies are tried, and the best is told. The more are tried, the
sooner one of them does well by chance: the probability of each is multiplied by the number of
attempts (Bonferroni). The attack on the record as it is comes first, whatever follows, and keeps
its own. So a harmless log is called at risk with twice the probability of the threshold at most.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ._certify import quality
from ._certify.control import Control, shuffled_control
from ._certify.grade import Grade, Thresholds, Verdict, grade
from ._certify.quality import Quality
from ._certify.result import Result
from ._disaggregate import solve
from ._log.remedies import Remedy

__all__ = ["AS_IT_IS", "Attempt", "Tried", "attack_and_grade"]

AS_IT_IS = "the log as it is"
"""The name of no remedy."""


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt in numbers.

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
        """By name."""
        return asdict(self)


@dataclass(frozen=True, eq=False, slots=True)
class Attempt:
    """All of it."""

    remedy: Remedy
    result: Result
    quality: Quality
    control: Control | None
    verdict: Verdict
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether there is nobody left to find."""
        return max(self.verdict.unique, self.verdict.clear) >= self.verdict.users

    @property
    def rank(self) -> tuple[int, ...]:
        """Larger for what an operator should rather know of."""
        verdict = self.verdict
        return (verdict.code, verdict.usable, verdict.unique, verdict.clear)

    def summary(self) -> Tried:
        """The line of a table."""
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
    remedy: Remedy,
    options: Mapping[str, Any],
    thresholds: Thresholds,
    *,
    attempts: int = 1,
) -> Attempt:
    """Attacks a remedy's record with the options of `solve`.

    The control, which takes as long as two more attacks, is made where certificates alone do not
    say that the log is broken. `attempts`: how many there are, which makes chance as much likelier.
    """
    begun = time.monotonic()
    log, seed = remedy.log, options["seed"]
    result = solve(log, updates=False, **options)
    worth = quality.measure(log, result, seed)
    sharp = attempts == 1  # of few rounds there is little to see noise by
    verdict, control = grade(log, result, worth, thresholds, sharp=sharp), None
    if verdict.grade != "broken":
        control = shuffled_control(log, result, seed=seed, time_limit=options["time_limit"])
        if control is not None:
            control = replace(control, probability=min(1.0, attempts * control.probability))
        verdict = grade(log, result, worth, thresholds, control, sharp=sharp)
    return Attempt(remedy, result, worth, control, verdict, time.monotonic() - begun)
