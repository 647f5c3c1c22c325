"""Batch lookups: tables in bins, shaped by an access log.

`build` makes a `BatchTable` from rows and a log or a `Layout`. `BatchClient` looks up the rows of
inferences, and sends the same bytes for each of them. `tune` searches a layout.
"""

from ._build import build, make_layout
from ._client import BatchClient
from ._exact import bins_for, failure_probability
from ._layout import Layout
from ._log import AccessLog
from ._pairs import Pairs
from ._parts import FullPart, HotPart, Together
from ._requests import BatchResult
from ._server import BatchServer
from ._table import BatchTable
from ._tune.result import Budgets, Trial, Tuning
from ._tune.tune import tune

__all__ = [
    "AccessLog",
    "BatchClient",
    "BatchResult",
    "BatchServer",
    "BatchTable",
    "Budgets",
    "FullPart",
    "HotPart",
    "Layout",
    "Pairs",
    "Together",
    "Trial",
    "Tuning",
    "bins_for",
    "build",
    "failure_probability",
    "make_layout",
    "tune",
]
