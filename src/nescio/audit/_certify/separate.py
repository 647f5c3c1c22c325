"""Columns that no other column can stand for, given the found ones.

Sums and differences of true columns that are binary are as near to the span as true ones. So a
column that fits far better than chance allows need not be its user's: another one with the same
counts may fit as well. If the found columns are right, all such columns are in their span.
"""

import numpy as np

from .._arrays import BoolArray, Columns, FloatArray
from .._attack.sets import AffineSet
from .._log.record import Log
from .._log.undetermined import free_rounds
from .._log.windows import batches
from .uniqueness import margins

__all__ = ["column_basis", "separate"]


def separate(log: Log, columns: Columns, wanted: BoolArray) -> BoolArray:
    """(users,): True for `wanted` users if no other column of the span has their counts.

    `columns`: uint8 (users, rounds), all found ones; the span is theirs.
    """
    assert log.counts is not None
    alone, users = np.zeros(log.users, np.bool_), np.flatnonzero(wanted)
    if not len(users):
        return alone
    basis = column_basis(columns[~log.idle])
    for batch in batches(log.windows, log.counts, log.count_error, users):
        affine, free = AffineSet.of(basis, batch), free_rounds(batch, log.empty)
        alone[batch.users] = margins(affine, columns[batch.users], free) > 0
    return alone


def column_basis(columns: Columns) -> FloatArray:
    """Returns an orthonormal basis (rounds, rank) of columns (k, rounds)."""
    left, values, _ = np.linalg.svd(columns.T.astype(np.float64), full_matrices=False)
    return np.asarray(left[:, values > 1e-9 * values.max(initial=1e-300)])
