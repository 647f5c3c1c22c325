"""The two sets of the search, and projections to both.

    affine   {x : x in the span of A, C x = c}
    binary   {x : x in {0, 1}^rounds, window sums c}

Columns are stored as rows, (users, rounds), so that a user's window is contiguous in memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray, Floats, IntArray
from .._log.windows import Batch

__all__ = ["AffineSet", "BinarySet"]

_NEVER = np.float32(-1e30)


@dataclass(frozen=True, eq=False)
class AffineSet:
    """The set of x in the span with C x = c, for a batch of users with the same C.

    `basis`: float64 (rounds, rank), orthonormal, of the span. `across`: float64 (rank, r),
    orthonormal, the coordinates that C fixes. `origins`: float64 (users, rounds), the points of the
    set nearest to 0. Points differ by *directions*: z in the span with C z = 0. `leverage`: for w
    orthogonal to all directions, and z with C z = 0 at distance e from the span, |<w, z>| is at
    upper leverage |w| e.
    """

    basis: FloatArray
    across: FloatArray
    origins: FloatArray
    leverage: float

    @classmethod
    def of(cls, basis: FloatArray, batch: Batch) -> "AffineSet":
        """Makes the set from an orthonormal basis (rounds, rank) and the windows all users share.

        Where no point of the span has the counts (noise), the nearest sums are used.
        """
        before = np.zeros((len(basis) + 1, basis.shape[1]))
        np.cumsum(basis, axis=0, out=before[1:])
        ends = np.array(batch.shared, np.int64).reshape(-1, 2)
        rows = before[ends[:, 1]] - before[ends[:, 0]]
        values, vectors = np.linalg.eigh(rows @ rows.T)
        kept = values > 1e-9 * values.max(initial=1e-300)
        turn = vectors[:, kept] / np.sqrt(values[kept])
        across = rows.T @ turn
        inside = (batch.shared_counts @ turn) @ across.T
        # w's part in the span is U U^T C^T l, and <C^T l, z> = 0: what is left is <C^T l, z off>.
        longest = max((stop - start for start, stop in batch.shared), default=0)
        overlaps = max(1, _depth(batch.shared))
        stretch = float(np.sqrt(longest * overlaps / values[kept].min(initial=np.inf)))
        return cls(basis, across, inside @ basis.T, 2 + stretch)

    def project(self, points: Floats, chosen: IntArray) -> Floats:
        """Returns the nearest points, float32, for rows of the users `chosen` of the batch."""
        moved = self.along(points)
        moved += self._single[2][chosen]
        return moved

    def along(self, points: Floats) -> Floats:
        """Returns the rows' components along the directions, float32."""
        basis, across, _ = self._single
        inside = points @ basis
        inside -= (inside @ across) @ across.T
        return np.asarray(inside @ basis.T)

    @cached_property
    def _single(self) -> tuple[Floats, Floats, Floats]:
        three = (self.basis, self.across, self.origins)
        basis, across, origins = (array.astype(np.float32) for array in three)
        return basis, across, origins


def _depth(windows: tuple[tuple[int, int], ...]) -> int:
    """Returns the maximum number of windows that contain one round."""
    depth = np.zeros(1 + max((stop for _, stop in windows), default=0), np.int64)
    for start, stop in windows:
        depth[start] += 1
        depth[stop] -= 1
    return int(np.cumsum(depth).max())


class BinarySet:
    """Binary columns whose window sums the counts allow.

    The nearest one takes the largest entries of each window: at least the lower bound, at most the
    upper bound, and in between the entries above one half. Rounds in no window are rounded; rounds
    without participants are 0.
    """

    def __init__(self, batch: Batch, empty: npt.NDArray[np.bool_]) -> None:
        self._rounds = len(empty)
        self._empty = np.flatnonzero(empty)
        self._groups = list(_groups(batch))

    def project(self, points: Floats, chosen: npt.NDArray[np.int64]) -> Floats:
        """Returns the nearest binary rows, as float32, for the users `chosen` of the batch."""
        if self._empty.size:
            points = points.copy()
            points[:, self._empty] = _NEVER
        nearest = (points > 0.5).astype(np.float32)
        for rounds, lower, upper in self._groups:
            values = points[:, rounds.reshape(-1)].reshape(len(points), *rounds.shape)
            cut = _cut(values, lower[chosen], upper[chosen])
            nearest[:, rounds.reshape(-1)] = (values >= cut).reshape(len(points), -1)
        if self._empty.size:
            nearest[:, self._empty] = 0
        return nearest


def _groups(batch: Batch) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Groups windows of one length: rounds (windows, length), lower and upper bounds of counts."""
    lengths = np.array([stop - start for start, stop in batch.apart], np.int64)
    starts = np.array([start for start, _ in batch.apart], np.int64)
    for length in np.unique(lengths):
        which = np.flatnonzero(lengths == length)
        rounds = starts[which, None] + np.arange(length)[None, :]
        yield rounds, batch.lower[:, which], batch.upper[:, which]


def _cut(values: Floats, lower: IntArray, upper: IntArray) -> Floats:
    """(users, windows, 1): the threshold above which entries become one."""
    ranked = np.full((*values.shape[:2], values.shape[2] + 1), np.inf, np.float32)
    ranked[:, :, 1:] = -np.sort(-values, axis=2)
    low = np.take_along_axis(ranked, upper[:, :, None], axis=2)
    if lower is upper or (lower == upper).all():
        return np.asarray(low)
    high = np.take_along_axis(ranked, lower[:, :, None], axis=2)
    return np.asarray(np.clip(np.float32(0.5), low, high))
