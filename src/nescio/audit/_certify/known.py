"""Columns that are taken as right: proven, or clear of chance without another choice.

Sums and differences of true columns that are binary are as near to the span as true ones. So a
column that fits far better than chance allows need not be its user's: another one with the same
counts may fit as well. If the found columns are right, all such columns are in their span.
"""

import time

import numpy as np

from .._arrays import BoolArray, Columns
from .._attack.basis import column_basis
from .._attack.sets import AffineSet
from .._log.record import Log
from .._log.undetermined import free_rounds
from .._log.windows import batches
from .._thresholds import Thresholds
from .control import Control
from .result import Result
from .uniqueness import margins

__all__ = ["known_columns"]


def known_columns(
    log: Log,
    result: Result,
    control: Control | None,
    thresholds: Thresholds,
    deadline: float = float("inf"),
) -> BoolArray:
    """(users,): True for columns that are proven, or clear of chance and separate from others.

    After the deadline (monotonic clock) no further column is found separate.
    """
    known = result.unique & ~log.idle
    if control is None or control.probability > thresholds.chance:
        return known
    clear = np.zeros(log.users, np.bool_)
    clear[~log.idle] = control.clear
    return known | _separate(log, result.participation.T, clear & ~known, deadline)


def _separate(log: Log, columns: Columns, wanted: BoolArray, deadline: float) -> BoolArray:
    """(users,): True for `wanted` users if no other column of the span has their counts.

    `columns`: uint8 (users, rounds), all found ones; the span is theirs.
    """
    assert log.counts is not None
    alone, users = np.zeros(log.users, np.bool_), np.flatnonzero(wanted)
    if not len(users) or time.monotonic() > deadline:
        return alone
    basis = column_basis(columns[~log.idle])
    for batch in batches(log.windows, log.counts, log.count_error, users):
        affine, free = AffineSet.of(basis, batch), free_rounds(batch, log.empty)
        alone[batch.users] = margins(affine, columns[batch.users], free, deadline) > 0
    return alone
