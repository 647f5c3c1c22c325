"""A verdict of three words under thresholds that the operator names.

broken   updates of single users were recovered, beyond doubt and usably
at risk  columns were found beyond doubt, but updates are mostly noise; or columns are nearer than
         chance allows; or the sums give them away, and only the search for them failed
safe     this attack found no more than chance; of other attacks that says nothing

A column that is "ambiguous" counts only if it is nearer than chance: where noise is large, every
column with the right counts is as near as a true one would be.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import ArgumentError
from .control import Control
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
    error of at most `usable`. `at_risk`: more than this share of users with a column beyond doubt, or
    nearer than any that chance gave; that counts only if it is as improbable as `chance`. Raises
    ArgumentError for shares that are none.
    """

    broken: float = 0.0
    at_risk: float = 0.0
    usable: float = 1.0
    chance: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("broken", "at_risk"):
            share = getattr(self, name)
            if not 0 <= share < 1:
                raise ArgumentError(f"{name}: found {share}, expected a share, 0 or more, below 1")
        if not 0 < self.usable <= 1e9:
            raise ArgumentError(f"usable: found {self.usable}, expected an error of more than 0")
        if not 0 < self.chance < 1:
            raise ArgumentError(f"chance: found {self.chance}, expected a probability")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade, its exit code, the users it counts, and why, in sentences."""

    grade: Grade
    users: int
    unique: int
    usable: int
    ambiguous: int
    nearer: int
    reasons: tuple[str, ...]

    @property
    def code(self) -> int:
        """0 for safe, 1 for at risk, 2 for broken."""
        return ("safe", "at risk", "broken").index(self.grade)


def grade(
    log: Log,
    result: Result,
    quality: Quality,
    thresholds: Thresholds,
    control: Control | None = None,
) -> Verdict:
    """The verdict on a log, by what was recovered from it."""
    active = ~log.idle
    users = int(active.sum())
    unique = result.unique & active
    usable = int((unique & (quality.errors <= thresholds.usable)).sum())
    ambiguous = int((result.found & active).sum() - unique.sum())
    nearer = _beyond_chance(control, thresholds)
    word: Grade = "safe"
    if usable > thresholds.broken * users:
        word = "broken"
        reason = (
            f"the updates of {usable} of {users} users were recovered, each from a column that no "
            "other can replace"
        )
    elif unique.sum() > thresholds.at_risk * users:
        word = "at risk"
        reason = f"{unique.sum()} of {users} users were told apart; their updates are mostly noise"
    elif nearer > thresholds.at_risk * users:
        word = "at risk"
        reason = (
            f"the columns of {nearer} of {users} users fit better than any did when the rounds "
            "were shuffled: the sums tell who took part, though not beyond doubt"
        )
    elif unique.sum() == 0 and _sharp(result, active):
        word = "at risk"
        reason = (
            "the sums have hardly any noise, so that the columns are in them; this search did not "
            "find them, and a longer one may"
        )
    else:
        reason = "this attack found no more than the thresholds allow"
    reasons = [reason]
    if not result.labelled:
        reasons.append("there were no counts to name users by: columns are in no order")
    return Verdict(word, users, int(unique.sum()), usable, ambiguous, nearer, tuple(reasons))


def _beyond_chance(control: Control | None, thresholds: Thresholds) -> int:
    if control is None or control.probability > thresholds.chance:
        return 0
    return control.nearer


def _sharp(result: Result, active: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> bool:
    expected = [c.expected for c, on in zip(result.certificates, active, strict=True) if on]
    return bool(expected) and float(np.median(expected)) < SHARP
