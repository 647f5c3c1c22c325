"""Columns without counts: which method finds them, and whose they are if there are counts."""

import time

import numpy as np

from ..errors import ArgumentError
from .blind import ROUNDS_PER_USER, Columns, blind_columns, lightest, match
from .lattice import MOST_USERS, MOST_USERS_NOISY, lattice_columns
from .problem import Log
from .reduction import check_library, has_library
from .settle import settle
from .subspace import Subspace
from .windows import IntArray, agree

__all__ = ["METHODS", "check", "fill", "find_unnamed"]

METHODS = ("lattice", "skewness")


def check(log: Log, method: str) -> None:
    """Raises ArgumentError for a method by name that cannot be, before any work."""
    if method != "lattice":
        return
    check_library()
    users = int((~log.idle).sum())
    if users > MOST_USERS:
        raise ArgumentError(
            f"method lattice: found {users} users, expected at most {MOST_USERS}; with more, use "
            f"skewness, and log {ROUNDS_PER_USER} rounds or more for every user"
        )


def find_unnamed(
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
            more = blind_columns(log, subspace, len(active), seed, deadline)
        both = np.unique(np.concatenate((found, more)), axis=0)
        found = settle(log, lightest(both, len(active)), both) if used else more
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
    if not subspace.exact or len(active) > MOST_USERS or not has_library():
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
    most = MOST_USERS if subspace.exact else MOST_USERS_NOISY
    if users > most or not has_library():
        return ("skewness",)
    return METHODS if log.rounds < ROUNDS_PER_USER * users else METHODS[::-1]
