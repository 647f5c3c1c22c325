"""The test of a column for a user: near enough to the span, and with the user's counts."""

from dataclasses import dataclass

import numpy as np

from .._arrays import BoolArray, Columns, FloatArray, IntArray
from .._log.counts import agree
from .._log.windows import Windows
from .span import Subspace

__all__ = ["Fit", "Taken"]

_TYPICAL = 1.5
"""Columns within this multiple of the expected noise distance are accepted without a restart."""


@dataclass(frozen=True, eq=False, slots=True)
class Taken:
    """Columns that other users already have.

    `known`: the bytes of each. `span`: (k, rounds), columns outside whose span new ones must be, or
    None.
    """

    known: frozenset[bytes] = frozenset()
    span: Columns | None = None

    def leaves(self, columns: Columns) -> BoolArray:
        """(k,): True for rows of `columns` that are not taken."""
        if self.span is not None:
            return _outside_of(self.span, columns)
        return np.array([column.tobytes() not in self.known for column in columns], np.bool_)


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """Tests columns against the span and the counts.

    `counts`: (users, windows), each off by at most `error`. `choices`: (users,), the logarithm of
    the number of columns with each user's counts.
    """

    windows: Windows
    counts: IntArray
    error: int
    choices: FloatArray
    subspace: Subspace

    def accept(
        self, users: IntArray, taken: Taken, columns: Columns, chosen: IntArray
    ) -> BoolArray:
        """(k,): True for `columns` (k, rounds) that fit the chosen of `users` and are free."""
        return taken.leaves(columns) & self.fits(columns, users[chosen])

    def fits(self, columns: Columns, users: IntArray) -> BoolArray:
        """(k,): True for `columns` (k, rounds) near enough and with the counts of `users`."""
        points = columns.astype(np.float64)
        limits = self.subspace.limits(points, self.choices[users])
        if self.subspace.colored:  # a better column may be close to one below chance
            limits = np.minimum(limits, _TYPICAL * self.subspace.expected(points))
        near = self.subspace.distances(points) <= limits
        has_counts = agree(columns, self.windows, self.counts[users], self.error)
        return np.asarray(near & has_counts)


def _outside_of(known: Columns, columns: Columns) -> BoolArray:
    """(k,): True for rows of `columns` outside the span of the rows `known`."""
    left, values, _ = np.linalg.svd(known.T.astype(np.float64), full_matrices=False)
    basis = left[:, values > 1e-9 * values.max(initial=1e-300)]
    points = columns.astype(np.float64)
    rest = points - (points @ basis) @ basis.T
    return np.asarray(np.linalg.norm(rest, axis=1) > 1e-6)
