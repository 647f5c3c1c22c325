"""What an operator should change, from what a log holds and what was recovered from it."""

import numpy as np

from .._certify.grade import Verdict
from .._certify.quality import Quality
from .._log.record import Log

__all__ = ["CAUTION", "advice"]

CAUTION = (
    "That this attack fails proves nothing. Others know more (an update or two, when a device was "
    "online, the model before and after), watch for longer, or are better. A bound on what any "
    "attack can learn comes from differential privacy with accounting, not from an audit."
)

_LITTLE_NOISE = 0.5


def advice(log: Log, verdict: Verdict, quality: Quality) -> tuple[str, ...]:
    """Sentences, what helps most first. They are about this attack only."""
    if verdict.grade == "safe":
        return (
            "Keep this log as a baseline, and audit again when rounds are added, windows become "
            "shorter, or users join or leave.",
        )
    found = []
    if log.counts is not None:
        found += _about_counts(log)
    if quality.noise < _LITTLE_NOISE:
        found.append(
            f"Updates differ between rounds by {quality.noise:.2g} of their size. Add noise to "
            "each update before it is summed, with differential privacy and its accounting: it is "
            "the one of these measures that bounds other attacks too."
        )
    ratio = log.rounds / max(verdict.users, 1)
    found.append(
        f"The log has {ratio:.1f} rounds for each user. Each round that the same users meet again "
        "helps the attack: change who is in the pool sooner than rounds reach the number of users."
    )
    found.append(
        "Let users take part in fixed groups, so that the smallest thing a sum can be taken apart "
        "into is a group's sum."
    )
    return tuple(found)


def _about_counts(log: Log) -> list[str]:
    assert log.counts is not None
    lengths = [stop - start for start, stop in log.windows]
    known = float(np.mean(log.counts >= 0)) if log.counts.size else 0.0
    exact = "exact" if log.count_error == 0 else f"up to {log.count_error} off"
    if not lengths or known == 0:
        return []
    return [
        f"Counts are {exact}, for windows of {int(np.median(lengths))} rounds, {known:.0%} of them "
        "known. Collect them less often, in coarse steps or with noise, or not at all: they are "
        "what names the columns.",
    ]
