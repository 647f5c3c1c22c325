"""Recording of a run in progress: what the server sees, and nothing else.

Each round's sum is added with the names of its participants. When the log is made, names become
counts by window, so that the log contains what a server with secure aggregation has: sums, the
number of participants, and how often each user took part in each window.
"""

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from ..._arrays import as_array, as_count
from ...errors import ArgumentError
from .._arrays import FloatArray
from .._log.record import Log

__all__ = ["Recorder"]

MAX_DIMENSIONS = 1 << 28


class Recorder:
    """Collects rounds and makes a Log of them.

    `users`: the names of all users, in the order of the log; None to take them as they appear.
    `granularity`: rounds per window, after which devices report how often they took part.
    `dimensions`: maximum entries of the sums to keep, drawn once with `seed`; None for all. Raises
    ArgumentError if a value is invalid.
    """

    def __init__(
        self,
        users: Iterable[Hashable] | None = None,
        *,
        granularity: int = 10,
        dimensions: int | None = None,
        seed: int = 0,
    ) -> None:
        self._granularity = as_count(granularity, "granularity", 1, 1 << 14)
        self._most = (
            None if dimensions is None else as_count(dimensions, "dimensions", 1, MAX_DIMENSIONS)
        )
        self._seed = as_count(seed, "seed", 0, (1 << 63) - 1)
        self._fixed = users is not None
        self._names: dict[Hashable, int] = {}
        for name in users or ():
            if name in self._names:
                raise ArgumentError(f"users: found {name!r} twice, expected each name once")
            self._names[name] = len(self._names)
        self._sums: list[FloatArray] = []
        self._present: list[list[int]] = []
        self._length = 0
        self._kept: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """The number of recorded rounds."""
        return len(self._sums)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The users' names; the log's user k is the k-th."""
        return tuple(self._names)

    def add(self, total: object, participants: Iterable[Hashable]) -> None:
        """Adds a round: the sum of the updates, floats (dimensions,), and participants' names."""
        row = as_array(total, "the sum of a round")
        if row.ndim != 1 or row.dtype.kind != "f":
            raise ArgumentError(
                f"the sum of a round: found {row.dtype} of shape {row.shape}, expected floats of "
                "one axis; flatten the layers and join them"
            )
        present = list(participants)
        if len(set(present)) != len(present):
            raise ArgumentError("participants: found a name twice in a round, expected it once")
        if unknown := [name for name in present if name not in self._names and self._fixed]:
            raise ArgumentError(
                f"participants: found {unknown[0]!r}, which is not one of the users"
            )
        kept = self._keep(row)
        self._present.append([self._names.setdefault(n, len(self._names)) for n in present])
        self._sums.append(kept)

    def _keep(self, row: FloatArray) -> FloatArray:
        if not self._sums:
            self._length = len(row)
            if self._most is not None and self._most < len(row):
                rng = np.random.default_rng(self._seed)
                self._kept = np.sort(rng.choice(len(row), self._most, replace=False))
        if len(row) != self._length:
            raise ArgumentError(
                f"the sum of a round: found {len(row)} dimensions, expected {self._length} as in "
                "the first round"
            )
        if row.dtype.itemsize not in (4, 8):
            row = row.astype(np.float32)
        return row.copy() if self._kept is None else row[self._kept]

    def participation(self) -> npt.NDArray[np.uint8]:
        """uint8 (rounds, users): true participation, to compare a result with. Not in the log."""
        columns = np.zeros((len(self), len(self._names)), np.uint8)
        for row, present in zip(columns, self._present, strict=True):
            row[present] = 1
        return columns

    def log(self) -> Log:
        """Returns the log so far. Raises ArgumentError if it is too short to be audited."""
        if not self._sums:
            raise ArgumentError("the record is empty, expected rounds; call `add` after each round")
        truth = self.participation().astype(np.int64)
        starts = range(0, len(self), self._granularity)
        windows = tuple((start, min(start + self._granularity, len(self))) for start in starts)
        counts = np.stack([truth[start:stop].sum(axis=0) for start, stop in windows], axis=1)
        return Log(np.stack(self._sums), len(self._names), windows, counts, truth.sum(axis=1))
