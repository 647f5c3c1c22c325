"""The status of a column and its reason, from the evidence."""

from dataclasses import dataclass

from .._arrays import BoolArray, Columns, FloatArray
from .._attack.span import Subspace
from .result import Certificate, Status

__all__ = ["MAX_FAILURE", "Candidates", "Evidence", "certificate"]

MAX_FAILURE = 1e-6
"""Maximum probability of a wrong "unique" with noise."""


@dataclass(frozen=True, eq=False, slots=True)
class Candidates:
    """The columns that fit a user, besides the found one.

    `others`: uint8 (k, rounds). `directions`: float64 (rounds, r), of all differences that were not
    excluded; None if `others` are all.
    """

    others: Columns
    directions: FloatArray | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """Evidence for the columns of the active users, one entry each.

    `candidates`: other columns that fit, by the place of the user, where they were searched for.
    """

    distance: FloatArray
    expected: FloatArray
    limit: FloatArray
    fits: BoolArray
    typical: BoolArray
    margin: FloatArray
    failure: FloatArray
    rivals: BoolArray
    only: BoolArray
    candidates: dict[int, Candidates]


def certificate(
    user: int, all_evidence: Evidence, i: int, subspace: Subspace, everyone: bool
) -> Certificate:
    """Makes the certificate of a user, entry `i` of the evidence."""
    distance, limit = float(all_evidence.distance[i]), float(all_evidence.limit[i])
    margin, failure = float(all_evidence.margin[i]), float(all_evidence.failure[i])
    needed = distance + 2 * limit if subspace.exact else 1e-6
    status: Status = "ambiguous"
    if not all_evidence.fits[i]:
        status, reason = "not found", "no participation agrees with the sums closely enough"
    elif all_evidence.rivals[i]:
        reason = "another participation with these counts agrees with the sums"
    elif not subspace.complete:
        reason = "the sums show fewer independent users than took part"
    elif not subspace.exact and not everyone:
        reason = "with noise, a proof needs the participation of all users, and some was not found"
    elif not all_evidence.typical[i]:
        reason = "with this noise, chance too often gives a participation that agrees as well"
    elif margin <= needed and not all_evidence.only[i]:
        reason = "other participation could not be excluded"
    elif failure > MAX_FAILURE:
        reason = "with this noise, one that differs in a round or two is too probable"
    else:
        status, reason = (
            "unique",
            "proven: no other participation with these counts agrees with the sums",
        )
    return Certificate(
        user,
        status,
        distance,
        float(all_evidence.expected[i]),
        limit,
        margin if status == "unique" else 0.0,
        failure if status == "unique" else 1.0,
        reason,
    )
