"""Short vectors of a lattice: LLL by FLINT, and blocks of it by a search of bounded width.

BKZ (Schnorr and Euchner, 1994): in the projections of each block of neighbouring vectors a vector
shorter than the first is looked for and put there. The search is breadth first: at each level the
`width` partial vectors of least length are kept (what receivers of radio call K-best), so that it
takes the same time always, in NumPy, and a large block is no more than a harder one. Nothing is
random.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError
from .problem import FloatArray
from .windows import IntArray

__all__ = ["BLOCKS", "Blocks", "Lattice", "check_library", "has_library"]


@dataclass(frozen=True, slots=True)
class Blocks:
    """How to look for shorter vectors: the size of a block, partial vectors kept, most tours."""

    size: int
    width: int
    tours: int


BLOCKS = (Blocks(12, 30, 2), Blocks(20, 60, 6), Blocks(30, 200, 30), Blocks(40, 600, 20))

_SHORTER = 0.99
_TRIED = 20
_PRECISION = 1 << 10
_SLACK = 0.15


def has_library() -> bool:
    """Whether python-flint is there."""
    try:
        import flint  # noqa: F401, PLC0415 - an extra
    except ModuleNotFoundError:
        return False
    return True


def check_library() -> None:
    """Raises ArgumentError without python-flint."""
    if not has_library():
        raise ArgumentError(
            "method lattice needs python-flint: pip install 'nescio[audit-lattice]'"
        )


class Lattice:
    """A basis that gets shorter.

    `rows`: int64 (k, n), the vectors. Lengths are those of `image`, float64 (k, k), a linear image
    of theirs that keeps products: (k, m) when made, of any m.
    """

    def __init__(self, rows: IntArray, image: FloatArray) -> None:
        self.rows = rows
        self.image = _triangle(image).T

    def lll(self) -> None:
        """Reduces the whole basis. One call of FLINT, which cannot be interrupted."""
        diagonal = np.abs(np.diag(_triangle(self.image)))
        shortest = float(np.linalg.norm(self.image, axis=1).min())
        scale = max(_PRECISION / shortest, 64 / float(diagonal.min()))
        self._turn(slice(None), _lll_transform(self.image * scale))
        self.image = _triangle(self.image).T

    def reduce(
        self, plan: Sequence[Blocks], done: Callable[[IntArray], bool], deadline: float
    ) -> None:
        """Tours of `plan`, until `done(rows)`, the clock (monotonic), or nothing gets shorter."""
        self.lll()
        for blocks in plan:
            for _ in range(blocks.tours):
                if done(self.rows) or time.monotonic() > deadline:
                    return
                changed = self._tour(blocks, deadline)
                self.lll()
                if not changed:
                    break

    def short(self, width: int, longest: float) -> IntArray:
        """Vectors (m, n) whose squared length is below `longest`, some `width` of them."""
        vectors, _ = _search(_triangle(self.image), width, np.full(len(self.rows), longest))
        return vectors.astype(np.int64) @ self.rows

    def _tour(self, blocks: Blocks, deadline: float) -> bool:
        """Each block once; whether one of them got shorter."""
        changed = False
        size = len(self.rows)
        triangle = _triangle(self.image)
        for start in range(size - 1):
            if time.monotonic() > deadline:
                break
            stop = min(start + blocks.size, size)
            found = _shorter(triangle[start:stop, start:stop], blocks.width)
            if found is None:
                continue
            self._insert(start, stop, *found)
            triangle = _triangle(self.image)
            changed = True
        return changed

    def _insert(self, start: int, stop: int, vector: IntArray, place: int) -> None:
        """Puts a combination of a block, in place of its vector `place`, first; reduces the block.

        The combination has 1 or -1 of that vector, so what the block spans stays.
        """
        turn = np.eye(stop - start, dtype=np.int64)
        turn = np.concatenate((vector[None], np.delete(turn, place, axis=0)))
        here = slice(start, stop)
        self._turn(here, turn)
        triangle = _triangle(self.image)
        block = triangle[here, here].T
        scale = _PRECISION / float(np.abs(np.diag(block)).min())
        self._turn(here, _lll_transform(block * scale))
        self._size_reduce(start, stop)

    def _size_reduce(self, start: int, stop: int) -> None:
        """Takes from a block's vectors what they have along those before the block."""
        triangle = _triangle(self.image)
        block, turn = triangle[:, start:stop], np.zeros((stop - start, start), np.int64)
        for i in range(start - 1, -1, -1):
            times = np.rint(block[i] / triangle[i, i])
            block -= triangle[:, i, None] * times
            turn[:, i] = times
        self.rows[start:stop] -= turn @ self.rows[:start]
        self.image[start:stop] -= turn @ self.image[:start]

    def _turn(self, here: slice, turn: IntArray) -> None:
        self.rows[here] = turn @ self.rows[here]
        self.image[here] = turn @ self.image[here]


def _triangle(image: FloatArray) -> FloatArray:
    """(k, k): the upper triangle R, of a positive diagonal, with R^T R = image image^T."""
    triangle = np.linalg.qr(image.T, mode="r")
    signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
    return np.asarray(triangle * signs[:, None])


def lll(rows: Any) -> IntArray:
    """The LLL-reduced basis of integer rows, as int64 (k, m). Cannot be interrupted."""
    return _reduced(rows)[0]


def _lll_transform(image: FloatArray) -> IntArray:
    """int64 (k, k): what makes the rows of `image`, rounded, LLL-reduced."""
    return _reduced(np.rint(image).astype(np.int64), transform=True)[1]


def _reduced(rows: Any, *, transform: bool = False) -> list[IntArray]:
    from flint import fmpz_mat  # noqa: PLC0415 - an extra

    reduced = fmpz_mat(rows.tolist()).lll(transform=transform)
    parts = reduced if transform else (reduced, )
    return [np.array([[int(v) for v in row] for row in part.tolist()], np.int64) for part in parts]


def _shorter(triangle: FloatArray, width: int) -> tuple[IntArray, int] | None:
    """A combination of a block that is shorter than its first vector, and which vector it replaces.

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
    """Integer combinations (m, b), one of each pair of signs, and their squared lengths.

    From the last vector to the first, of what is at most `bounds` there the shortest `width`.
    """
    size = len(triangle)
    offsets = np.array([0.0, 1, -1, 2, -2])
    chosen, sums = np.zeros((1, size)), np.zeros((1, size))
    lengths = np.zeros(1)
    for i in range(size - 1, -1, -1):
        centre = -sums[:, i] / triangle[i, i]
        nearest = np.rint(centre)
        signs = np.where(centre >= nearest, 1.0, -1.0)
        values = nearest[:, None] + signs[:, None] * offsets
        longer = lengths[:, None] + ((values - centre[:, None]) * triangle[i, i]) ** 2
        zero = ~chosen.any(axis=1)
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
