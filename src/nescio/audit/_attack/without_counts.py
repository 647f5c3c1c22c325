"""Columns without counts: which method finds them, and whose they are if there are counts."""

import time

import numpy as np

from ...errors import ArgumentError
from .._arrays import Columns, IntArray
from .._log.record import Log
from .._log.windows import agree
from .basis import select_basis
from .block_reduction import check_library, has_library
from .ica import ROUNDS_PER_USER, ica_columns, lightest, match
from .lattice import MAX_USERS, MAX_USERS_NOISY, lattice_columns
from .span import Subspace

__all__ = ["METHODS", "check", "columns_without_counts", "fill"]

METHODS = ("lattice", "skewness")


def check(log: Log, method: str) -> None:
    """Raises ArgumentError for a method by name that cannot be, before any work."""
    if method != "lattice":
        return
    check_library()
    users = int((~log.idle).sum())
    if users > MAX_USERS:
        raise ArgumentError(
            f"method lattice: found {users} users, expected at most {MAX_USERS}; with more, use "
            f"skewness, and log {ROUNDS_PER_USER} rounds or more for every user"
        )


def columns_without_counts(
    log: Log, subspace: Subspace, active: IntArray, *, method: str, seed: int, deadline: float
) -> tuple[Columns, str]:
    """uint8 (users, rounds), given to users by counts if there are any; and what found them.

    Of METHODS the one named; otherwise the one for so many rounds, and if it leaves columns out,
    the other, too.
    """
    found = np.zeros((0, log.rounds), np.uint8)
    used: list[str] = []
    for name in _order(log, subspace, len(active), method):
        if name == "lattice":
            more = lattice_columns(log, subspace, len(active), deadline)
        else:
            more = ica_columns(log, subspace, len(active), seed, deadline)
        both = np.unique(np.concatenate((found, more)), axis=0)
        found = select_basis(log, lightest(both, len(active)), both) if used else more
        used.append(name)
        if len(found) == len(active) or time.monotonic() > deadline:
            break
    columns = np.zeros((log.users, log.rounds), np.uint8)
    owner = match(log, found, active)
    columns[owner[owner >= 0]] = found[owner >= 0]
    return columns, " and ".join(used)


def fill(log: Log, subspace: Subspace, active: IntArray, columns: Columns, deadline: float) -> bool:
    """Columns (users, rounds) for those who have none that fits, by lattice reduction, in place.

    Without noise alone, where it needs fewer rounds than a search with counts does. Whether any was
    found.
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
    if method in METHODS:
        return (method,)
    most = MAX_USERS if subspace.exact else MAX_USERS_NOISY
    if users > most or not has_library():
        return ("skewness",)
    return METHODS if log.rounds < ROUNDS_PER_USER * users else METHODS[::-1]
