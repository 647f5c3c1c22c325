"""The size of sums: squares of very large or very small numbers leave the range of floats."""

import math
from dataclasses import replace

import numpy as np

from ...errors import ArgumentError
from .record import Log

__all__ = ["scaled"]

_USUAL = 100
"""Largest entries between 2^-100 and 2^100 need no scaling."""

_MOST_APART = 2.0**300
"""Largest ratio of the largest entries of two rounds."""


def scaled(log: Log) -> tuple[Log, int]:
    """Returns the log divided by a power of two where that is needed, and the exponent, or 0.

    Raises ArgumentError if rounds differ so much in size that no factor brings all into range.
    """
    sizes = np.maximum(log.aggregates.max(axis=1), -log.aggregates.min(axis=1)).astype(np.float64)
    sizes = sizes[sizes > 0]
    largest, smallest = float(sizes.max()), float(sizes.min())
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
