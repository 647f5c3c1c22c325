"""Other columns of a user, where no margin proves that there are none."""

import numpy as np

from .._arrays import Columns, FloatArray, IntArray
from .._attack.programs import Exclude
from .._attack.sets import AffineSet
from .._log.windows import Batch
from .reasons import Candidates, Evidence

__all__ = ["exclude_others"]


def exclude_others(
    batch: Batch,
    evidence: Evidence,
    where: IntArray,
    own: Columns,
    *,
    affine: AffineSet,
    exclude: Exclude | None,
) -> None:
    """Looks for other columns of the users at places `where` whose margin is unknown."""
    rest = np.flatnonzero(evidence.margin[where] == 0)
    none, along = own[:0], _directions(affine)
    evidence.candidates.update((int(i), Candidates(none, along)) for i in where[rest])
    if exclude is None or not len(rest):
        return
    others = exclude(affine.basis, batch, rest, own[rest])
    evidence.only[where[rest]] = [one.complete and not len(one.columns) for one in others]
    evidence.rivals[where[rest]] |= [len(one.columns) > 0 for one in others]
    for i, one in zip(where[rest].tolist(), others, strict=True):
        evidence.candidates[i] = Candidates(one.columns, None if one.complete else along)


def _directions(affine: AffineSet) -> FloatArray:
    """float64 (rounds, rank): columns that span the directions of a set."""
    inside = np.eye(affine.basis.shape[1]) - affine.across @ affine.across.T
    return np.asarray(affine.basis @ inside)
