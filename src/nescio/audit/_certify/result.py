"""What an audit found: columns, updates, and how sure each of them is."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from .._arrays import FloatArray

__all__ = ["Certificate", "Result", "Status"]

Status = Literal["unique", "ambiguous", "not found"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """How sure one user's column is.

    `status`: "unique": the column is in the span with the user's counts, and no other binary column
    is; "ambiguous": it is, and another one is or could not be excluded; "not found": no column met
    was near enough. `distance` of the column from the span (in rounds weighted as the noise wants),
    `expected` what a true column's would be, `limit` what is refused. `margin`: every other column
    with these counts is at least this far from the span; 0 if that is not known. `failure`: how
    probable it is that the status is wrong: 0 where it is proven up to rounding, with noise a bound
    for Gaussian noise; 1 unless unique. `reason` says why, in words.
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
        """Whether there is a column to show, unique or not."""
        return self.status != "not found"


@dataclass(frozen=True, eq=False)
class Result:
    """What was recovered.

    `participation`: uint8 (rounds, users), the best column met for every user, also where it was
    not found. `updates`: (users, dimensions), in the aggregates' dtype, by least squares over those
    columns, NaN where not found; None if they were not asked for. `conditioning`: float64 (users,),
    NaN where not found; times `noise`, the standard deviation of an entry of the weighted
    aggregates, it is the standard error of an entry of that user's update.
    `certificates`: one for each user. `method`: what found the columns. `seconds`: by step.
    `labelled`: whether columns belong to the users of their numbers; without counts they come in
    any order. `standardized`, `drift`: whether parameters were divided by their standard deviation,
    and how many smooth changes common to all were allowed for.
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

    @property
    def found(self) -> npt.NDArray[np.bool_]:
        """(users,): for whom a column is found, unique or not."""
        return np.array([c.found for c in self.certificates], np.bool_)

    @property
    def unique(self) -> npt.NDArray[np.bool_]:
        """(users,): whose column is the only one."""
        return np.array([c.status == "unique" for c in self.certificates], np.bool_)
