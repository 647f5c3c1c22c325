"""Advice to the operator, from the log and the result of the attack."""

import numpy as np

from .._certify.quality import Quality
from .._certify.verdict import Verdict
from .._log.record import Log

__all__ = ["CAUTION", "advice"]

CAUTION = (
    "That this attack fails proves nothing. Other attackers know more (single updates, when a "
    "device was online, the model before and after), observe for longer, or have better methods. "
    "Only differential privacy with accounting bounds every attack; an audit does not."
)

_LITTLE_NOISE = 0.5


def advice(log: Log, verdict: Verdict, quality: Quality) -> tuple[str, ...]:
    """Returns sentences, the most effective measure first. They are about this attack only."""
    if verdict.grade == "safe":
        return (
            "Keep this log as a baseline, and repeat the audit when rounds are added, windows "
            "become shorter, or users join or leave.",
        )
    found = []
    if log.counts is not None:
        found += _about_counts(log)
    if quality.noise < _LITTLE_NOISE:
        found.append(
            f"A user's updates differ between rounds by only {quality.noise:.2g} of their size. "
            "Add noise to each update before it is summed, with differential privacy accounting. "
            "Of these measures, only this one bounds other attacks as well."
        )
    ratio = log.rounds / max(verdict.users, 1)
    found.append(
        f"The log has {ratio:.1f} rounds per user. Each further round with the same users helps "
        "the attack. Replace the users of the pool before the rounds reach their number."
    )
    found.append(
        "Let users take part in fixed groups. Then the attack can recover at best the sum of a "
        "group."
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
        f"Participation counts are {exact}, for windows of {int(np.median(lengths))} rounds, and "
        f"{known:.0%} of them are known. Collect them less often, rounded or with noise, or not at "
        "all, because they show whose participation is whose.",
    ]
