"""Columns without counts: choice of the method, and assignment to users if there are counts."""

import time

import numpy as np

from .._arrays import Columns, IntArray
from .._log.counts import agree
from .._log.record import Log
from .basis import select_basis
from .flint import has_library
from .ica import ROUNDS_PER_USER, ica_columns, lightest, match
from .lattice import MAX_USERS, MAX_USERS_NOISY, lattice_columns
from .options import METHODS_WITHOUT_COUNTS, Options
from .span import Subspace

__all__ = ["columns_without_counts", "fill"]


def columns_without_counts(
    log: Log, subspace: Subspace, active: IntArray, *, options: Options, deadline: float
) -> tuple[Columns, str]:
    """Returns columns uint8 (users, rounds), assigned by counts if there are any, and the methods.

    The method of `options`, or else the one for this number of rounds, followed by the other if
    columns are missing.
    """
    found = np.zeros((0, log.rounds), np.uint8)
    used: list[str] = []
    for name in _order(log, subspace, len(active), options.method):
        if name == "lattice":
            more = lattice_columns(log, subspace, len(active), deadline)
        else:
            more = ica_columns(log, subspace, len(active), options.seed, deadline)
        both = np.unique(np.concatenate((found, more)), axis=0)
        found = select_basis(log, lightest(both, len(active)), both, deadline) if used else more
        used.append(name)
        if len(found) == len(active) or time.monotonic() > deadline:
            break
    columns = np.zeros((log.users, log.rounds), np.uint8)
    owner = match(log, found, active)
    columns[owner[owner >= 0]] = found[owner >= 0]
    return columns, " and ".join(used)


def fill(log: Log, subspace: Subspace, active: IntArray, columns: Columns, deadline: float) -> bool:
    """Finds missing columns (users, rounds), in place, by lattice reduction.

    Only without noise, where it needs fewer rounds than the search with counts. Returns True if any
    was found.
    """
    assert log.counts is not None
    if not subspace.exact or len(active) > MAX_USERS or not has_library():
        return False
    points = columns[active].astype(np.float64)
    good = subspace.distances(points) <= subspace.limits(points)
    good &= agree(columns[active], log.windows, log.counts[active], log.count_error)
    if good.all() or time.monotonic() > deadline:
        return False
    taken = {column.tobytes() for column in columns[active[good]]}
    found = lattice_columns(log, subspace, len(active), deadline)
    found = found[np.array([column.tobytes() not in taken for column in found], np.bool_)]
    owner = match(log, found, active[~good])
    columns[owner[owner >= 0]] = found[owner >= 0]
    return bool((owner >= 0).any())


def _order(log: Log, subspace: Subspace, users: int, method: str) -> tuple[str, ...]:
    if method in METHODS_WITHOUT_COUNTS:
        return (method,)
    most = MAX_USERS if subspace.exact else MAX_USERS_NOISY
    if users > most or not has_library():
        return ("skewness",)
    few = log.rounds < ROUNDS_PER_USER * users
    return METHODS_WITHOUT_COUNTS if few else METHODS_WITHOUT_COUNTS[::-1]
