"""Estimated errors of recovered updates, from the sums alone, without the true updates.

With A = P G + noise, least squares leaves residuals of variance s^2 per degree of freedom. An entry
of user k's update has the variance s^2 [(P^T P)^-1]_kk. Relative to the size of the update this is
the relative error: 0 for an exact update, 1 for one with as much noise as signal.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray
from .._log.record import Log
from .result import Result

__all__ = ["Quality", "measure"]

_BLOCK_BYTES = 1 << 27


@dataclass(frozen=True, eq=False)
class Quality:
    """Estimated quality of the recovered updates.

    `errors`: float64 (users,), the estimated relative error of each update if the columns are
    right, NaN without a column. `noise`: the noise of one update between rounds, relative to its
    size. `sampled`: the number of dimensions used.
    """

    errors: npt.NDArray[np.float64]
    noise: float
    sampled: int


def measure(log: Log, result: Result, seed: int = 0) -> Quality:
    """Estimates the errors of updates from at most 128 MiB of the sums."""
    columns = result.participation.astype(np.float64)
    some = np.flatnonzero(columns.any(axis=0))
    sums = _sample(log, seed)
    columns = columns[:, some]
    inverse = np.linalg.pinv(columns.T @ columns, hermitian=True)
    updates = inverse @ (columns.T @ sums)
    left = sums - columns @ updates
    freedom = max(log.rounds - len(some), 1)
    variance = float(np.einsum("ij,ij->", left, left)) / (freedom * sums.shape[1])
    of_entry = variance * np.diag(inverse)
    energy = np.maximum(np.mean(updates**2, axis=1) - of_entry, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.sqrt(of_entry / energy)
    errors = np.full(log.users, np.nan)
    errors[some] = np.where(np.isnan(relative), np.inf, relative)
    together = max(float(columns.sum(axis=1).mean()), 1.0)
    typical = float(np.median(energy)) if len(energy) else 0.0
    noise = float(np.sqrt(variance / together / typical)) if typical > 0 else float("inf")
    return Quality(errors, noise, sums.shape[1])


def _sample(log: Log, seed: int) -> FloatArray:
    """float64 (rounds, some dimensions)."""
    most = max(_BLOCK_BYTES // (8 * log.rounds), 64)
    if log.dimensions <= most:
        return np.asarray(log.aggregates, np.float64)
    picked = np.random.default_rng(seed).choice(log.dimensions, most, replace=False)
    return np.asarray(log.aggregates[:, np.sort(picked)], np.float64)
