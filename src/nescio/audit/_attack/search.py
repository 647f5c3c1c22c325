"""Columns for users, each looked for with the user's own counts."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from .._arrays import Columns, FloatArray, IntArray
from .._log.record import Log
from .._log.windows import Batch, agree, batches, log_choices
from .assignment import assigned, outside_of, suspects
from .local_search import LocalSearch
from .milp import Limits, Others, Program
from .rrr import Found, Search, reflect
from .sets import AffineSet, BinarySet
from .span import Subspace
from .without_counts import fill

__all__ = ["Columnwise", "nearest_space"]

_AGAIN, _IDLE = 12, 3
"""How often is looked again, and how often in vain."""
_TWINS = 6
"""How often users with one column between them are told apart."""
_FIRST = 400
"""Iterations in noise before columns are polished, and the noise is measured on them."""
_TOGETHER = 1  # a second column found outside may depend on the first
_NODES = 100
_WORK = 2_000_000
"""Entries of programs (rounds times rank) that are solved on the side, all columns together."""

_TRIED = 48
"""Users on whom spaces are compared."""

_CLEARLY = 0.95

_TYPICAL = 1.5
"""How much farther off than noise puts most columns one may be that is not looked for again."""


class Columnwise:
    """The columns found so far, uint8 (users, rounds), and the ways to find more."""

    def __init__(
        self,
        log: Log,
        subspace: Subspace,
        active: IntArray,
        *,
        seed: int,
        deadline: float,
        column_limit: float | None,
        threads: int,
    ) -> None:
        self.columns: Columns = np.zeros((log.users, log.rounds), np.uint8)
        self.method = "reflect"
        self._log, self.subspace = log, subspace
        self._basis = subspace.plain_basis()
        self._users = active
        self._rng = np.random.default_rng(seed)
        self._deadline = deadline
        nodes = _NODES if column_limit is None else None
        self._limits = Limits(column_limit, nodes, deadline, threads)
        self._side_columns = _WORK // (log.rounds * subspace.rank)
        counts = self._counts
        self._batches = list(batches(log.windows, counts, log.count_error, active))
        self._choices = np.zeros(log.users)
        for batch in self._batches:
            self._choices[batch.users] = log_choices(batch, log.empty)

    def reflect(self, again: int = _AGAIN) -> None:
        """Relaxed-reflect-reflect for everybody; in noise, so often `again` for those far off."""
        noisy = not self.subspace.exact
        search = Search(deadline=self._deadline)
        if noisy:
            search = Search(iterations=_FIRST, starts=1, deadline=self._deadline)
        for batch in self._batches:
            self._reflect(batch, search, None)
            self._separate_twins(batch)
        if noisy:
            self._settle(again)
        self._make_independent()

    def lattice(self) -> None:
        """Lattice reduction for those who are left, without noise."""
        if fill(self._log, self.subspace, self._users, self.columns, self._deadline):
            self.method = "reflect and lattice"

    def assign(self) -> None:
        """Where counts leave open whose a column is, the assignment that suits all counts best."""
        counts = self._counts
        if self._log.count_error == 0 and (counts >= 0).all():
            return
        users = np.concatenate([batch.users for batch in self._batches])
        users.sort()
        self.columns[users] = self.columns[users[assigned(self._log, users, self.columns[users])]]

    def program(self, *, every: bool) -> None:
        """Integer programs: for `every` user, or for those who are left, as far as it is cheap."""
        for batch in self._batches:
            left = np.flatnonzero(~self._fits(batch))
            if not every:  # with noise a program takes minutes
                left = left[: self._side_columns if self.subspace.exact else 0]
            if not len(left) or time.monotonic() > self._deadline:
                continue
            program = self._program(self._basis, batch, noisy=not self.subspace.exact)
            limits = self._limits
            if every:
                limits = Limits(limits.seconds, None, limits.deadline, limits.threads)
            columns, found = program.find(left, limits)
            better = found & self._nearer(columns, self.columns[batch.users[left]])
            self.columns[batch.users[left[better]]] = columns[better]
            self.method = "program" if every else f"{self.method} and program"

    def exclude(
        self, basis: FloatArray, batch: Batch, places: IntArray, columns: Columns
    ) -> list[Others]:
        """Whether other columns in the span of `basis` have the counts of these (`judge`)."""
        first = places[: self._side_columns]
        program = self._program(basis, batch, noisy=False)
        verdicts = program.others(first, columns[: len(first)], self._limits) if len(first) else []
        return verdicts + ["open"] * (len(places) - len(first))

    @property
    def _counts(self) -> IntArray:
        assert self._log.counts is not None
        return self._log.counts

    def _program(self, basis: FloatArray, batch: Batch, *, noisy: bool) -> Program:
        soft = self._log.count_error > 0 and noisy
        return Program(basis, self.subspace if noisy else None, batch, self._log.empty, soft)

    def _reflect(
        self, batch: Batch, search: Search, taken: Columns | None, outside: bool = False
    ) -> None:
        found = self._met(batch, search, taken, outside)
        keep = found.fits if taken is not None else np.ones(len(batch.users), np.bool_)
        self.columns[batch.users[keep]] = found.columns[keep]

    def _met(
        self, batch: Batch, search: Search, taken: Columns | None, outside: bool = False
    ) -> Found:
        return reflect(
            self.subspace,
            AffineSet.of(self._basis, batch),
            BinarySet(batch, self._log.empty),
            self._acceptor(batch, taken, outside),
            rng=self._rng,
            search=search,
        )

    def _settle(self, again: int) -> None:
        """Polishes columns, measures the noise on them, and looks again where they are too far."""
        polishers = [LocalSearch(self.subspace, batch, self._log.empty) for batch in self._batches]
        for batch, polish in zip(self._batches, polishers, strict=True):
            self._take_nearer(batch.users, polish(self.columns[batch.users]))
        search, idle = Search(starts=1, deadline=self._deadline), 0
        while again and idle < _IDLE and time.monotonic() < self._deadline:
            before = self._number_that_fit()
            for batch in self._batches:
                part = _part(batch, np.flatnonzero(~self._fits(batch)))
                if not len(part.users):
                    continue
                found = self._met(part, search, None)
                polish = LocalSearch(self.subspace, part, self._log.empty)
                self._take_nearer(part.users, polish(found.columns))
            now = self._number_that_fit()
            idle = 0 if now > before else idle + 1
            again = 0 if now == len(self._users) else again - 1

    def _number_that_fit(self) -> int:
        """With the noise measured anew."""
        self.subspace = self.subspace.calibrated(self.columns.astype(np.float64))
        return sum(int(self._fits(batch).sum()) for batch in self._batches)

    def _take_nearer(self, users: IntArray, columns: Columns) -> None:
        """Takes columns (k, rounds) for `users` where they have their counts and are nearer."""
        counts = self._counts[users]
        good = agree(columns, self._log.windows, counts, self._log.count_error)
        good &= self._nearer(columns, self.columns[users])
        self.columns[users[good]] = columns[good]

    def _separate_twins(self, batch: Batch) -> None:
        """Users with equal counts may have got one column between them: looks for the others."""
        for _ in range(_TWINS):
            _, first = np.unique(self.columns[batch.users], axis=0, return_index=True)
            again = np.setdiff1d(np.arange(len(batch.users)), first)
            if not len(again) or time.monotonic() > self._deadline:
                return
            search = Search(iterations=300, starts=1, deadline=self._deadline)
            self._reflect(_part(batch, again), search, self.columns[batch.users[first]])

    def _make_independent(self) -> None:
        """Looks again for columns that depend on others, outside of their span."""
        if self.subspace.rank < sum(len(batch.users) for batch in self._batches):
            return
        for batch in self._batches * _TWINS:
            users = np.flatnonzero(self.columns.any(axis=1))
            dependent = users[suspects(self.columns[users])]
            doubtful = np.intersect1d(dependent, batch.users)
            if not len(dependent) or time.monotonic() > self._deadline:
                return
            if not len(doubtful):
                continue
            again = _part(batch, np.searchsorted(batch.users, doubtful[:_TOGETHER]))
            search = Search(iterations=600, starts=1, deadline=self._deadline)
            self._reflect(again, search, self.columns[users], outside=True)

    def _acceptor(
        self, batch: Batch, taken: Columns | None, outside: bool = False
    ) -> Callable[[Columns, IntArray], npt.NDArray[np.bool_]]:
        """Which columns are near, have their users' counts and are not `taken`."""
        used = set() if taken is None else {column.tobytes() for column in taken}

        def accept(columns: Columns, users: IntArray) -> npt.NDArray[np.bool_]:
            good = self._fit(columns, batch.users[users])
            if outside and taken is not None:
                return good & outside_of(taken, columns)
            return good & np.array([column.tobytes() not in used for column in columns], np.bool_)

        return accept

    def _fits(self, batch: Batch) -> npt.NDArray[np.bool_]:
        return self._fit(self.columns[batch.users], batch.users)

    def _fit(self, columns: Columns, users: IntArray) -> npt.NDArray[np.bool_]:
        """Which of `columns` (k, rounds) are near enough and have the counts of `users`."""
        points, log = columns.astype(np.float64), self._log
        limits = self.subspace.limits(points, self._choices[users])
        if self.subspace.coloured:  # a column below chance may still have a better one beside it
            limits = np.minimum(limits, _TYPICAL * self.subspace.expected(points))
        near = self.subspace.distances(points) <= limits
        return near & agree(columns, log.windows, self._counts[users], log.count_error)

    def _nearer(self, new: Columns, old: Columns) -> npt.NDArray[np.bool_]:
        before = np.where(old.any(axis=1), self.subspace.distances(old.astype(np.float64)), np.inf)
        return np.asarray(self.subspace.distances(new.astype(np.float64)) < before)


def nearest_space(
    log: Log, spaces: Iterator[Subspace], active: IntArray, seed: int, deadline: float
) -> Subspace:
    """Of several estimates of the span the one that some users' columns are nearest to.

    For each dimension outside of it; the first, unless another one is clearly nearer. No more are
    made than the first, if that is exact, or if the noise is as it is modelled.
    """
    chosen = next(spaces)
    if chosen.exact or log.counts is None:
        return chosen
    some = np.sort(np.random.default_rng(seed).permutation(active)[:_TRIED])

    def distance(space: Subspace) -> tuple[float, bool]:
        search = Columnwise(
            log, space, some, seed=seed, deadline=deadline, column_limit=None, threads=1
        )
        search.reflect(again=0)
        points = search.columns[some].astype(np.float64)
        away = float(np.median(space.distances(points)) / np.sqrt(max(space.free, 1)))
        return away, space.calibrated(points).coloured

    least, coloured = distance(chosen)
    least *= _CLEARLY
    for space in spaces if coloured else ():
        away, _ = distance(space)
        if away < least:
            chosen, least = space, away
    return chosen


def _part(batch: Batch, places: IntArray) -> Batch:
    """Some users of a batch."""
    return Batch(
        batch.users[places],
        batch.shared,
        batch.shared_counts[places],
        batch.apart,
        batch.lower[places],
        batch.upper[places],
    )
