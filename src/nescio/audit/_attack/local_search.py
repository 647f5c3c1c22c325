"""Local search in noise: exchanges of two rounds that bring a column nearer to the span.

RRR ends near a column that is off the span by its noise, often a round or two from it. With
Q = W (I - U U^T) W the squared distance of x is x^T Q x. Exchanging a round i for a round j of the
same window, which keeps its count, changes it by

    Q_ii + Q_jj - 2 Q_ij + 2 (x_i - x_j) (g_j - g_i),        g = Q x,

and adding or removing a round, where counts allow it, by Q_ii + 2 (1 - 2 x_i) g_i. The best change
is made until no change helps.
"""

import time

import numpy as np

from .._arrays import BoolArray, Columns, FloatArray, IntArray
from .._log.counts import agree
from .._log.windows import Batch
from .span import Subspace
from .state import State

__all__ = ["LocalSearch", "nearer", "take_nearer"]


MAX_PAIRS = 1 << 22
"""Maximum pairs of rounds; beyond it the longest windows are left out."""

_STEPS = 200
_ENOUGH = 1e-9


class LocalSearch:
    """Local search for the users of a batch, in a span with noise.

    After the deadline (monotonic clock) columns stay as they are.
    """

    def __init__(
        self,
        subspace: Subspace,
        batch: Batch,
        empty: BoolArray,
        deadline: float = float("inf"),
    ) -> None:
        self._deadline = deadline
        inside = subspace.weights[:, None] * subspace.basis
        self._q = np.diag(subspace.weights**2) - inside @ inside.T
        self._batch, self._empty = batch, empty
        self._own = np.diag(self._q).copy()
        self._first, self._second = _pairs(batch, empty)
        self._both = self._own[self._first] + self._own[self._second]
        self._both -= 2 * self._q[self._first, self._second]
        self._window = np.full(len(empty), -1)
        for i, (start, stop) in enumerate(batch.apart):
            self._window[start:stop] = i
        outside = (self._window < 0) & ~empty
        self._open = bool(outside.any() or (batch.lower != batch.upper).any())

    def __call__(self, columns: Columns) -> Columns:
        """Returns columns (users of the batch, rounds) that no single change brings nearer."""
        better = columns.copy()
        pulls = columns.astype(np.float64) @ self._q
        for i in range(len(columns)):
            if columns[i].any() and time.monotonic() < self._deadline:
                self._descend(i, better[i], pulls[i])
        return better

    def _descend(self, user: int, column: Columns, pull: FloatArray) -> None:
        """Changes `column` and Q times it in place."""
        for _ in range(_STEPS):
            change, rounds = self._exchange(column, pull)
            alone, single = self._flip(user, column, pull)
            if alone < change:
                change, rounds = alone, (single,)
            if change > -_ENOUGH:
                return
            for t in rounds:
                pull += self._q[t] * (1.0 - 2.0 * column[t])
                column[t] ^= 1

    def _exchange(self, column: Columns, pull: FloatArray) -> tuple[float, tuple[int, ...]]:
        """Returns the best exchange of two rounds and its change of the squared distance."""
        differ = column[self._first] != column[self._second]
        if not differ.any():
            return 0.0, ()
        first, second = self._first[differ], self._second[differ]
        sign = 2.0 * column[first] - 1.0
        change = self._both[differ] + 2 * sign * (pull[second] - pull[first])
        best = int(np.argmin(change))
        return float(change[best]), (int(first[best]), int(second[best]))

    def _flip(self, user: int, column: Columns, pull: FloatArray) -> tuple[float, int]:
        """Returns the best single round to add or remove, where the counts allow it."""
        batch = self._batch
        if not self._open:
            return 0.0, 0
        ones = np.array([column[start:stop].sum() for start, stop in batch.apart], np.int64)
        more = np.append(ones < batch.upper[user], True)[self._window]
        less = np.append(ones > batch.lower[user], True)[self._window]
        allowed = np.where(column == 1, less, more) & ~self._empty
        change = np.where(allowed, self._own + 2 * (1.0 - 2.0 * column) * pull, np.inf)
        best = int(np.argmin(change))
        return float(change[best]), best


def _pairs(batch: Batch, empty: BoolArray) -> tuple[IntArray, IntArray]:
    """Returns pairs of rounds of the same window, i before j."""
    first: list[IntArray] = []
    second: list[IntArray] = []
    left = MAX_PAIRS
    for start, stop in sorted(batch.apart, key=lambda w: w[1] - w[0]):
        rounds = start + np.flatnonzero(~empty[start:stop])
        i, j = np.triu_indices(len(rounds), 1)
        left -= len(i)
        if left < 0:
            break
        first.append(rounds[i])
        second.append(rounds[j])
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *first]), np.concatenate([none, *second])


def take_nearer(state: State, users: IntArray, columns: Columns) -> None:
    """Accepts columns (k, rounds) for `users` that have their counts and are nearer."""
    log = state.log
    assert log.counts is not None
    good = agree(columns, log.windows, log.counts[users], log.count_error)
    good &= nearer(state.subspace, columns, state.columns[users])
    state.columns[users[good]] = columns[good]


def nearer(subspace: Subspace, new: Columns, old: Columns) -> BoolArray:
    """(k,): True for rows of `new` that are nearer to the span than those of `old`."""
    before = np.where(old.any(axis=1), subspace.distances(old.astype(np.float64)), np.inf)
    return np.asarray(subspace.distances(new.astype(np.float64)) < before)
