"""Scores of layouts: the rows of held-out inferences that a client would get."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .... import _core
from ...._arrays import IndexArray
from ....errors import ArgumentError
from .._columns import Bools, Integers
from .._log import AccessLog
from .._permutation import Permutation
from .._positions import DROPPED
from .design import MAX_NEIGHBORS, Design, Needs

__all__ = ["Logs", "Quality", "Score", "Scorer"]

Quality = Callable[[list[Integers], list[Bools]], float]
"""Rates a layout: takes the rows of each held-out inference, and which of them were retrieved."""

BinArray = npt.NDArray[np.int32]


class Logs(NamedTuple):
    """The logs of a search: to make layouts from, and to score them on.

    `train` and `held` have what a client-side cache leaves to fetch. `wanted` is the whole held-out
    log, and `fetched` marks those of its accesses that are in `held`.
    """

    train: AccessLog
    held: AccessLog
    wanted: AccessLog
    fetched: Bools


class Score(NamedTuple):
    """The fraction of rows retrieved, that of inferences with all their rows, and the quality."""

    retrieved: float
    complete: float
    quality: float


class Scorer:
    """Plans the held-out inferences for one design after the other.

    The places of rows are those of `Layout`; what many designs share is computed once.
    """

    def __init__(
        self,
        logs: Logs,
        rows: int,
        min_count: int,
        threads: int,
        quality: Quality | None = None,
    ) -> None:
        self._logs, self._rows, self._quality = logs, rows, quality
        self._pool = _core.ThreadPool(threads)
        names, numbers = np.unique(logs.held.rows, return_inverse=True)
        self._names: IndexArray = names.astype(np.uint64)
        self._numbers: Integers = numbers
        self._common: IndexArray = logs.train.common(min_count).astype(np.uint64)
        self._longest = logs.train.common_length(min_count)
        if not self._longest:
            raise ArgumentError(
                f"min_count: found {logs.train.people} users, or inferences, in the part of the "
                f"log that makes layouts, expected at least {min_count}: lower min_count"
            )
        self._near = _Neighbors(logs, min_count, self._pool)
        self._positions: dict[int, IndexArray] = {}
        self._hot: dict[int, tuple[IndexArray, Bools]] = {}

    @property
    def needs(self) -> Needs:
        """The facts of the logs that bound useful designs."""
        lengths = self._logs.train.lengths
        own = np.quantile(lengths[lengths > 0], (0.5, 0.75, 0.9, 0.95, 0.99, 1)).round()
        own = np.minimum(own, self._longest)  # the longest ones of a few users shape no layout
        return Needs(
            self._rows, tuple(own.astype(int).tolist()), len(self._common), self._near.exist
        )

    def retrieved(self, design: Design) -> Bools:
        """Marks the accesses of the held-out log that a client gets, cached ones included."""
        held = self._logs.held
        capacity = np.concatenate(
            [np.full(group.bins, group.keys, np.int32) for group in design.groups(self._rows)]
        )
        together = self._near.of(design.together)
        choices = _core.assign(
            held.offsets, self.candidates(design), capacity, together, self._pool
        )
        found = np.ones(len(self._logs.wanted.rows), np.bool_)
        found[self._logs.fetched] = choices != DROPPED
        return found

    def score(self, design: Design) -> Score:
        """Scores a design. Raises ArgumentError for a quality that is not finite."""
        found, wanted = self.retrieved(design), self._logs.wanted
        lost = np.zeros(len(wanted), np.bool_)
        lost[np.repeat(np.arange(len(wanted)), wanted.lengths)[~found]] = True
        share = float(found.mean())
        return Score(share, 1.0 - float(lost.mean()), self._rated(design, found, share))

    def _rated(self, design: Design, found: Bools, share: float) -> float:
        if self._quality is None:
            return share
        wanted = self._logs.wanted
        rated = self._quality(list(wanted), np.split(found, wanted.offsets[1:-1]))
        try:
            value = float(rated)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"quality: found {type(rated).__name__} for the layout {design.describe()}, "
                "expected a number"
            ) from error
        if not np.isfinite(value):
            raise ArgumentError(
                f"quality: found {value} for the layout {design.describe()}, expected a finite "
                "number"
            )
        return value

    def candidates(self, design: Design) -> BinArray:
        """Returns the bins that each access may use, the hot ones first: `Positions.candidates`."""
        columns = []
        if design.hot:
            places, is_hot = self._hot_places(design.hot)
            bins = (places % np.uint64(design.hot_bins)).astype(np.int32)
            columns.append(np.where(is_hot, bins, np.int32(-1)))
        for number in range(design.hashes):
            bins = (self._places(number + 1) % np.uint64(design.bins)).astype(np.int32)
            columns.append(bins + np.int32(design.hot_bins + number * design.bins))
        return np.stack(columns, axis=1)[self._numbers]

    def _places(self, number: int) -> IndexArray:
        """Returns the positions of the log's different rows by a hash."""
        if number not in self._positions:
            self._positions[number] = Permutation(self._rows, 0, number)(self._names)
        return self._positions[number]

    def _hot_places(self, count: int) -> tuple[IndexArray, Bools]:
        """Returns the positions of the log's different rows among hot ones, and which are hot."""
        if count not in self._hot:
            hot = np.sort(self._common[:count])
            ranks = np.minimum(np.searchsorted(hot, self._names), len(hot) - 1)
            places = Permutation(len(hot), 0, 0)(ranks.astype(np.uint64))
            self._hot[count] = places, hot[ranks] == self._names
        return self._hot[count]


class _Neighbors:
    """The accesses that arrive with others of their inference, for any number of neighbors."""

    def __init__(self, logs: Logs, min_count: int, pool: _core.ThreadPool) -> None:
        rows, neighbors = logs.train.pairs(MAX_NEIGHBORS, min_count)
        held = logs.held
        self.exist = len(rows) > 0
        self._found = np.zeros((len(held.rows), 0), np.int32)
        if not self.exist:
            return
        at = np.minimum(np.searchsorted(rows, held.rows), len(rows) - 1)
        lists = np.where(rows[at] == held.rows, at, -1)
        self._found = _core.find_together(held.offsets, held.rows, lists, neighbors, pool)

    def of(self, count: int) -> BinArray:
        """Returns, for each access, those that its `count` most frequent neighbors are."""
        return np.ascontiguousarray(self._found[:, :count])
