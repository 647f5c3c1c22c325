"""The result of the attack: columns, updates and certificates."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray

__all__ = ["Certificate", "Certified", "Result", "Status"]

Status = Literal["unique", "ambiguous", "not found"]


def _nobody() -> npt.NDArray[np.bool_]:
    return np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The evidence for one user's column.

    `status`: "unique": the column is in the span with the user's counts, and no other binary column
    is; "ambiguous": it is, but another one is too or could not be excluded; "not found": no column
    was near enough. `distance`: of the column from the span (in rounds weighted by the noise).
    `expected`: the same for a true column. `limit`: columns beyond it are rejected. `margin`: every
    other column with these counts is at least this far from the span; 0 if unknown. `failure`:
    bound on the probability that the status is wrong: 0 where it is proven up to rounding, with
    noise for Gaussian noise; 1 unless unique. `reason`: the reason in words.
    """

    user: int
    status: Status
    distance: float
    expected: float
    limit: float
    margin: float
    failure: float
    reason: str

    @property
    def found(self) -> bool:
        """True if a column was found, unique or not."""
        return self.status != "not found"


@dataclass(frozen=True, eq=False, slots=True)
class Certified:
    """Certificates of all users, and what the columns determine.

    `determined`, `groups`: as in Result.
    """

    certificates: tuple[Certificate, ...]
    determined: npt.NDArray[np.bool_]
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Result:
    """The recovered columns and updates.

    `participation`: uint8 (rounds, users), the best column for every user, even if not found.
    `updates`: (users, dimensions), in the aggregates' dtype, by least squares over all those
    columns, NaN where not found; None if not wanted. `determined`: bool (users,), True where the
    update is the same for every set of columns that fits. Other updates are right only if all
    columns are. `groups`: users whose updates are not determined, but the sum of them is.
    `conditioning`: float64 (users,), NaN where not found; times `noise`, the standard deviation of
    an entry of the weighted aggregates, it is the standard error of an entry of that user's update,
    if all columns are right. `certificates`: one for each user. `method`: the methods that found
    the columns. `seconds`: by step. `labelled`: True if column k belongs to user k; without counts
    columns are in no order. `standardized`: True if parameters were divided by their standard
    deviation. `drift`: the number of common smooth changes allowed for. `timed_out`: True if the
    time limit ended the search.
    """

    participation: npt.NDArray[np.uint8]
    updates: FloatArray | None
    certificates: tuple[Certificate, ...]
    conditioning: FloatArray
    method: str
    seconds: dict[str, float]
    noise: float = 0.0
    labelled: bool = True
    standardized: bool = False
    drift: int = 0
    determined: npt.NDArray[np.bool_] = field(default_factory=_nobody)
    groups: tuple[tuple[int, ...], ...] = ()
    timed_out: bool = False

    @property
    def found(self) -> npt.NDArray[np.bool_]:
        """(users,): True for users with a column, unique or not."""
        return np.array([c.found for c in self.certificates], np.bool_)

    @property
    def unique(self) -> npt.NDArray[np.bool_]:
        """(users,): True for users with a unique column."""
        return np.array([c.status == "unique" for c in self.certificates], np.bool_)
