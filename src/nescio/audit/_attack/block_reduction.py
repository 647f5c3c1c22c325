"""Short vectors of a lattice: LLL by FLINT, and block reduction with a search of bounded width.

BKZ (Schnorr and Euchner, 1994): in the projections of each block of neighboring vectors, a vector
shorter than the first is searched and put in its place. The search is breadth first: each level
keeps the `width` partial vectors of least length (K-best in MIMO detection). It therefore takes a
fixed time in NumPy, also for large blocks. It is deterministic.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray, IntArray
from .flint import Reducer

__all__ = ["BLOCKS", "Blocks", "Lattice"]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Parameters of the search: the size of a block, and the partial vectors kept."""

    size: int
    width: int


BLOCKS = (Blocks(12, 30), Blocks(20, 60), Blocks(30, 200), Blocks(40, 600), Blocks(50, 1500))

_SHORTER = 0.99
_TRIED = 20
_PRECISION = 1 << 10
_SLACK = 0.15
_TOURS = 2
_GAIN = 0.2


class Lattice:
    """A lattice basis under reduction.

    `rows`: int64 (k, n), the vectors. `image`: float64 (k, m), a linear image of them whose lengths
    are minimized; its rows must be independent. `triangle`: (k, k), upper triangular with a
    positive diagonal: the vectors as columns, in Gram-Schmidt coordinates. `reducer`: runs LLL.
    """

    def __init__(self, rows: IntArray, image: FloatArray, reducer: Reducer | None = None) -> None:
        self._reducer = reducer or Reducer()
        self.rows = rows
        self.triangle = _triangle(image.T)[1]

    @property
    def squares(self) -> FloatArray:
        """(k,): squared lengths."""
        return np.asarray((self.triangle**2).sum(axis=0))

    def lll(self) -> None:
        """Reduces the whole basis. Raises TimeoutError at the reducer's deadline."""
        self._turn(0, len(self.rows), self._reducer.transform(_rounded(self.triangle)))

    def reduce(self, plan: Sequence[Blocks], done: Callable[[IntArray], bool]) -> None:
        """Runs tours with blocks of each size, until `done(rows)` or the reducer's deadline."""
        with contextlib.suppress(TimeoutError):
            self._reduce(plan, done)

    def _reduce(self, plan: Sequence[Blocks], done: Callable[[IntArray], bool]) -> None:
        self.lll()
        for blocks in plan:
            least = np.inf
            while self._potential < least - _GAIN:
                least = self._potential
                for _ in range(_TOURS):
                    if done(self.rows):
                        return
                    self._tour(blocks)
                    self.lll()

    def short(self, width: int, longest: float) -> IntArray:
        """Returns about `width` vectors (m, n) whose squared length is at most `longest`."""
        vectors, _ = _search(self.triangle, width, np.full(len(self.rows), longest))
        return vectors.astype(np.int64) @ self.rows

    @property
    def _potential(self) -> float:
        """The mean of log det of the first i vectors, which a reduction decreases."""
        return float(np.log(np.diag(self.triangle)).cumsum().mean())

    def _tour(self, blocks: Blocks) -> None:
        """Reduces each block once. Raises TimeoutError at the deadline."""
        size = len(self.rows)
        for start in range(size - 1):
            self._reducer.check()
            stop = min(start + blocks.size, size)
            found = _shorter(self.triangle[start:stop, start:stop], blocks.width)
            if found is not None:
                self._insert(start, stop, *found)

    def _insert(self, start: int, stop: int, vector: IntArray, place: int) -> None:
        """Puts a combination of a block first, in place of its vector `place`; reduces the block.

        The combination contains that vector with coefficient 1 or -1, so the span of the block
        stays.
        """
        turn = np.delete(np.eye(stop - start, dtype=np.int64), place, axis=0)
        self._turn(start, stop, np.concatenate((vector[None], turn)))
        block = _rounded(self.triangle[start:stop, start:stop])
        self._turn(start, stop, self._reducer.transform(block))
        self._size_reduce(start, stop)

    def _size_reduce(self, start: int, stop: int) -> None:
        """Removes from a block's vectors their components along the vectors before the block."""
        block, turn = self.triangle[:start, start:stop], np.zeros((stop - start, start), np.int64)
        for i in range(start - 1, -1, -1):
            times = np.rint(block[i] / self.triangle[i, i])
            block[: i + 1] -= self.triangle[: i + 1, i, None] * times
            turn[:, i] = times
        self.rows[start:stop] -= turn @ self.rows[:start]

    def _turn(self, start: int, stop: int, turn: IntArray) -> None:
        """Replaces a block's vectors by combinations of them."""
        here = slice(start, stop)
        self.rows[here] = turn @ self.rows[here]
        self.triangle[:stop, here] = self.triangle[:stop, here] @ turn.T
        rotation, block = _triangle(self.triangle[here, here])
        self.triangle[here, here] = block
        self.triangle[here, stop:] = rotation.T @ self.triangle[here, stop:]


def _triangle(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Returns Q and R with Q R = columns, the diagonal of R positive."""
    rotation, triangle = np.linalg.qr(columns)
    signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
    return np.asarray(rotation * signs), np.asarray(triangle * signs[:, None])


def _rounded(triangle: FloatArray) -> IntArray:
    """int64 (k, k): the columns as rows, at a precision of 1/1024.

    They stay independent, because the rounded triangle is still triangular.
    """
    scale = _PRECISION / float(np.diag(triangle).min())
    return np.asarray(np.rint(triangle.T * scale).astype(np.int64))


def _shorter(triangle: FloatArray, width: int) -> tuple[IntArray, int] | None:
    """Returns a combination of a block shorter than its first vector, and the vector it replaces.

    `triangle`: (b, b), upper; its columns are the block's vectors.
    """
    size = len(triangle)
    share = np.minimum(np.arange(size, 0, -1) / size + _SLACK, 1)  # linear pruning
    bounds = _SHORTER * float(triangle[0, 0] ** 2) * share
    vectors, lengths = _search(triangle, width, bounds)
    for k in np.argsort(lengths, kind="stable")[:_TRIED]:
        vector = vectors[k].astype(np.int64)
        places = np.flatnonzero(np.abs(vector) == 1)
        if len(places):
            return vector, int(places[-1])
    return None


def _search(
    triangle: FloatArray, width: int, bounds: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.float64]]:
    """Returns integer combinations (m, b), one per pair of signs, and their squared lengths.

    Goes from the last vector to the first and keeps the shortest `width` below `bounds`.
    """
    size = len(triangle)
    offsets = np.array([0.0, 1, -1, 2, -2])
    chosen, sums = np.zeros((1, size)), np.zeros((1, size))
    lengths = np.zeros(1)
    for i in range(size - 1, -1, -1):
        center = -sums[:, i] / triangle[i, i]
        nearest = np.rint(center)
        signs = np.where(center >= nearest, 1.0, -1.0)
        values = nearest[:, None] + signs[:, None] * offsets
        longer = lengths[:, None] + ((values - center[:, None]) * triangle[i, i]) ** 2
        zero = np.asarray(~chosen.any(axis=1))
        good = longer <= bounds[i]
        good &= ~(zero[:, None] & (values < 0))
        parent, which = np.nonzero(good)
        new = longer[parent, which]
        if len(new) > width:
            keep = np.argpartition(new, width)[:width]
            keep = np.union1d(keep, np.flatnonzero(zero[parent] & (values[parent, which] == 0)))
            parent, which, new = parent[keep], which[keep], new[keep]
        value = values[parent, which]
        chosen, sums, lengths = chosen[parent], sums[parent] + value[:, None] * triangle[:, i], new
        chosen[:, i] = value
    some = chosen.any(axis=1)
    return chosen[some], lengths[some]
