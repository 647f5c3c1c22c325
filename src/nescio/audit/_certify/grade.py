"""A verdict of three words under thresholds that the operator names.

broken   updates of single users were recovered, usably: from columns that are proven to be the only
         ones, or that fit far better than chance allows
at risk  columns were found, but updates are mostly noise; or all columns together fit better than
         chance allows; or the sums give them away, and only the search for them failed
safe     this attack found no more than chance; of other attacks that says nothing

An "ambiguous" certificate counts for nothing by itself: where noise is large, every column with the
right counts is as near as a true one would be. Chance is measured, by the same attack on shuffled
rounds (`Control`).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...errors import ArgumentError
from .._log.record import Log
from .control import Control
from .quality import Quality
from .result import Result

__all__ = ["Grade", "Thresholds", "Verdict", "grade"]

Grade = Literal["safe", "at risk", "broken"]

SHARP = 0.05
"""Distances of true columns below this, in rounds, are those of sums with hardly any noise."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a run is called what.

    `broken`: more than this share of the users who took part, with an update of a relative error of
    at most `usable`. `chance`: how improbable the columns together have to be to be called at risk.
    Raises ArgumentError for a share, an error or a probability that is none.
    """

    broken: float = 0.0
    usable: float = 1.0
    chance: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 <= self.broken < 1:
            raise ArgumentError(
                f"broken: found {self.broken}, expected a share, 0 or more, below 1"
            )
        if not 0 < self.usable <= 1e9:
            raise ArgumentError(f"usable: found {self.usable}, expected an error of more than 0")
        if not 0 < self.chance < 1:
            raise ArgumentError(f"chance: found {self.chance}, expected a probability")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade, its exit code, the users it counts, and why, in sentences.

    `users` took part; of those `unique` and `ambiguous` have such certificates, the columns of
    `clear` fit far better than chance allows; `usable` are unique or clear with a usable update.
    """

    grade: Grade
    users: int
    unique: int
    usable: int
    ambiguous: int
    clear: int
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
    *,
    sharp: bool = True,
) -> Verdict:
    """The verdict on a log, by what was recovered from it.

    `sharp`: whether sums with hardly any noise are a risk, even if nothing was found.
    """
    active = ~log.idle
    users = int(active.sum())
    unique = result.unique & active
    clear = np.zeros(log.users, np.bool_)
    if control is not None and control.probability <= thresholds.chance:
        clear[active] = control.clear
    usable = int(((unique | clear) & (quality.errors <= thresholds.usable)).sum())
    ambiguous = int((result.found & active).sum() - unique.sum())
    counted = (users, int(unique.sum()), usable, ambiguous, int(clear.sum()))
    word: Grade = "safe"
    reason = "this attack found no more than chance, or than the thresholds allow"
    if usable > thresholds.broken * users:
        word = "broken"
        reason = f"the updates of {usable} of {users} users were recovered, {_how_sure(counted)}"
    elif unique.any():
        word = "at risk"
        reason = f"{counted[1]} of {users} users were told apart, and few of their updates usable"
    elif control is not None and control.probability <= thresholds.chance:
        word = "at risk"
        reason = "columns fit better than on shuffled rounds: the sums tell of who took part"
    elif sharp and _sharp(result, active):
        word = "at risk"
        reason = (
            "the sums have hardly any noise, so that the columns are in them; this search did not "
            "find them, and a longer one may"
        )
    reasons = [reason]
    if not result.labelled:
        reasons.append("there were no counts to name users by: columns are in no order")
    return Verdict(word, *counted, tuple(reasons))


def _how_sure(counted: tuple[int, int, int, int, int]) -> str:
    _, unique, usable, _, _ = counted
    if unique >= usable:
        return "each from a column that is proven to be the only one"
    return (
        f"from columns that fit far better than any on shuffled rounds ({unique} of them are also "
        "proven to be the only ones)"
    )


def _sharp(result: Result, active: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> bool:
    expected = [c.expected for c, on in zip(result.certificates, active, strict=True) if on]
    return bool(expected) and float(np.median(expected)) < SHARP
