"""Search for participation columns, each with the counts of its own user."""

import os
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from ..._arrays import as_threads
from .._arrays import Columns, FloatArray, IntArray
from .._log.record import Log
from .._log.windows import Batch, agree, batches, log_choices
from .assignment import assigned, outside_of, suspects
from .local_search import LocalSearch
from .milp import Limits, Others, Program
from .options import Options
from .rrr import Found, Search, reflect
from .sets import AffineSet, BinarySet
from .span import Subspace
from .without_counts import fill

__all__ = ["Columnwise", "Exclude", "nearest_space"]

Exclude = Callable[[FloatArray, Batch, IntArray, Columns], list[Others]]
"""`Columnwise.exclude`: integer programs for users at places of a batch."""

_AGAIN, _IDLE = 12, 3
"""Maximum restarts; maximum consecutive restarts without progress."""
_TWINS = 6
"""Maximum attempts to find different columns for users who got the same one."""
_FIRST = 400
"""Iterations in noise before local search and the first measurement of the noise."""
_AT_ONCE = 1  # a second column found outside may depend on the first
_NODES = 100
_WORK = 2_000_000
"""Entries of integer programs (rounds times rank) solved in method "auto", all columns together."""

_TRIED = 48
"""Users on whom estimates of the span are compared."""

_CLEARLY = 0.95

_TYPICAL = 1.5
"""Columns within this multiple of the expected noise distance are accepted without a restart."""


class Columnwise:
    """The columns found so far, uint8 (users, rounds), and the methods that find more."""

    def __init__(
        self,
        log: Log,
        subspace: Subspace,
        active: IntArray,
        options: Options,
        deadline: float,
    ) -> None:
        self.columns: Columns = np.zeros((log.users, log.rounds), np.uint8)
        self.method = "reflect"
        self._log, self.subspace = log, subspace
        self._basis = subspace.plain_basis()
        self._users = active
        self._rng = np.random.default_rng(options.seed)
        self._deadline = deadline
        nodes = _NODES if options.column_limit is None else None
        threads = as_threads(options.threads) or (os.cpu_count() or 1)
        self._limits = Limits(options.column_limit, nodes, deadline, threads)
        self._side_columns = _WORK // (log.rounds * subspace.rank)
        counts = self._counts
        self._batches = list(batches(log.windows, counts, log.count_error, active))
        self._choices = np.zeros(log.users)
        for batch in self._batches:
            self._choices[batch.users] = log_choices(batch, log.empty)

    def reflect(self, again: int = _AGAIN) -> None:
        """Runs relaxed-reflect-reflect for all users; in noise with up to `again` restarts."""
        noisy = not self.subspace.exact
        search = Search(deadline=self._deadline)
        if noisy:
            search = Search(iterations=_FIRST, starts=1, deadline=self._deadline)
        for batch in self._batches:
            self._search(batch, search, None)
            self._separate_twins(batch)
        if noisy:
            self._refine(again)
        self._make_independent()

    def lattice(self) -> None:
        """Runs lattice reduction for users without a column, if there is no noise."""
        if fill(self._log, self.subspace, self._users, self.columns, self._deadline):
            self.method = "reflect and lattice"

    def assign(self) -> None:
        """Assigns columns to users by the best match of all counts, where counts leave a choice."""
        counts = self._counts
        if self._log.count_error == 0 and (counts >= 0).all():
            return
        users = np.concatenate([batch.users for batch in self._batches])
        users.sort()
        self.columns[users] = self.columns[users[assigned(self._log, users, self.columns[users])]]

    def program(self, *, every: bool) -> None:
        """Runs integer programs for `every` user, or only where they are cheap."""
        for batch in self._batches:
            left = np.flatnonzero(~self._fits(batch))
            if not every:  # with noise a program takes minutes each
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
        """Decides if other columns in the span of `basis` have the counts of these columns."""
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

    def _search(
        self, batch: Batch, search: Search, taken: Columns | None, outside: bool = False
    ) -> None:
        found = self._run(batch, search, taken, outside)
        keep = found.fits if taken is not None else np.ones(len(batch.users), np.bool_)
        self.columns[batch.users[keep]] = found.columns[keep]

    def _run(
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

    def _refine(self, again: int) -> None:
        """Runs local search, measures the noise, and restarts for distant columns."""
        improvers = [LocalSearch(self.subspace, batch, self._log.empty) for batch in self._batches]
        for batch, improve in zip(self._batches, improvers, strict=True):
            self._take_nearer(batch.users, improve(self.columns[batch.users]))
        search, idle = Search(starts=1, deadline=self._deadline), 0
        while again and idle < _IDLE and time.monotonic() < self._deadline:
            before = self._number_that_fit()
            for batch in self._batches:
                part = _part(batch, np.flatnonzero(~self._fits(batch)))
                if not len(part.users):
                    continue
                found = self._run(part, search, None)
                improve = LocalSearch(self.subspace, part, self._log.empty)
                self._take_nearer(part.users, improve(found.columns))
            now = self._number_that_fit()
            idle = 0 if now > before else idle + 1
            again = 0 if now == len(self._users) else again - 1

    def _number_that_fit(self) -> int:
        """Measures the noise again and counts the users whose column fits."""
        self.subspace = self.subspace.calibrated(self.columns.astype(np.float64))
        return sum(int(self._fits(batch).sum()) for batch in self._batches)

    def _take_nearer(self, users: IntArray, columns: Columns) -> None:
        """Accepts columns (k, rounds) for `users` that have their counts and are nearer."""
        counts = self._counts[users]
        good = agree(columns, self._log.windows, counts, self._log.count_error)
        good &= self._nearer(columns, self.columns[users])
        self.columns[users[good]] = columns[good]

    def _separate_twins(self, batch: Batch) -> None:
        """Searches again for users whose column another user also has."""
        for _ in range(_TWINS):
            _, first = np.unique(self.columns[batch.users], axis=0, return_index=True)
            again = np.setdiff1d(np.arange(len(batch.users)), first)
            if not len(again) or time.monotonic() > self._deadline:
                return
            search = Search(iterations=300, starts=1, deadline=self._deadline)
            self._search(_part(batch, again), search, self.columns[batch.users[first]])

    def _make_independent(self) -> None:
        """Searches again for columns that depend on others, outside the span of those."""
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
            again = _part(batch, np.searchsorted(batch.users, doubtful[:_AT_ONCE]))
            search = Search(iterations=600, starts=1, deadline=self._deadline)
            self._search(again, search, self.columns[users], outside=True)

    def _acceptor(
        self, batch: Batch, taken: Columns | None, outside: bool = False
    ) -> Callable[[Columns, IntArray], npt.NDArray[np.bool_]]:
        """Returns a test for columns that are near, have the counts and are not `taken`."""
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
        """(k,): True for `columns` (k, rounds) near enough and with the counts of `users`."""
        points, log = columns.astype(np.float64), self._log
        limits = self.subspace.limits(points, self._choices[users])
        if self.subspace.colored:  # a better column may be close to one below chance
            limits = np.minimum(limits, _TYPICAL * self.subspace.expected(points))
        near = self.subspace.distances(points) <= limits
        return near & agree(columns, log.windows, self._counts[users], log.count_error)

    def _nearer(self, new: Columns, old: Columns) -> npt.NDArray[np.bool_]:
        before = np.where(old.any(axis=1), self.subspace.distances(old.astype(np.float64)), np.inf)
        return np.asarray(self.subspace.distances(new.astype(np.float64)) < before)


def nearest_space(
    log: Log, spaces: Iterator[Subspace], active: IntArray, seed: int, deadline: float
) -> Subspace:
    """Returns the estimate of the span that is nearest to the columns of some users.

    Distances are per dimension outside the span. The first estimate is kept unless another is
    clearly nearer. Others are made only if the first one has noise that is not white.
    """
    chosen = next(spaces)
    if chosen.exact or log.counts is None:
        return chosen
    some = np.sort(np.random.default_rng(seed).permutation(active)[:_TRIED])

    def distance(space: Subspace) -> tuple[float, bool]:
        search = Columnwise(log, space, some, Options(seed=seed, threads=1), deadline)
        search.reflect(again=0)
        points = search.columns[some].astype(np.float64)
        off = float(np.median(space.distances(points)) / np.sqrt(max(space.free, 1)))
        return off, space.calibrated(points).colored

    nearest, colored = distance(chosen)
    nearest *= _CLEARLY
    for space in spaces if colored else ():
        off, _ = distance(space)
        if off < nearest:
            chosen, nearest = space, off
    return chosen


def _part(batch: Batch, places: IntArray) -> Batch:
    """Returns a batch of the users at `places`."""
    return Batch(
        batch.users[places],
        batch.shared,
        batch.shared_counts[places],
        batch.apart,
        batch.lower[places],
        batch.upper[places],
    )
