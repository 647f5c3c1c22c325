"""Estimated errors of recovered updates, from the sums alone, without the true updates.

With A = P G + noise, least squares leaves residuals of variance s^2 per degree of freedom. An entry
of user k's update has the variance s^2 [(P^T P)^-1]_kk. Relative to the size of the update this is
the relative error: 0 for an exact update, 1 for one with as much noise as signal.

This holds if all columns of P are right. If some are not known, P has only the known ones, and a
column with the number of other participants, whose mean update is estimated with the rest. What
single others differ from their mean is then part of the residuals, and so of the error. Users whose
columns are equal, or depend on each other, have no error of their own: no combination of rounds has
their update alone.
"""

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._arrays import BoolArray, FloatArray, IntArray
from .._log.record import Log
from .result import Result

__all__ = ["Quality", "measure"]

_BLOCK_BYTES, _LATE_BYTES = 1 << 27, 1 << 23
_SINGULAR = 1e-9


@dataclass(frozen=True, eq=False)
class Quality:
    """Estimated quality of the recovered updates.

    `errors`: float64 (users,), the estimated relative error of each update, NaN where it is not
    known. `certain`: bool (users,), True where the update does not depend on columns that are not
    known. `groups`: users whose updates are not known, but the sum of them is. `noise`: the noise
    of one update between rounds, relative to its size. `sampled`: the number of dimensions used.
    """

    errors: npt.NDArray[np.float64]
    certain: BoolArray
    groups: tuple[tuple[int, ...], ...]
    noise: float
    sampled: int


@dataclass(frozen=True, eq=False, slots=True)
class _Fitted:
    """Least squares: relative errors (k,), variance of an entry of a sum, energies (k,)."""

    errors: FloatArray
    variance: float
    energy: FloatArray


def measure(
    log: Log,
    result: Result,
    seed: int = 0,
    known: BoolArray | None = None,
    *,
    deadline: float = float("inf"),
) -> Quality:
    """Estimates the errors of updates from at most 128 MiB of the sums, or 8 past the deadline.

    `known`: bool (users,), users whose columns are taken as right; None for all of them.
    """
    columns = result.participation.astype(np.float64)
    some = np.flatnonzero(columns.any(axis=0))
    known = np.ones(log.users, np.bool_) if known is None else known
    chosen = some[known[some]]
    missing = int((~known[~log.idle]).sum())
    everyone = missing == 0
    sums = _sample(log, seed, _LATE_BYTES if time.monotonic() > deadline else _BLOCK_BYTES)
    whole = _fitted(columns[:, some], sums, len(some))
    together = max(float(columns.sum(axis=1).mean()), 1.0)
    typical = float(np.median(whole.energy)) if len(some) else 0.0
    noise = float(np.sqrt(whole.variance / together / typical)) if typical > 0 else float("inf")
    all_errors, errors = np.full(log.users, np.inf), np.full(log.users, np.nan)
    all_errors[some] = whole.errors
    certain = np.isfinite(all_errors) if everyone else result.determined
    if everyone:
        errors[some] = whole.errors
    elif len(chosen):
        part = _with_the_others(log, columns[:, chosen])
        errors[chosen] = _fitted(part, sums, len(chosen)).errors
        if missing == 1 and log.participants is not None:  # the other column is that user's
            certain = certain | (known & np.isfinite(errors))
    errors[result.determined] = all_errors[result.determined]
    twins = _equal(columns, chosen[~np.isfinite(errors[chosen])])
    return Quality(errors, certain, result.groups + twins, noise, sums.shape[1])


def _with_the_others(log: Log, columns: FloatArray) -> FloatArray:
    """Appends to columns (rounds, k) the number of participants who have none of them."""
    others = (~log.empty).astype(np.float64)
    if log.participants is not None:
        others = log.participants - columns.sum(axis=1)
    return np.column_stack((columns, others))


def _equal(columns: FloatArray, users: IntArray) -> tuple[tuple[int, ...], ...]:
    """Groups users whose columns are equal."""
    groups: dict[bytes, list[int]] = {}
    for user in users.tolist():
        groups.setdefault(columns[:, user].tobytes(), []).append(user)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _fitted(columns: FloatArray, sums: FloatArray, users: int) -> _Fitted:
    """Fits columns (rounds, k) to the sums; the first `users` of them are users'."""
    left, values, right = np.linalg.svd(columns, full_matrices=False)
    kept = values > _SINGULAR * values.max(initial=1e-300)
    left, values, right = left[:, kept], values[kept], right[kept]
    inverse = (right.T / values**2) @ right
    updates = (right.T / values) @ (left.T @ sums)
    rest = sums - columns @ updates
    freedom = max(len(columns) - len(values), 1)
    variance = float(np.einsum("ij,ij->", rest, rest)) / (freedom * sums.shape[1])
    of_entry = variance * np.diag(inverse)
    energy = np.maximum(np.mean(updates**2, axis=1) - of_entry, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.sqrt(of_entry / energy)
    alone = (right**2).sum(axis=0) > 1 - 1e-6
    errors = np.where(np.isnan(relative) | ~alone, np.inf, relative)
    return _Fitted(errors[:users], variance, energy[:users])


def _sample(log: Log, seed: int, size: int) -> FloatArray:
    """float64 (rounds, some dimensions), about `size` bytes."""
    most = max(size // (8 * log.rounds), 64)
    if log.dimensions <= most:
        return np.asarray(log.aggregates, np.float64)
    picked = np.random.default_rng(seed).choice(log.dimensions, most, replace=False)
    return np.asarray(log.aggregates[:, np.sort(picked)], np.float64)
