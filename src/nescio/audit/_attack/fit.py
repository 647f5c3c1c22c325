"""The test of a column for a user: near enough to the span, and with the user's counts."""

from dataclasses import dataclass

import numpy as np

from .._arrays import BoolArray, Columns, FloatArray, IntArray
from .._log.counts import agree
from .._log.windows import Windows
from .assignment import outside_of
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
            return outside_of(self.span, columns)
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

    def has_counts(self, columns: Columns, users: IntArray) -> BoolArray:
        """(k,): True for `columns` (k, rounds) with the counts of `users`."""
        return agree(columns, self.windows, self.counts[users], self.error)

    def nearer(self, new: Columns, old: Columns) -> BoolArray:
        """(k,): True for rows of `new` that are nearer to the span than those of `old`."""
        before = np.where(old.any(axis=1), self.subspace.distances(old.astype(np.float64)), np.inf)
        return np.asarray(self.subspace.distances(new.astype(np.float64)) < before)
