"""Columns without counts from few rounds: lattice reduction.

Columns of P are short integer vectors in the span of the sums. Two steps:

1. The integer vectors of the span. With u rounds that span it as pivots, x_rest = T x_pivots, and a
   few equations 2^s (T_i x_pivots - x_i) = small, s as large as the precision of T allows, leave
   only vectors x_pivots whose other rounds are also integers. This lattice has u and a few
   dimensions, for any number of rounds. With noise no integer vector is in the span; there the
   lattice consists of all integer vectors, and distance from the span makes them long.
2. The shortest of them (`block_reduction.py`), measured around their mean, so that participation of
   one half is as easy as one tenth. These are the columns and a few of their sums and differences,
   among which `basis.py` chooses.

The hidden-subset-sum problem: Nguyen and Stern (CRYPTO 1999), Coron and Gini (CRYPTO 2020).
"""

import time

import numpy as np

from .._arrays import Columns, FloatArray, IntArray
from .._log.record import Log
from .basis import binary, binary_pairs, select_basis
from .block_reduction import BLOCKS, Lattice
from .flint import Reducer, reducer
from .ica import lightest, pull
from .span import Subspace

__all__ = ["MAX_USERS", "MAX_USERS_NOISY", "lattice_columns"]


MAX_USERS = 160
"""With more users, block reduction in NumPy finds nothing within minutes."""

MAX_USERS_NOISY = 64
"""Limit of method "auto" with noise: the lattice has one dimension per round and takes minutes."""

_MAX_ROUNDS = 256
_CENTERED = 0.98
_STRESS = 2.0

_BITS = 3
"""Bits of equations for each user, at a time."""

_MAX_SCALE, _LARGEST = 38, 62
_LEAST_SCALE = 6
_PASSES = 8
_WHOLE = 0.02
_SMALL = 64
_WORK = 1 << 24
_LONGER = 2.5


def lattice_columns(
    log: Log, subspace: Subspace, users: int, deadline: float = float("inf")
) -> Columns:
    """uint8 (k, rounds), k at most `users`: independent binary columns in the span.

    Returns what was found before the `deadline` (monotonic clock). Raises ModuleNotFoundError
    without python-flint.
    """
    with reducer(deadline) as lll:
        try:
            rows = _integers(subspace, lll) if subspace.exact else None
        except TimeoutError:
            return np.zeros((0, log.rounds), np.uint8)
        if rows is None:
            return _with_noise(log, subspace, users, lll)
        lattice = Lattice(rows, _centered(rows), lll)
        lattice.reduce(BLOCKS, lambda rows: len(binary(rows)) >= len(rows))
    return _chosen(log, lattice, users, deadline)


def _chosen(log: Log, lattice: Lattice, users: int, deadline: float) -> Columns:
    """Selects columns among the short vectors of a reduced lattice of integer vectors."""
    rows = lattice.rows
    pool = binary_pairs(rows)
    if (len(pool) != users or users <= _SMALL) and time.monotonic() < deadline:
        longest = _LONGER * float(lattice.squares.max())
        short = binary(lattice.short(_WORK // len(rows) ** 2, longest))
        pool = np.unique(np.concatenate((pool, short)), axis=0)
    return select_basis(log, lightest(pool, users), pool, deadline)


def _integers(subspace: Subspace, lll: Reducer) -> IntArray | None:
    """int64 (rank, rounds): a basis of the integer vectors in the span; None if that fails.

    Raises TimeoutError at the deadline.
    """
    basis = subspace.basis
    rounds, rank = basis.shape
    pivots = _pivots(basis)
    rest = np.setdiff1d(np.arange(rounds), pivots)
    table = np.linalg.solve(basis[pivots].T, basis[rest].T).T
    error = float(np.sqrt(np.linalg.eigvalsh(subspace.spread)[-1] * rounds))
    error *= 1 + float(np.linalg.norm(table, 2))
    scale = min(_MAX_SCALE, int(-np.log2(max(error, 1e-300))) - 1)
    for lower in (scale, scale - 4, scale - 8):
        if lower < _LEAST_SCALE:
            break
        inside = _inside(table, lower, lll)
        if inside is not None:
            rows = np.zeros((rank, rounds), np.int64)
            rows[:, pivots], rows[:, rest] = inside, np.rint(inside @ table.T)
            return rows
    return None


def _pivots(basis: FloatArray) -> IntArray:
    """(rank,): rounds whose rows of the basis are independent, the largest remainder first."""
    left = basis.copy()
    chosen = []
    for _ in range(basis.shape[1]):
        best = int(np.argmax(np.einsum("ij,ij->i", left, left)))
        direction = left[best] / np.linalg.norm(left[best])
        left -= (left @ direction)[:, None] * direction
        left[best] = 0
        chosen.append(best)
    return np.array(chosen)


def _inside(table: FloatArray, scale: int, lll: Reducer) -> IntArray | None:
    """(rank, rank): short x_pivots for which `table` (rest, rank) gives integers; None if none.

    A few equations at a time, those with the largest errors, each multiplied by 2^scale.
    """
    rank = table.shape[1]
    number = -(-_BITS * rank // scale)
    inside = np.eye(rank, dtype=np.int64)
    for _ in range(_PASSES):
        others = inside @ table.T
        if not np.abs(others).max(initial=0) < 2.0 ** (_LARGEST - scale):  # no convergence
            return None
        off = np.abs(others - np.rint(others)).max(axis=0)
        if off.max() < _WHOLE:
            return inside
        worst = np.argsort(-off, kind="stable")[:number]
        lattice = np.zeros((rank + len(worst), rank + len(worst)), np.int64)
        lattice[:rank, :rank] = inside
        lattice[:rank, rank:] = np.rint(others[:, worst] * 2.0**scale)
        lattice[rank:, rank:] = np.eye(len(worst), dtype=np.int64) << scale
        inside = lll.reduced(lattice)[:rank, :rank]
    return None


def _centered(rows: IntArray) -> FloatArray:
    values = rows.astype(np.float64)
    return np.asarray(values - _CENTERED * values.mean(axis=1, keepdims=True))


def _with_noise(log: Log, subspace: Subspace, users: int, lll: Reducer) -> Columns:
    """Searches among all integer vectors of some rounds for those near the span.

    A distance of e from the span costs as much as a length of s e. The stress s is such that the
    noise makes columns only a little longer.
    """
    basis = subspace.plain
    rounds = _some_rounds(basis)
    angles = float(np.trace(subspace.spread)) * log.rounds / max(subspace.free, 1) / subspace.rank
    stress = _STRESS / np.sqrt(max(angles, 1e-20))
    weights = subspace.weights[rounds]
    inside = np.linalg.qr(subspace.basis[rounds])[0]
    outside = np.diag(weights) - (weights[:, None] * inside) @ inside.T
    every = np.eye(len(rounds), dtype=np.int64)
    lattice = Lattice(every, np.hstack((_centered(every), stress * outside)), lll)
    widen = np.linalg.pinv(basis[rounds]).T @ basis.T

    def near(rows: IntArray) -> Columns:
        whole = (binary(rows) @ widen > 0.5).astype(np.uint8)
        return pull(whole, basis, subspace, log.empty)

    lattice.reduce(BLOCKS, lambda rows: len(lightest(near(rows), users)) >= users)
    pool = near(lattice.rows)
    return select_basis(log, lightest(pool, users), pool, lll.deadline)


def _some_rounds(basis: FloatArray) -> IntArray:
    """Returns rounds that span the basis, and others, in order."""
    pivots = _pivots(basis)
    rest = np.setdiff1d(np.arange(len(basis)), pivots)
    return np.sort(np.concatenate((pivots, rest[: max(_MAX_ROUNDS - len(pivots), 0)])))
