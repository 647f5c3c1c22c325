"""Columns without any counts from few rounds: lattice reduction.

Columns of P are integer vectors in the span of the sums, and short ones. Two steps:

1. The integer vectors of the span. With u rounds that span it as pivots, x_rest = T x_pivots, and a
   few equations K (T_i x_pivots - x_i) = small, K as large as the precision of T allows, leave only
   vectors x_pivots whose other rounds are integers, too: a lattice of u and a few dimensions,
   however many rounds there are. With noise no vector is in the span; there the lattice is that of
   all integer vectors, and being off the span makes them long.
2. The shortest of them (`reduction`), measured around their mean, which is the same for all
   participations. In the hidden-subset-sum problem (Nguyen and Stern, CRYPTO 1999; Coron and Gini,
   CRYPTO 2020) these are the columns and a few of their sums and differences.

LLL is FLINT's, the extra `audit-lattice`.
"""

import time

import numpy as np
import numpy.typing as npt

from .blind import lightest, pull
from .problem import FloatArray, Log
from .reduction import BLOCKS, Lattice, lll
from .settle import binary, binary_pairs, settle
from .subspace import Subspace
from .windows import IntArray

__all__ = ["MOST_USERS", "lattice_columns"]

Columns = npt.NDArray[np.uint8]

MOST_USERS = 160
"""Beyond, a reduction takes more than minutes."""

_MOST_ROUNDS = 320
"""With noise: dimensions of the lattice."""

_CENTRED = 0.98
_BITS = 3
_MOST_SCALE = 38
_LEAST_SCALE = 6
_WHOLE = 0.02
_SMALL = 64
_WORK = 1 << 24
_MORE = 2.5


def lattice_columns(
    log: Log, subspace: Subspace, users: int, deadline: float = float("inf")
) -> Columns:
    """uint8 (k, rounds), k at most `users`: independent columns in the span, lightest first.

    `deadline` (monotonic) is looked at between blocks; a call of LLL, seconds for MOST_USERS, is
    not interrupted.
    """
    basis = subspace.plain_basis()
    rows = _integers(basis, subspace) if subspace.exact else None
    if rows is None:
        return _noisy(log, subspace, users, deadline)
    lattice = Lattice(rows, _centred(rows))
    lattice.reduce(BLOCKS, lambda rows: len(binary(rows)) >= len(rows), deadline)
    pool = binary_pairs(lattice.rows)
    found = lightest(pool, users)
    if (len(pool) != users or users <= _SMALL) and time.monotonic() < deadline:
        longest = _MORE * float((lattice.image**2).sum(axis=1).max())
        pool = np.concatenate((pool, binary(lattice.short(_WORK // users**2, longest))))
        found = lightest(pool, users)
    return settle(log, found, pool)


def _integers(basis: FloatArray, subspace: Subspace) -> IntArray | None:
    """int64 (rank, rounds): a basis of the integer vectors in the span; None if that fails."""
    rounds, rank = basis.shape
    pivots = _pivots(basis)
    rest = np.setdiff1d(np.arange(rounds), pivots)
    table = np.linalg.solve(basis[pivots].T, basis[rest].T).T
    error = float(np.sqrt(np.linalg.eigvalsh(subspace.spread)[-1] * rounds))
    error *= 1 + float(np.linalg.norm(table, 2))
    scale = min(_MOST_SCALE, int(-np.log2(max(error, 1e-300))) - 1)
    for bits, lower in ((_BITS, 0), (2 * _BITS, 0), (2 * _BITS, 4), (3 * _BITS, 8)):
        if scale - lower < _LEAST_SCALE:
            return None
        inside = _inside(table, scale - lower, bits)
        others = inside @ table.T
        if np.abs(others - np.rint(others)).max(initial=0) < _WHOLE:
            rows = np.zeros((rank, rounds), np.int64)
            rows[:, pivots], rows[:, rest] = inside, np.rint(others)
            return rows
    return None


def _pivots(basis: FloatArray) -> IntArray:
    """(rank,): rounds whose rows of the basis are independent, the largest left each time."""
    left = basis.copy()
    chosen = []
    for _ in range(basis.shape[1]):
        best = int(np.argmax(np.einsum("ij,ij->i", left, left)))
        direction = left[best] / np.linalg.norm(left[best])
        left -= (left @ direction)[:, None] * direction
        left[best] = 0
        chosen.append(best)
    return np.array(chosen)


def _inside(table: FloatArray, scale: int, bits: int) -> IntArray:
    """(rank, rank): short x_pivots for which the first rows of `table` give nearly integers.

    Equations of `bits` bits for each pivot altogether, each scaled by 2^scale.
    """
    rank = table.shape[1]
    number = min(len(table), -(-bits * rank // scale))
    lattice = np.zeros((rank + number, rank + number), np.int64)
    lattice[:rank, :rank] = np.eye(rank, dtype=np.int64)
    lattice[:rank, rank:] = np.rint(table[:number].T * 2.0**scale)
    lattice[rank:, rank:] = np.eye(number, dtype=np.int64) << scale
    return lll(lattice)[:rank, :rank]


def _centred(rows: IntArray) -> FloatArray:
    values = rows.astype(np.float64)
    return values - _CENTRED * values.mean(axis=1, keepdims=True)


def _noisy(log: Log, subspace: Subspace, users: int, deadline: float) -> Columns:
    """With noise: among all integer vectors of some rounds, those near the span are short.

    Being off the span by e costs as much as a vector of length s e; with s^2 e^2 about the squared
    length of a column, columns stand out most from other vectors of this lattice.
    """
    basis = subspace.plain_basis()
    rounds = _some_rounds(basis)
    weights = subspace.weights[rounds]
    inside = np.linalg.qr(subspace.basis[rounds])[0]
    outside = np.diag(weights) - (weights[:, None] * inside) @ inside.T
    share = 1 - subspace.rank / len(rounds)
    stress = share / (1 - share) * subspace.rank / max(float(np.trace(subspace.spread)), 1e-20)
    every = np.eye(len(rounds), dtype=np.int64)
    lattice = Lattice(every, np.hstack((_centred(every), SCALE * np.sqrt(stress) * outside)))
    widen = np.linalg.pinv(basis[rounds]).T @ basis.T

    def near(rows: IntArray) -> Columns:
        whole = (binary(rows) @ widen > 0.5).astype(np.uint8)
        return lightest(pull(whole, basis, subspace, log.empty), users)

    lattice.reduce(BLOCKS, lambda rows: len(near(rows)) >= users, deadline)
    return settle(log, *[lightest(near(lattice.rows), users)]*2)

SCALE=1.

def _some_rounds(basis: FloatArray) -> IntArray:
    """Rounds that span the basis, and others, in order: up to three times its rank."""
    rounds, rank = basis.shape
    pivots = _pivots(basis)
    rest = np.setdiff1d(np.arange(rounds), pivots)
    more = min(_MOST_ROUNDS, 3 * rank) - rank
    return np.sort(np.concatenate((pivots, rest[:more])))
