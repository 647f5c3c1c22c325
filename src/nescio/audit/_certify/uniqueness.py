"""Proofs that a recovered column is the only one with its counts.

A column y with the counts of the recovered x differs from it by z = y - x: zero where the counts
determine the participation (windows of none or all), elsewhere of the sign s = 1 - 2 x or zero, and
C z = 0. Let z be in the span, and let w be orthogonal to all z in the span with C z = 0. If
s_t w_t > 0 in every undetermined round, then

    0 = <w, z> = sum over rounds that differ of |w_t|,

so no round differs: x is the only one. Such a *separating vector* (a Farkas dual of the linear
relaxation) is searched by accelerated gradient descent for all users at once. Any w is checked in
float64, so the search need not be trusted. If y may be at a distance e from the span, at least one
round differs, and min |w_t| > e |w'| still excludes it, with w' the part of w that meets components
outside the span (`AffineSet.leverage` bounds it).

With noise this is done in the span of the recovered columns, all of which are needed. Columns that
differ by a swap of two rounds are weighed by likelihood: the squared distance of y is larger by
some D, and y is less probable than x by exp(-D / 2 v), v the variance of a residual.
"""

import time

import numpy as np
import numpy.typing as npt

from .._arrays import BoolArray, Columns, FloatArray, Floats, IntArray
from .._attack.sets import AffineSet
from .._attack.span import Subspace
from .._log.windows import Batch

__all__ = ["failures", "margins", "swap_failures"]

_STEPS, _MAX_STEPS = 250, 4000
"""Steps of the descent per user on average, and at most for one user. Few users need many."""


def margins(
    affine: AffineSet,
    columns: npt.NDArray[np.uint8],
    free: BoolArray,
    deadline: float = float("inf"),
) -> FloatArray:
    """(k,): distances from the span that all other columns exceed; 0 where none is proven.

    `columns`: (k, rounds), in the span, with counts as in `affine`; `free`: (k, rounds), from
    `free_rounds`. None is proven after the deadline (monotonic clock).
    """
    signs = 1 - 2 * columns.astype(np.float32)
    proven = np.zeros(len(columns))
    proven[~free.any(axis=1)] = np.inf
    active = np.flatnonzero(free.any(axis=1))
    descent = _Descent(affine, signs[active], free[active])
    left = _STEPS * len(active)
    for _ in range(_MAX_STEPS):
        left -= len(active)
        if not len(active) or left < 0 or time.monotonic() > deadline:
            break
        hopeful = descent.step()
        if not hopeful.any():
            continue
        users = active[hopeful]
        proven[users] = _proven(affine, descent.points[hopeful], signs[users], free[users])
        done = proven[active] > 0
        active = active[~done]
        descent.drop(done)
    return proven


class _Descent:
    """Nesterov's method with restarts for sum relu(1 - s w)^2 over the undetermined rounds."""

    def __init__(self, affine: AffineSet, signs: Floats, free: BoolArray) -> None:
        self._affine = affine
        self._signs = signs * free
        self._blocked = np.where(free, np.float32(0), np.float32(2))
        self.points: Floats = self._signs.copy()
        self._last = self.points
        self._momentum = np.ones(len(signs), np.float32)

    def step(self) -> BoolArray:
        """Makes one step; returns True for users whose `points` seem to separate."""
        before = self.points
        across = before - self._affine.along(before)
        short = 1 - self._signs * across - self._blocked
        hopeful = short.max(axis=1) < 0.99
        new = across + self._signs * np.maximum(short, 0)
        back = np.einsum("ki,ki->k", before - new, new - self._last) > 0
        momentum = np.where(back, 1, self._momentum)
        self._momentum = ((1 + np.sqrt(1 + 4 * momentum * momentum)) / 2).astype(np.float32)
        ahead = new + ((momentum - 1) / self._momentum).astype(np.float32)[:, None] * (
            new - self._last
        )
        self.points = np.where(hopeful[:, None], across, ahead)
        self._last = new
        return np.asarray(hopeful)

    def drop(self, done: BoolArray) -> None:
        """Removes users."""
        for name in ("_signs", "_blocked", "points", "_last", "_momentum"):
            setattr(self, name, getattr(self, name)[~done])


def _proven(affine: AffineSet, points: Floats, signs: Floats, free: BoolArray) -> FloatArray:
    """Computes the margins of vectors in float64; 0 for those that do not separate."""
    vectors = points.astype(np.float64)
    vectors -= _along(affine, vectors)
    vectors -= _along(affine, vectors)
    smallest = np.where(free, signs * vectors, np.inf).min(axis=1)
    rounding = 1e-12 * np.linalg.norm(vectors, axis=1)
    norms = np.linalg.norm(vectors, axis=1) * affine.leverage
    return np.where(smallest > rounding, (smallest - rounding) / norms, 0.0)


def _along(affine: AffineSet, points: FloatArray) -> FloatArray:
    """Returns the rows' components along the directions, in float64."""
    inside = points @ affine.basis
    inside -= (inside @ affine.across) @ affine.across.T
    return np.asarray(inside @ affine.basis.T)


def swap_failures(
    subspace: Subspace,
    columns: npt.NDArray[np.uint8],
    window_of: npt.NDArray[np.int64],
    free: BoolArray,
) -> FloatArray:
    """(k,): probability that a neighboring column is the true one, for all neighbors together.

    `window_of`: (rounds,), the index of a round's window, -1 for none. Neighbors differ by an
    exchange of two rounds in a window, or by one round outside all windows.
    """
    weights = subspace.weights
    outside = -(weights[:, None] * subspace.basis) @ (subspace.basis.T * weights)
    own = np.diag(outside) + weights**2
    outside[np.diag_indices(len(outside))] = own
    points = columns.astype(np.float64)
    pull = 2 * subspace.residuals(points) * weights
    variance = np.maximum(subspace.distances(points), subspace.expected(points)) ** 2
    variance /= max(subspace.free, 1)
    signs = 1 - 2 * points
    sums = np.zeros(len(columns))
    for k, column in enumerate(columns):
        ones = np.flatnonzero(column.astype(np.bool_) & free[k] & (window_of >= 0))
        zeros = np.flatnonzero(~column.astype(np.bool_) & free[k] & (window_of >= 0))
        gain = signs[k] * pull[k] + own
        worse = gain[ones, None] + gain[None, zeros] - 2 * outside[np.ix_(ones, zeros)]
        together = window_of[ones, None] == window_of[None, zeros]
        alone = gain[(window_of < 0) & free[k]]
        changes = np.concatenate((worse[together], alone))
        sums[k] = np.exp(np.minimum(-changes / (2 * variance[k]), 50)).sum()
    return np.minimum(np.expm1(np.minimum(sums, 1)), 1.0)


def failures(subspace: Subspace, batch: Batch, columns: Columns, free: BoolArray) -> FloatArray:
    """(k,): `swap_failures` of the columns of a batch; 0 without noise."""
    if subspace.exact:
        return np.zeros(len(columns))
    return swap_failures(subspace, columns, _hard_windows(batch, columns.shape[1]), free)


def _hard_windows(batch: Batch, rounds: int) -> IntArray:
    """(rounds,): the index of the window whose count is exact for all users, or -1."""
    windows = np.full(rounds, -1)
    for i, (start, stop) in enumerate(batch.apart):
        if (batch.lower[:, i] == batch.upper[:, i]).all():
            windows[start:stop] = i
    return windows
