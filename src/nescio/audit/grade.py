"""A verdict of three words under thresholds that the operator names.

broken   updates of single users were recovered, beyond doubt and usably
at risk  columns were found, with doubt or with updates that are mostly noise; or the sums give the
         columns away and only the search for them failed
safe     this attack found nobody; of other attacks that says nothing
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import ArgumentError
from .problem import Log
from .quality import Quality
from .result import Result

__all__ = ["Grade", "Thresholds", "Verdict", "grade"]

Grade = Literal["safe", "at risk", "broken"]

SHARP = 0.05
"""Distances of true columns below this, in rounds, are those of sums with hardly any noise."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a run is called what. Shares are of the users who took part at all.

    `broken`: more than this share of users told apart beyond doubt, with an update of a relative
    error of at most `usable`. `at_risk`: more than this share of users with a column, sure or not.
    Raises ArgumentError for shares that are none.
    """

    broken: float = 0.0
    at_risk: float = 0.0
    usable: float = 1.0

    def __post_init__(self) -> None:
        for name in ("broken", "at_risk"):
            share = getattr(self, name)
            if not 0 <= share < 1:
                raise ArgumentError(f"{name}: found {share}, expected a share, 0 or more, below 1")
        if not 0 < self.usable <= 1e9:
            raise ArgumentError(f"usable: found {self.usable}, expected an error of more than 0")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade, its exit code, the users it counts, and why, in sentences."""

    grade: Grade
    users: int
    unique: int
    usable: int
    ambiguous: int
    reasons: tuple[str, ...]

    @property
    def code(self) -> int:
        """0 for safe, 1 for at risk, 2 for broken."""
        return ("safe", "at risk", "broken").index(self.grade)


def grade(log: Log, result: Result, quality: Quality, thresholds: Thresholds) -> Verdict:
    """The verdict on a log, by what was recovered from it."""
    active = ~log.idle
    users = int(active.sum())
    unique = result.unique & active
    usable = int((unique & (quality.errors <= thresholds.usable)).sum())
    found = int((result.found & active).sum())
    counted = (users, int(unique.sum()), usable, found - int(unique.sum()))
    word: Grade = "safe"
    reasons: list[str] = []
    if usable > thresholds.broken * users:
        word = "broken"
        reasons.append(
            f"the updates of {usable} of {users} users were recovered, each from a column that no "
            "other can replace"
        )
    elif found > thresholds.at_risk * users:
        word = "at risk"
        reasons.append(f"columns were found for {found} of {users} users")
    elif found == 0 and _sharp(result, active):
        word = "at risk"
        reasons.append(
            "the sums have hardly any noise, so that the columns are in them; this search did not "
            "find them, and a longer one may"
        )
    else:
        reasons.append("this attack found no more columns than the thresholds allow")
    if not result.labelled:
        reasons.append("there were no counts to name users by: columns are in no order")
    return Verdict(word, *counted, tuple(reasons))


def _sharp(result: Result, active: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> bool:
    expected = [c.expected for c, on in zip(result.certificates, active, strict=True) if on]
    return bool(expected) and float(np.median(expected)) < SHARP
