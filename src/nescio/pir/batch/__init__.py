"""Batch lookups: tables in bins, shaped by an access log."""

from ._exact import bins_for, failure_probability
from ._layout import Layout
from ._log import AccessLog
from ._pairs import Pairs
from ._parts import FullPart, HotPart, Together

__all__ = [
    "AccessLog",
    "FullPart",
    "HotPart",
    "Layout",
    "Pairs",
    "Together",
    "bins_for",
    "failure_probability",
]
