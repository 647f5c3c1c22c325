"""The grade of a log: one of three, under thresholds that the operator sets.

broken   usable updates of single users were recovered, from columns that are proven unique or that
         fit far better than chance allows
at risk  columns were found, but updates are mostly noise; or all columns together fit better than
         chance allows; or the sums contain the columns, and only the search failed
safe     this attack found no more than chance; that does not cover other attacks

An "ambiguous" certificate does not count by itself: where noise is large, every column with the
right counts is as near as a true one. Chance is measured by the same attack on shuffled rounds
(`Control`).
"""

import numpy as np

from .._log.record import Log
from .._thresholds import Thresholds
from .control import Control
from .quality import Quality
from .result import Result
from .verdict import Grade, Verdict

__all__ = ["grade"]

SHARP = 0.05
"""Median expected distance of true columns, in rounds, below which sums have hardly any noise."""


def grade(
    log: Log,
    result: Result,
    quality: Quality,
    thresholds: Thresholds,
    control: Control | None = None,
    *,
    sharp: bool = True,
) -> Verdict:
    """Grades a log by the result of the attack on it.

    `sharp`: count sums with hardly any noise as a risk, even if no column was found.
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
    reason = "this attack found no more than chance or the thresholds allow"
    if usable > thresholds.broken * users:
        word = "broken"
        reason = f"the updates of {usable} of {users} users were recovered, "
        if counted[1] >= usable:
            reason += "each from a column that is proven unique"
        else:
            reason += (
                f"from columns that fit far better than any on shuffled rounds ({counted[1]} of "
                "them are also proven unique)"
            )
    elif unique.any():
        word = "at risk"
        reason = (
            f"the columns of {counted[1]} of {users} users are unique, but few updates are usable"
        )
    elif control is not None and control.probability <= thresholds.chance:
        word = "at risk"
        reason = "columns fit better than on shuffled rounds: the sums reveal participation"
    elif sharp and _sharp(result, active):
        word = "at risk"
        reason = (
            "the sums have hardly any noise, so they contain the columns; this search did not find "
            "them, but a longer one may"
        )
    reasons = [reason]
    if not result.labelled:
        reasons.append("without counts, columns are in no order and name no users")
    return Verdict(word, *counted, tuple(reasons))


def _sharp(result: Result, active: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> bool:
    expected = [c.expected for c, on in zip(result.certificates, active, strict=True) if on]
    return bool(expected) and float(np.median(expected)) < SHARP
