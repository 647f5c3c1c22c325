"""The parts of a layout: hot rows, all rows, the rows that arrive together."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..._arrays import IndexArray, as_array, as_indices, shown
from ...errors import ArgumentError
from .._bins import Bins
from ._permutation import Permutation

MAX_TOGETHER = 64
MAX_HASHES = 16
MAX_SEED = (1 << 32) - 1

NeighborArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HotPart:
    """The popular rows of a table, in bins of their own.

    `rows` are their numbers, `bins` the number of bins, `keys` the keys that every lookup sends to
    each of them.
    """

    rows: IndexArray = field(repr=False)
    bins: int
    keys: int = 1

    def group(self) -> Bins:
        """Returns the bins of the part."""
        return Bins(self.bins, _bin_rows(len(self.rows), self.bins), self.keys)

    def checked(self, rows: int) -> "HotPart":
        """Returns a part with rows in ascending order, for a table of `rows` rows.

        Raises ArgumentError.
        """
        return HotPart(_sorted(self.rows, rows, "the hot rows"), self.bins, self.keys)


@dataclass(frozen=True)
class FullPart:
    """All rows of a table, once for each of `hashes` hashes.

    Each hash cuts the rows into `bins` bins, in an order that `seed` and the hash choose. Every
    lookup sends `keys` keys to each bin. The seed also chooses the order of the hot rows.
    """

    bins: int
    keys: int = 1
    hashes: int = 1
    seed: int = 0

    def group(self, rows: int) -> Bins:
        """Returns the bins of the part, those of the first hash first."""
        return Bins(self.hashes * self.bins, _bin_rows(rows, self.bins), self.keys)

    @property
    def slots(self) -> int:
        """The keys that a lookup sends to all bins."""
        return self.hashes * self.bins * self.keys


@dataclass(frozen=True, eq=False)
class Together:
    """Rows that arrive with other rows: a lookup of `rows[i]` also gets the rows `neighbors[i]`.

    `neighbors` is an array (n, C), with -1 where a row has fewer than C neighbors.
    """

    rows: IndexArray = field(repr=False)
    neighbors: NeighborArray = field(repr=False)

    @property
    def count(self) -> int:
        """The rows that arrive with a row, at most: C."""
        return len(self.neighbors[0])

    def checked(self, rows: int) -> "Together":
        """Returns the same with sorted rows and neighbors, for a table of `rows` rows.

        Raises ArgumentError.
        """
        own = as_indices(self.rows, rows, "rows with neighbors").reshape(-1)
        found = as_array(self.neighbors, "neighbors")
        if found.ndim != 2 or found.dtype.kind not in "iu" or len(found) != len(own):
            raise ArgumentError(
                f"neighbors: found shape {found.shape} of {found.dtype}, expected integers "
                f"({len(own)}, C): C for each row that has neighbors"
            )
        if not 1 <= found.shape[1] <= MAX_TOGETHER:
            raise ArgumentError(
                f"neighbors: found {found.shape[1]} for each row, expected 1 to {MAX_TOGETHER}"
            )
        order = np.argsort(own, kind="stable")
        made = Together(_sorted(own, rows, "rows with neighbors"), _ordered(found[order], rows))
        if (made.neighbors == made.rows[:, None].astype(np.int64)).any():
            raise ArgumentError("neighbors: found a row among its own, expected other rows")
        return made


def part_problems(part: HotPart | FullPart, rows: int, name: str) -> Iterator[str]:
    """Yields the problems of the sizes of a part of so many rows."""
    for what, found, most in (("bins", part.bins, rows), ("keys", part.keys, 1 << 16)):
        if type(found) is not int or not 1 <= found <= most:
            yield f"the {name} part: found {shown(found)} {what}, expected 1 to {most}"
    if isinstance(part, FullPart):
        if type(part.hashes) is not int or not 1 <= part.hashes <= MAX_HASHES:
            yield f"found {shown(part.hashes)} hashes, expected 1 to {MAX_HASHES}"
        if type(part.seed) is not int or not 0 <= part.seed <= MAX_SEED:
            yield f"found the seed {shown(part.seed)}, expected 0 to 2^32 - 1"


def _bin_rows(rows: int, bins: int) -> int:
    return -(-Permutation(rows, 0, 0).places // bins)


def _sorted(rows: object, limit: int, what: str) -> IndexArray:
    """Sorts rows. Raises ArgumentError if there are none or some occur twice, IndexRangeError."""
    found = as_indices(rows, limit, what).reshape(-1)
    values = np.unique(found)
    if not len(values) or len(values) != len(found):
        raise ArgumentError(
            f"{what}: found {len(found)}, {len(values)} of them different; expected different "
            "rows, at least one"
        )
    values.flags.writeable = False
    return values


def _ordered(neighbors: npt.NDArray[np.integer], rows: int) -> NeighborArray:
    """Sorts the neighbors of each row, the missing ones last. Raises ArgumentError."""
    found = neighbors.astype(np.int64)
    if found.size and (found.min() < -1 or found.max() >= rows):
        odd = found.min() if found.min() < -1 else found.max()
        raise ArgumentError(f"neighbors: found {odd}, expected 0 to {rows - 1}, or -1 for none")
    found = np.sort(np.where(found < 0, rows, found), axis=1)
    if (found[:, 0] == rows).any() or ((np.diff(found) == 0) & (found[:, 1:] != rows)).any():
        raise ArgumentError("neighbors: expected different rows, at least one for each row")
    ordered: NeighborArray = np.where(found == rows, -1, found)
    ordered.flags.writeable = False
    return ordered
