"""Search for participation columns, each with the counts of its own user."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import numpy as np

from ..._arrays import as_threads
from .._arrays import BoolArray, Columns, FloatArray, IntArray
from .._log.record import Log
from .._log.windows import Batch, batches, log_choices
from .assignment import assigned, suspects
from .fit import Fit, Taken
from .local_search import LocalSearch
from .milp import Limits, Others, Program, has_solver
from .options import Options
from .rrr import Found, Search, reflect
from .span import Subspace
from .without_counts import fill

__all__ = ["Columnwise", "Exclude"]

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
        self._users = active
        self._rng = np.random.default_rng(options.seed)
        self._deadline = deadline
        nodes = _NODES if options.column_limit is None else None
        threads = as_threads(options.threads) or (os.cpu_count() or 1)
        self._limits = Limits(options.column_limit, nodes, deadline, threads)
        self._side_columns = _WORK // (log.rounds * subspace.basis.shape[1])
        assert log.counts is not None
        self._batches = list(batches(log.windows, log.counts, log.count_error, active))
        choices = np.zeros(log.users)
        for batch in self._batches:
            choices[batch.users] = log_choices(batch, log.empty)
        self._fit = Fit(log.windows, log.counts, log.count_error, choices, subspace)

    def run(self, method: str, step: Callable[[str], AbstractContextManager[None]]) -> str:
        """Searches for the columns of all users; returns the methods that found them."""
        if method != "program":
            with step("reflect"):
                self.reflect()
        if method == "auto":
            with step("lattice"):
                if fill(self._log, self.subspace, self._users, self.columns, self._deadline):
                    self.method = "reflect and lattice"
        if method == "program" or (method == "auto" and has_solver()):
            with step("program"):
                self.program(every=method == "program")
        return self.method

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

    def assign(self) -> None:
        """Assigns columns to users by the best match of all counts, where counts leave a choice."""
        counts = self._fit.counts
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
            program = self._program(self.subspace.plain, batch, noisy=not self.subspace.exact)
            limits = self._limits
            if every:
                limits = Limits(limits.seconds, None, limits.deadline, limits.threads)
            columns, found = program.find(left, limits)
            better = found & self._fit.nearer(columns, self.columns[batch.users[left]])
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
        known = frozenset() if taken is None else frozenset(one.tobytes() for one in taken)
        free = Taken(known, taken if outside else None)
        accept = partial(self._fit.accept, batch.users, free)
        return reflect(self.subspace, batch, self._log.empty, accept, rng=self._rng, search=search)

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
        self._fit = replace(self._fit, subspace=self.subspace)
        return sum(int(self._fits(batch).sum()) for batch in self._batches)

    def _take_nearer(self, users: IntArray, columns: Columns) -> None:
        """Accepts columns (k, rounds) for `users` that have their counts and are nearer."""
        good = self._fit.has_counts(columns, users)
        good &= self._fit.nearer(columns, self.columns[users])
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
        if self.subspace.basis.shape[1] < sum(len(batch.users) for batch in self._batches):
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

    def _fits(self, batch: Batch) -> BoolArray:
        return self._fit.fits(self.columns[batch.users], batch.users)


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
