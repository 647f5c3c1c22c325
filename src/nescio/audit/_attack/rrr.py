"""Relaxed-reflect-reflect (RRR): search for all columns at once, between two sets.

    X <- X + beta (B(2 S(X) - X) - S(X))

S and B are the nearest points of the affine and of the binary set. Where the step is zero, S(X) is
in both sets: a column with the right counts in the span. Elser, Rankenburg and Thibault, "Searching
with iterated maps" (PNAS 2007); Elser, "The complexity of bit retrieval" (2018), for small beta.

Steps use float32. Membership of a column in the span is decided in float64.
"""

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._arrays import BoolArray, Columns, FloatArray, Floats, IntArray
from .._log.windows import Batch
from .screen import Accept, Screen
from .sets import AffineSet, BinarySet
from .span import Subspace

__all__ = ["Found", "Search", "reflect"]

_SKETCH = 24
_KEEP_EVERY = 8


@dataclass(frozen=True, slots=True)
class Search:
    """The step size, iterations per start, starts, and the deadline (monotonic clock)."""

    beta: float = 0.5
    iterations: int = 1500
    starts: int = 2
    deadline: float = float("inf")


@dataclass(frozen=True, eq=False, slots=True)
class Found:
    """The nearest columns, uint8 (k, rounds); which of them fit; the iterations used."""

    columns: Columns
    fits: npt.NDArray[np.bool_]
    iterations: int


def reflect(
    subspace: Subspace,
    batch: Batch,
    empty: BoolArray,
    accept: Accept,
    *,
    rng: np.random.Generator,
    search: Search,
) -> Found:
    """Searches a column for every user of a batch.

    `accept(columns, users of the batch)` returns True for columns that end the search for their
    users.
    """
    users, rounds = len(batch.users), len(empty)
    found = Found(np.zeros((users, rounds), np.uint8), np.zeros(users, np.bool_), 0)
    nearest, nearest_yet = np.full(users, np.inf), np.full(users, np.inf, np.float32)
    screen = Screen(_sketch(subspace, rng), accept, subspace.exact)
    affine, binary = AffineSet.of(subspace.plain, batch), BinarySet(batch, empty)
    iterations = 0
    for _ in range(search.starts):
        active = np.flatnonzero(~found.fits)
        points = rng.random((len(active), rounds), np.float32)
        for step in range(search.iterations):
            if not len(active) or time.monotonic() > search.deadline:
                break
            iterations += 1
            inside = affine.project(points, active)
            corners = binary.project(2 * inside - points, active)
            rough, accepted = screen.test(corners, active, nearest_yet[active])
            nearest_yet[active] = np.minimum(nearest_yet[active], rough)
            _keep(
                found,
                nearest,
                corners=corners,
                active=active,
                rough=rough,
                accepted=accepted,
                also_better=step % _KEEP_EVERY == 0,
            )
            corners -= inside
            corners *= np.float32(search.beta)
            points += corners
            if accepted.any():
                points, active = points[~accepted], active[~accepted]
    return Found(found.columns, found.fits, iterations)


def _sketch(subspace: Subspace, rng: np.random.Generator) -> Floats:
    """float32 (rounds, _SKETCH): random directions outside the span."""
    outside = rng.standard_normal((len(subspace.basis), _SKETCH)) / np.sqrt(_SKETCH)
    outside -= subspace.basis @ (subspace.basis.T @ outside)
    return np.asarray((outside * subspace.weights[:, None]).astype(np.float32))


def _keep(
    found: Found,
    nearest: FloatArray,
    *,
    corners: Floats,
    active: IntArray,
    rough: npt.NDArray[np.float32],
    accepted: npt.NDArray[np.bool_],
    also_better: bool,
) -> None:
    """Stores columns that end a search, and periodically those nearer than before."""
    better = accepted | (rough < nearest[active]) if also_better else accepted
    users = active[better]
    found.columns[users] = corners[better]
    nearest[users] = rough[better]
    found.fits[active[accepted]] = True
