"""The grade of a log: one of three, under thresholds that the operator sets.

broken   usable updates of single users were recovered or can be estimated, from columns that are
         proven unique, or that fit far better than chance allows and leave no other choice
at risk  columns are proven, but updates are mostly noise; or all columns together fit better than
         chance allows; or the sums have hardly any noise, and only the search failed
safe     this attack found no more than chance; that does not cover other attacks

An "ambiguous" certificate does not count by itself: where noise is large, every column with the
right counts is as near as a true one. Chance is measured by the same attack on shuffled rounds
(`Control`).
"""

import numpy as np

from .._arrays import BoolArray, FloatArray
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
    known: BoolArray,
    sharp: bool = True,
) -> Verdict:
    """Grades a log by the result of the attack on it.

    `known`: bool (users,), users whose columns are taken as right (`known_columns`).
    `sharp`: count sums with hardly any noise as a risk, even if no column was found.
    """
    active = ~log.idle
    users = int(active.sum())
    unique = result.unique & active
    clear = 0
    if control is not None and control.probability <= thresholds.chance:
        clear = int(control.clear.sum())
    usable = (known | result.determined) & (quality.errors <= thresholds.usable)
    certain = int((usable & quality.certain).sum())
    statuses = np.array([one.status for one in result.certificates])
    ambiguous = int(((statuses == "ambiguous") & active).sum())
    counted = (users, int(unique.sum()), int(usable.sum()), ambiguous, clear)
    word: Grade = "safe"
    reason = "this attack found no more than chance or the thresholds allow"
    if counted[2] > thresholds.broken * users:
        word = "broken"
        chance = (known & ~unique).any() and (usable & quality.certain & ~result.determined).any()
        reason = _recovered(
            users, certain, quality.errors[usable & ~quality.certain], proven=not chance
        )
    elif unique.any():
        word = "at risk"
        reason = (
            f"the participation of {counted[1]} of {users} users is proven, but few updates are "
            "usable"
        )
    elif control is not None and control.probability <= thresholds.chance:
        word = "at risk"
        reason = (
            "participation agrees with the sums better than on shuffled rounds: the sums reveal it"
        )
    elif sharp and _sharp(result, active):
        word = "at risk"
        reason = (
            "the sums have hardly any noise, so they show who took part; this search did not find "
            "it, but a longer one may"
        )
    reasons = [reason]
    if word == "broken":
        reasons += _sums_known(quality.groups)
    if not result.labelled:
        reasons.append("without counts, it is unknown whose participation was found")
    return Verdict(word, *counted, tuple(reasons))


def _recovered(users: int, certain: int, others: FloatArray, *, proven: bool) -> str:
    """Says which updates were recovered, and which can only be estimated."""
    parts = []
    if certain:
        how = (
            "they are the same for all participation that fits the log"
            if proven
            else "their participation agrees with the sums far better than any on shuffled rounds"
        )
        parts.append(f"the updates of {certain} of {users} users were recovered: {how}")
    if len(others):
        parts.append(
            f"the updates of {len(others)} {'more' if certain else f'of {users}'} users can be "
            f"estimated, with a relative error of {others.min():.2g} or more: their participation "
            "is known, but not that of all other users"
        )
    return "; ".join(parts)


def _sums_known(groups: tuple[tuple[int, ...], ...]) -> list[str]:
    """Says which users have only the sum of their updates known."""
    if not groups:
        return []
    named = "; ".join(" and ".join(map(str, group[:8])) for group in groups[:3])
    more = "" if len(groups) <= 3 else f", and {len(groups) - 3} other groups"
    return [
        f"of some users only the mean of their updates is known, not the update of each: {named}"
        f"{more}"
    ]


def _sharp(result: Result, active: BoolArray) -> bool:
    expected = [c.expected for c, on in zip(result.certificates, active, strict=True) if on]
    return bool(expected) and float(np.median(expected)) < SHARP
