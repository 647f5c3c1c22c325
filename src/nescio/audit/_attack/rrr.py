"""Relaxed-reflect-reflect: all columns at once, between the affine and the binary set.

    X <- X + beta (B(2 S(X) - X) - S(X))

S and B are the nearest points of the affine and of the binary set. Where the step is zero, S(X) is
in both sets: a column with the right counts in the span. Elser, Rankenburg and Thibault, "Searching
with iterated maps" (PNAS 2007); Elser, "The complexity of bit retrieval" (2018), for small beta.

Steps are taken in float32; whether a column is in the span is decided in float64.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._arrays import Columns, FloatArray, Floats, IntArray
from .sets import AffineSet, BinarySet
from .span import Subspace

__all__ = ["Found", "Search", "reflect"]

Accept = Callable[[Columns, IntArray], npt.NDArray[np.bool_]]

_SKETCH = 24
_KEEP_EVERY = 8


@dataclass(frozen=True, slots=True)
class Search:
    """How to look: the step, iterations of one start, starts, the clock (monotonic) to stop at."""

    beta: float = 0.5
    iterations: int = 1500
    starts: int = 2
    deadline: float = float("inf")


@dataclass(frozen=True, eq=False, slots=True)
class Found:
    """Columns uint8 (k, rounds), the nearest ones met; which of them fit; iterations it took."""

    columns: Columns
    fits: npt.NDArray[np.bool_]
    iterations: int


def reflect(
    subspace: Subspace,
    affine: AffineSet,
    binary: BinarySet,
    accept: Accept,
    *,
    rng: np.random.Generator,
    search: Search,
) -> Found:
    """Looks for a column for every user of a batch.

    `accept(columns, users of the batch)` says which columns end the search for their users.
    """
    users, rounds = affine.origins.shape
    found = Found(np.zeros((users, rounds), np.uint8), np.zeros(users, np.bool_), 0)
    nearest, least = np.full(users, np.inf), np.full(users, np.inf, np.float32)
    examine = _examiner(subspace, rng)
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
            rough, certain = examine(corners, accept, active, least[active])
            least[active] = np.minimum(least[active], rough)
            _keep(
                found,
                nearest,
                corners=corners,
                active=active,
                rough=rough,
                certain=certain,
                also_better=step % _KEEP_EVERY == 0,
            )
            corners -= inside
            corners *= np.float32(search.beta)
            points += corners
            if certain.any():
                points, active = points[~certain], active[~certain]
    return Found(found.columns, found.fits, iterations)


Examine = Callable[
    [Floats, Accept, IntArray, Floats], tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]
]


def _examiner(subspace: Subspace, rng: np.random.Generator) -> Examine:
    """Which rows end the search: by a sketch of what is outside first, then by all of it."""
    outside = rng.standard_normal((len(subspace.basis), _SKETCH)) / np.sqrt(_SKETCH)
    outside -= subspace.basis @ (subspace.basis.T @ outside)
    sketch = (outside * subspace.weights[:, None]).astype(np.float32)
    slack = np.float32(2e-4 if subspace.exact else 0.0)

    def examine(
        corners: Floats, accept: Accept, active: IntArray, least: Floats
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        shadows = corners @ sketch
        rough = np.einsum("ki,ki->k", shadows, shadows)
        # With noise a true column is about the nearest that is ever met.
        likely = np.flatnonzero(rough <= (slack if subspace.exact else 1.5 * least))
        certain = np.zeros(len(corners), np.bool_)
        if likely.size:
            certain[likely] = accept(corners[likely].astype(np.uint8), active[likely])
        return rough, certain

    return examine


def _keep(
    found: Found,
    nearest: FloatArray,
    *,
    corners: Floats,
    active: IntArray,
    rough: npt.NDArray[np.float32],
    certain: npt.NDArray[np.bool_],
    also_better: bool,
) -> None:
    """Writes down what ends a search, and from time to time what came nearer than before."""
    better = certain | (rough < nearest[active]) if also_better else certain
    who = active[better]
    found.columns[who] = corners[better]
    nearest[who] = rough[better]
    found.fits[active[certain]] = True
