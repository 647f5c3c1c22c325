"""Columns without counts from many rounds: independent component analysis of the sums.

Rows of P are samples of independent, skewed variables (the users' participation), observed through
an unknown mixture. In whitened coordinates of the span, w <- mean of z (w z)^2 converges to
directions of largest skewness, which are single users (Hyvarinen and Oja, 2000, with the skewness
as contrast; the users' directions are its local maxima unless participation is one half). The
result is rounded to two values, moved into the span, and kept only if it lies there exactly. This
takes about 6 rounds per user.

Sums of columns that never overlap are binary and in the span as well. So of all kept columns the
independent ones with the fewest ones are selected (a basis of minimum weight).

Recovered columns have no user names. If there are counts, columns are matched with users by them.
"""

import time

import numpy as np
import numpy.typing as npt

from .._arrays import BoolArray, Columns, FloatArray
from .._log.counts import agree
from .._log.record import Log
from .span import Subspace

__all__ = ["ROUNDS_PER_USER", "ica_columns", "lightest", "match", "pull"]


ROUNDS_PER_USER = 6
"""From this ratio on, skewness finds nearly all columns."""

_STEPS = 60
_PULLS = 6
_STARTS = 6


def ica_columns(
    log: Log, subspace: Subspace, users: int, seed: int, deadline: float = float("inf")
) -> Columns:
    """uint8 (k, rounds), k at most `users`: independent columns in the span, lightest first."""
    rng = np.random.default_rng(seed)
    basis = subspace.plain
    white = _whitened(basis)
    kept = np.zeros((0, log.rounds), np.uint8)
    for _ in range(_STARTS):
        if white.shape[1] == 0:  # all is found, or the only user takes part in all rounds
            break
        directions = _skewed_directions(white, rng, deadline)
        rounded = _two_values(white @ directions).T
        good = pull(rounded, basis, subspace, log.empty)
        kept = lightest(np.concatenate((kept, good)), users)
        if len(kept) == users or time.monotonic() > deadline:
            break
        white = _without(white, kept)
    return kept


def _whitened(basis: FloatArray) -> FloatArray:
    """(rounds, r): coordinates of the rounds with mean zero and unit covariance."""
    centred = basis - basis.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    large = values > 1e-9 * values[-1]
    return np.asarray(centred @ (vectors[:, large] / np.sqrt(values[large] / len(basis))))


def _without(white: FloatArray, kept: Columns) -> FloatArray:
    """Returns the coordinates that remain when those of known columns are removed."""
    known = kept.T - kept.mean(axis=1)
    inside = np.linalg.qr(white.T @ known)[0]
    rest = np.linalg.svd(np.eye(white.shape[1]) - inside @ inside.T)
    return np.asarray(white @ rest[0][:, rest[1] > 0.5])


def _skewed_directions(white: FloatArray, rng: np.random.Generator, deadline: float) -> FloatArray:
    """(r, r), orthonormal: fixed points of the iteration, all directions at once."""
    rank = white.shape[1]
    turn = np.linalg.qr(rng.standard_normal((rank, rank)))[0]
    for _ in range(_STEPS):
        sources = white @ turn
        raised = white.T @ (sources * sources) / len(white)
        left, _, right = np.linalg.svd(raised, full_matrices=False)
        new = left @ right
        change = 1 - np.abs(np.einsum("ij,ij->j", new, turn)).min()
        turn = new
        if change < 1e-9 or time.monotonic() > deadline:
            break
    return np.asarray(turn)


def _two_values(sources: FloatArray) -> Columns:
    """(rounds, k): 1 where an entry is near the rarer of two values, else 0."""
    signs = np.where((sources**3).mean(axis=0) < 0, -1.0, 1.0)
    sources = sources * signs
    cut = (sources.max(axis=0) + sources.min(axis=0)) / 2
    for _ in range(10):
        high = sources > cut
        number = high.sum(axis=0)
        above = (sources * high).sum(axis=0) / np.maximum(number, 1)
        below = (sources * ~high).sum(axis=0) / np.maximum(len(sources) - number, 1)
        cut = (above + below) / 2
    return np.asarray((sources > cut).astype(np.uint8))


def pull(columns: Columns, basis: FloatArray, subspace: Subspace, empty: BoolArray) -> Columns:
    """Moves columns into the span by alternate projection and rounding; drops those that fail."""
    points = columns.astype(np.float64)
    for _ in range(_PULLS):
        points = ((points @ basis) @ basis.T > 0.5).astype(np.float64)
    points[:, empty] = 0
    good = (subspace.distances(points) <= subspace.limits(points)) & points.any(axis=1)
    return np.asarray(points[good].astype(np.uint8))


def lightest(columns: Columns, users: int) -> Columns:
    """Selects independent columns with the fewest ones."""
    columns = np.unique(columns, axis=0)
    columns = columns[np.argsort(columns.sum(axis=1), kind="stable")]
    chosen: list[int] = []
    directions = np.zeros((0, columns.shape[1]))
    for i, column in enumerate(columns.astype(np.float64)):
        if len(chosen) == users:
            break
        rest = column - (directions @ column) @ directions
        rest -= (directions @ rest) @ directions
        if np.linalg.norm(rest) > 1e-6 * np.linalg.norm(column):
            chosen.append(i)
            directions = np.concatenate((directions, rest[None] / np.linalg.norm(rest)))
    return columns[chosen]


def match(log: Log, columns: Columns, users: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """(k,): the user whose counts a column has, each user at most once; -1 for none.

    A maximum matching (augmenting paths), so that users with several choices leave columns to
    others.
    """
    owner = np.full(len(columns), -1)
    if log.counts is None:
        owner[: len(users)] = users[: len(columns)]
        return owner
    fits: dict[int, list[int]] = {}
    for user in users.tolist():
        counts = np.broadcast_to(log.counts[user], (len(columns), len(log.windows)))
        fits[user] = np.flatnonzero(agree(columns, log.windows, counts, log.count_error)).tolist()
    for user in sorted(fits, key=lambda user: len(fits[user])):
        _augment(user, fits, owner)
    return owner


def _augment(first: int, fits: dict[int, list[int]], owner: npt.NDArray[np.int64]) -> None:
    """Assigns a column to a user along an augmenting path."""
    reached: dict[int, int] = {}
    waiting = [first]
    while waiting:
        user = waiting.pop(0)
        for column in fits[user]:
            if column in reached:
                continue
            reached[column] = user
            if owner[column] >= 0:
                waiting.append(int(owner[column]))
                continue
            _hand_over(column, reached, owner, first)
            return


def _hand_over(
    column: int, reached: dict[int, int], owner: npt.NDArray[np.int64], first: int
) -> None:
    """Moves every user on the path from `first` to a free column to the next column."""
    while True:
        user = reached[column]
        before = np.flatnonzero(owner == user)
        owner[column] = user
        if user == first:
            return
        column = int(before[0])
