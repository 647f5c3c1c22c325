"""Updates that are the same for every set of columns that fits, and sums of users that are.

Let P be the found columns and A = P G the sums. The update of user k is computed as w_k^T A, with
w_k^T P = e_k^T. Let C_j be all columns that fit user j: binary, in the span of A, with j's counts.
Any set of columns that fits has one of C_j for each j, and updates G' with A = P' G'. So if

    <w_k, c> = 1 for all c in C_k,      <w_k, c> = 0 for all c in C_j, j not k,

then w_k^T A = w_k^T P' G' = g'_k for every such set: the update is *determined*, though columns of
others, or its own, may not be. The same test with the sum of w_k over a group of users decides if
the sum of their updates is determined.

C_j is enumerated by integer programs. Where that does not end, every direction z of the span with
window sums of zero is allowed for, and <w_k, z> = 0 is required.
"""

import time
from dataclasses import dataclass

import numpy as np

from .._arrays import BoolArray, Columns, FloatArray
from .._attack.span import Subspace
from .reasons import Candidates, Evidence

__all__ = ["Estimable", "determined_by", "estimable"]

_ZERO = 1e-6
"""Products with 0/1 columns below this are zero: they are rational with small denominators."""


@dataclass(frozen=True, eq=False, slots=True)
class Estimable:
    """The determined updates.

    `users`: bool (k,), True where the update is determined. `groups`: places of users whose updates
    are not determined, but the sum of them is.
    """

    users: BoolArray
    groups: tuple[tuple[int, ...], ...] = ()


def estimable(
    columns: Columns, candidates: list[Candidates], deadline: float = float("inf")
) -> Estimable:
    """Decides which updates are determined, for found columns (k, rounds) and their candidates.

    None is if the deadline (monotonic clock) comes first.
    """
    points = columns.T.astype(np.float64)
    nobody = Estimable(np.zeros(len(columns), np.bool_))
    if not len(columns) or np.linalg.matrix_rank(points) < len(columns):
        return nobody
    solver = np.linalg.pinv(points)
    rows = []
    for k, one in enumerate(candidates):
        if time.monotonic() > deadline:
            return nobody
        rows.append(_affected(solver, k, points, one))
    affected = np.array(rows)
    users: BoolArray = np.asarray(~affected.any(axis=0))
    groups = []
    for group in _connected(affected[:, ~users]):
        places = np.flatnonzero(~users)[group]
        total = solver[places].sum(axis=0)[None]
        inside = np.isin(np.arange(len(columns)), places)
        if not any(
            _moves(total, np.array([float(inside[k])]), one).any()
            for k, one in enumerate(candidates)
        ):
            groups.append(tuple(places.tolist()))
    return Estimable(users, tuple(groups))


def _affected(solver: FloatArray, k: int, points: FloatArray, candidates: Candidates) -> BoolArray:
    """(users,): True for users whose update may change with the column of user `k`."""
    return _moves(solver, np.eye(points.shape[1])[k], candidates)


def _moves(solver: FloatArray, wanted: FloatArray, candidates: Candidates) -> BoolArray:
    """(m,): True for rows of `solver` that are not `wanted` (m,) on all candidates of a user."""
    values = solver @ candidates.others.T.astype(np.float64) - wanted[:, None]
    moves = (np.abs(values) > _ZERO).any(axis=1)
    if candidates.directions is not None:
        moves |= (np.abs(solver @ candidates.directions) > _ZERO).any(axis=1)
    return np.asarray(moves)


def _connected(affected: BoolArray) -> list[list[int]]:
    """Groups columns of `affected` that have a row in common, directly or through others."""
    left, groups = set(range(affected.shape[1])), list[list[int]]()
    while left:
        group: set[int] = set()
        reached = {min(left)}
        while reached != group:
            group = reached
            rows = affected[:, sorted(group)].any(axis=1)
            reached = group | set(np.flatnonzero(affected[rows].any(axis=0)).tolist())
        left -= group
        groups.append(sorted(group))
    return groups


def determined_by(
    subspace: Subspace,
    columns: Columns,
    unique: BoolArray,
    evidence: Evidence,
    deadline: float = float("inf"),
) -> Estimable:
    """Decides which updates do not depend on columns (k, rounds) that could be others."""
    possible = subspace.complete and bool(evidence.fits.all())
    if not subspace.exact and not unique.all():  # columns outside the found span may fit as well
        possible = False
    if not possible:
        return Estimable(np.zeros(len(columns), np.bool_))
    certain, unknown = Candidates(columns[:0]), Candidates(columns[:0], subspace.plain)
    every = [
        certain if one else evidence.candidates.get(i, unknown) for i, one in enumerate(unique)
    ]
    return estimable(columns, every, deadline)
