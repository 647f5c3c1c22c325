"""The size of sums: squares of very large or very small numbers leave the range of floats.

One round that is far larger than all others, such as one that failed, hides what they reveal.
"""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...errors import ArgumentError
from .record import Log

__all__ = ["large_rounds", "scaled"]

_USUAL = 100
"""Largest entries between 2^-100 and 2^100 need no scaling."""

_MOST_APART = 2.0**300
"""Largest ratio of the largest entries of two rounds."""

_LARGE = 100.0
"""A round is large if its largest entry is that many times the median of the rounds."""


def scaled(log: Log) -> tuple[Log, int]:
    """Returns the log divided by a power of two where that is needed, and the exponent, or 0.

    Raises ArgumentError if rounds differ so much in size that no factor brings all into range, or
    are so small that they have lost digits.
    """
    sizes = _sizes(log)
    sizes = sizes[sizes > 0]
    largest, smallest = float(sizes.max()), float(sizes.min())
    normal = float(np.finfo(log.aggregates.dtype).tiny)
    if smallest < normal:
        raise ArgumentError(
            f"aggregates: found a round with a largest entry of {smallest:.1g}, expected at least "
            f"{normal:.1g}, because {log.aggregates.dtype} stores smaller numbers with fewer "
            "digits; multiply updates by a constant before they are summed, or log float64"
        )
    if largest / _MOST_APART > smallest:
        raise ArgumentError(
            f"aggregates: found rounds with largest entries of {smallest:.1g} and {largest:.1g}, "
            "expected rounds of similar size; leave out rounds that failed, and count windows "
            "without them"
        )
    exponent = math.frexp(largest)[1]
    if abs(exponent) <= _USUAL:
        return log, 0
    return replace(log, aggregates=np.ldexp(log.aggregates, -exponent)), exponent


def large_rounds(log: Log) -> list[tuple[int, float]]:
    """Returns rounds far larger than the median round, and how many times, the largest first."""
    sizes = _sizes(log)
    times = sizes / float(np.median(sizes[sizes > 0]))
    found = np.argsort(-times, kind="stable")[: int((times > _LARGE).sum())]
    return [(int(one), float(times[one])) for one in found]


def _sizes(log: Log) -> npt.NDArray[np.float64]:
    """(rounds,): the largest entry of each round."""
    low, high = log.aggregates.min(axis=1), log.aggregates.max(axis=1)
    return np.asarray(np.maximum(high, -low), np.float64)
