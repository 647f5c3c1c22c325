"""Batch lookups: tables in bins, shaped by an access log."""

from ._exact import bins_for, failure_probability
from ._log import AccessLog
from ._pairs import Pairs

__all__ = ["AccessLog", "Pairs", "bins_for", "failure_probability"]
