"""The chapter's integer program, one column at a time, with an open solver (HiGHS through SciPy).

    find x in {0, 1}^rounds with N^T x = 0 and C x = c           without noise (6.5)
    minimize |N^T x|_1 + weight |C x - c|_1                      with noise, inexact counts (6.7)

N spans the orthogonal complement of the span. The chapter squares both terms, which needs a
quadratic solver; absolute values serve the same purpose and stay linear. Without noise the
equations are x_rest = T x_pivots, for as many independent pivots as the span has dimensions, and
rounds that the counts determine are constants.

To test if a column is the only one, the same program gets the constraint that x differs from it,
and from others found so far.
HiGHS reports infeasibility within tolerances of 1e-6, and columns it finds are checked here. Thesis
chapter 6, sections 6.3.3 and 6.3.4 (with Gurobi in place of HiGHS).
"""

import importlib.util
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ArgumentError
from .._arrays import Columns, FloatArray, IntArray
from .._log.undetermined import free_rounds
from .._log.windows import Batch
from .span import Subspace

__all__ = ["Limits", "Others", "Program", "has_solver"]

_COUNT_WEIGHT = 0.5
"""Price of one participation too many or too few, against one unit of distance."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of integer programs.

    One column: `seconds`, or `nodes` of the search, which makes results reproducible. All columns:
    `deadline` (monotonic clock). `threads`: columns solved at once.
    """

    seconds: float | None = None
    nodes: int | None = None
    deadline: float = float("inf")
    threads: int = 1


def has_solver() -> bool:
    """Returns True if SciPy is installed. Does not import it, which takes a third of a second."""
    return importlib.util.find_spec("scipy") is not None


@dataclass(frozen=True, eq=False, slots=True)
class Others:
    """Columns other than the found one that are in the span with its counts.

    `columns`: uint8 (k, rounds). `complete`: True if there provably are no more.
    """

    columns: Columns
    complete: bool


@dataclass(frozen=True, eq=False)
class Program:
    """Integer programs for the users of a batch, in a span.

    `basis`: float64 (rounds, rank), of the span itself, orthonormal. `noisy`: the estimate of the
    span if there is noise. `soft`: counts may be violated, at a price.
    """

    basis: FloatArray
    noisy: Subspace | None
    batch: Batch
    empty: npt.NDArray[np.bool_]
    soft: bool = False

    def find(self, places: IntArray, limits: Limits) -> tuple[Columns, npt.NDArray[np.bool_]]:
        """Returns columns (k, rounds) for the users at `places`, and which were found."""
        self._prepare()
        with ThreadPoolExecutor(limits.threads) as pool:
            found = list(pool.map(lambda i: self._solve(int(i), limits, None)[0], places))
        columns = np.zeros((len(places), len(self.basis)), np.uint8)
        for k, column in enumerate(found):
            if column is not None:
                columns[k] = column
        return columns, np.array([column is not None for column in found], np.bool_)

    def others(self, places: IntArray, columns: Columns, limits: Limits, most: int) -> list[Others]:
        """Lists up to `most` other columns in the span with the counts of each of `columns`."""
        self._prepare()

        def one(i: int, column: npt.NDArray[np.uint8]) -> Others:
            known = column[None]
            while len(known) <= most:
                other, infeasible = self._solve(i, limits, known)
                if infeasible:
                    return Others(known[1:], complete=True)
                if other is None or (other == known).all(axis=1).any() or not self._in_span(other):
                    break
                known = np.concatenate((known, other[None]))
            return Others(known[1:], complete=False)

        with ThreadPoolExecutor(limits.threads) as pool:
            return list(pool.map(one, places.tolist(), columns))

    def _in_span(self, column: npt.NDArray[np.uint8]) -> bool:
        return bool(np.abs(self._equations @ column.astype(np.float64)).max(initial=0) < 1e-6)

    def _prepare(self) -> None:
        """Checks for SciPy and computes what all threads share."""
        if not has_solver():
            raise ArgumentError("method program needs SciPy: pip install 'nescio[audit]'")
        _ = (self._equations, self._free, self._window_rows)

    @cached_property
    def _free(self) -> npt.NDArray[np.bool_]:
        return free_rounds(self.batch, self.empty)

    @cached_property
    def _equations(self) -> FloatArray:
        """(rounds - rank, rounds): zero for columns in the span."""
        if self.noisy is not None:
            complete = np.linalg.qr(self.noisy.basis, mode="complete")[0]
            return np.asarray(complete[:, self.noisy.rank :].T * self.noisy.weights)
        from scipy.linalg import qr  # noqa: PLC0415 - an extra

        rank = self.basis.shape[1]
        order = qr(self.basis.T, pivoting=True, mode="r")[1]
        pivots, rest = order[:rank], order[rank:]
        rows = np.zeros((len(rest), len(self.basis)))
        rows[:, pivots] = np.linalg.solve(self.basis[pivots].T, self.basis[rest].T).T
        rows[np.arange(len(rest)), rest] = -1
        rows[np.abs(rows) < 1e-11] = 0
        return rows

    @cached_property
    def _window_rows(self) -> FloatArray:
        windows = self.batch.shared + self.batch.apart
        rows = np.zeros((len(windows), len(self.basis)))
        for row, (start, stop) in zip(rows, windows, strict=True):
            row[start:stop] = 1
        return rows

    def _solve(
        self, i: int, limits: Limits, unlike: Columns | None
    ) -> tuple[npt.NDArray[np.uint8] | None, bool]:
        """Returns a column of user i, not in `unlike` (k, rounds); True if provably none exists."""
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - an extra

        left = limits.deadline - time.monotonic()
        if left <= 0:
            return None, False
        rounds = len(self.basis)
        cost, constraints, upper = self._model(i, unlike)
        lower = np.zeros(len(cost))
        fixed = ~self._free[i]
        forced = self._forced(i)
        lower[:rounds][fixed] = upper[:rounds][fixed] = forced[fixed]
        options: dict[str, Any] = {"time_limit": min(left, limits.seconds or np.inf)}
        if limits.nodes is not None:
            options["node_limit"] = limits.nodes
        options = {key: value for key, value in options.items() if np.isfinite(value)}
        integrality = np.zeros(len(cost))
        integrality[:rounds] = 1
        answer = milp(
            cost,
            integrality=integrality,
            bounds=Bounds(lower, upper),
            constraints=[LinearConstraint(*each) for each in constraints],
            options=options,
        )
        if answer.x is None:
            return None, bool(answer.status == 2)
        return np.rint(answer.x[:rounds]).astype(np.uint8), False

    def _forced(self, i: int) -> npt.NDArray[np.float64]:
        """(rounds,): the value of rounds that the counts determine."""
        forced = np.zeros(len(self.basis))
        for j, (start, stop) in enumerate(self.batch.apart):
            if self.batch.lower[i, j] > 0:
                forced[start:stop] = 1
        forced[self.empty] = 0
        return forced

    def _model(
        self, i: int, unlike: Columns | None
    ) -> tuple[FloatArray, list[tuple[FloatArray, Any, Any]], FloatArray]:
        """Returns cost, constraints (matrix, lower, upper) and upper bounds of x and its slacks."""
        shared = len(self.batch.shared)
        lower = np.concatenate((self.batch.shared_counts[i], self.batch.lower[i]))
        upper = np.concatenate((self.batch.shared_counts[i], self.batch.upper[i]))
        hard = (self._window_rows, lower, upper)
        if self.noisy is None and not self.soft:
            blocks: list[tuple[FloatArray, Any, Any]] = [(self._equations, 0, 0), hard]
            extra, prices = 0, np.zeros(0)
        else:
            # |.| as a variable that is at least the term and its negative.
            terms = [(self._equations, 0.0, 1.0)]
            if self.soft:
                rows = self._window_rows[shared:]
                middle = (self.batch.lower[i] + self.batch.upper[i]) / 2
                terms.append((rows, middle, _COUNT_WEIGHT))
            extra = sum(len(rows) for rows, _, _ in terms)
            prices = np.concatenate([np.full(len(rows), price) for rows, _, price in terms])
            target = np.concatenate([np.broadcast_to(t, len(rows)) for rows, t, _ in terms])
            stacked, slack = np.concatenate([rows for rows, _, _ in terms]), np.eye(extra)
            blocks = [
                (np.hstack((stacked, -slack)), -np.inf, target),
                (np.hstack((stacked, slack)), target, np.inf),
                (np.hstack((hard[0], np.zeros((len(hard[0]), extra)))), hard[1], hard[2]),
            ]
        if unlike is not None:
            signs = np.hstack((1 - 2 * unlike.astype(np.float64), np.zeros((len(unlike), extra))))
            blocks.append((signs, 1 - unlike.sum(axis=1, dtype=np.int64), np.inf))
        blocks = [block for block in blocks if len(block[0])]
        rounds = len(self.basis)
        cost = np.concatenate((np.zeros(rounds), prices))
        return cost, blocks, np.concatenate((np.ones(rounds), np.full(extra, np.inf)))
