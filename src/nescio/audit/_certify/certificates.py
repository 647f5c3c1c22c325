"""Certificates: the evidence for each column, and its reason in words.

"unique" requires all of the following. As many directions exceed the noise as there are active
users, so that every true column is in the span. The column is as near to the span as a true one and
has the user's counts. No other recovered column has these counts, and every other column with them
is proven to be farther from the span than true ones. With noise in addition: all columns are found,
this one is nearer than chance allows and about as near as the others, and the likelihood of all
neighboring columns is small.
"""

import numpy as np

from .._arrays import BoolArray, Columns, IntArray
from .._attack.basis import column_basis
from .._attack.programs import Exclude
from .._attack.sets import AffineSet
from .._attack.span import Subspace
from .._log.counts import agree, window_sums
from .._log.record import Log
from .._log.undetermined import free_rounds
from .._log.windows import batches, log_choices
from .estimable import determined_by
from .others import exclude_others
from .reasons import MAX_FAILURE, Evidence, certificate
from .result import Certificate, Certified, Status
from .uniqueness import failures, margins

__all__ = ["certify_columns", "certify_without_counts"]

_MAX_OFF = 2.0
"""Maximum distance of a "unique" column, relative to the expected noise distance."""


def certify_columns(
    log: Log,
    subspace: Subspace,
    active: IntArray,
    columns: Columns,
    exclude: Exclude | None = None,
    *,
    prove: bool = True,
    deadline: float = float("inf"),
) -> Certified:
    """Makes a certificate for each user, and decides which updates are determined.

    `columns` is (users, rounds). Without `prove`, no certificate is "unique". `exclude(basis,
    batch, places, columns)` searches by integer programs, for users at `places` in the batch, for
    other columns in the span of `basis` that have their counts. After the deadline (monotonic
    clock) nothing more is proven.
    """
    evidence = _gather(log, subspace, active, columns)
    if prove and subspace.complete:
        _prove(log, subspace, active, columns, evidence, exclude=exclude, deadline=deadline)
    place = {int(user): i for i, user in enumerate(active)}
    everyone = bool(evidence.fits.all())
    certificates = tuple(
        certificate(user, evidence, place[user], subspace, everyone)
        if user in place
        else Certificate(
            user, "unique", 0.0, 0.0, 0.0, np.inf, 0.0, "never took part: all counts are zero"
        )
        for user in range(log.users)
    )
    determined = np.zeros(log.users, np.bool_)
    unique = np.array([certificates[user].status == "unique" for user in active], np.bool_)
    found = determined_by(subspace, columns[active], unique, evidence, deadline)
    determined[active] = found.users
    groups = tuple(tuple(active[list(group)].tolist()) for group in found.groups)
    return Certified(certificates, determined, groups)


def certify_without_counts(subspace: Subspace, columns: Columns) -> Certified:
    """Makes certificates for columns (users, rounds) found without counts.

    They are never "unique": sums of columns can be binary as well, and no count names the user.
    """
    points = columns.astype(np.float64)
    distance, expected = subspace.distances(points), subspace.expected(points)
    limit = subspace.limits(points)
    fits = (distance <= limit) & columns.any(axis=1)
    status: dict[bool, tuple[Status, str]] = {
        True: ("ambiguous", "agrees with the sums, but without counts its user is unknown"),
        False: ("not found", "no participation agrees with the sums closely enough"),
    }
    certificates = tuple(
        Certificate(
            i,
            status[bool(fits[i])][0],
            float(distance[i]),
            float(expected[i]),
            float(limit[i]),
            0.0,
            1.0,
            status[bool(fits[i])][1],
        )
        for i in range(len(columns))
    )
    return Certified(certificates, np.zeros(len(columns), np.bool_), ())


def _gather(log: Log, subspace: Subspace, active: IntArray, columns: Columns) -> Evidence:
    assert log.counts is not None
    own, counts = columns[active], log.counts[active]
    points = own.astype(np.float64)
    empty, choices = log.empty, np.zeros(log.users)
    for batch in batches(log.windows, log.counts, log.count_error, active):
        choices[batch.users] = log_choices(batch, empty)
    distance, limit = subspace.distances(points), subspace.limits(points, choices[active])
    fits = (distance <= limit) & agree(own, log.windows, counts, log.count_error)
    fits &= ~own[:, empty].any(axis=1) & own.any(axis=1)
    rivals = _rivals(log, own, counts, fits)
    expected = subspace.expected(points)
    typical = np.ones(len(active), np.bool_)
    if not subspace.exact:
        typical &= distance <= subspace.chance(points, choices[active], MAX_FAILURE)
        typical &= (distance <= _MAX_OFF * expected) | (not subspace.colored)
    return Evidence(
        distance,
        expected,
        limit,
        fits,
        typical,
        np.zeros(len(active)),
        np.ones(len(active)),
        rivals,
        np.zeros(len(active), np.bool_),
        {},
    )


def _rivals(log: Log, columns: Columns, counts: IntArray, fits: BoolArray) -> BoolArray:
    """(k,): True if two users' counts fit the same found column."""
    sums = window_sums(columns, log.windows)
    rival = np.zeros(len(columns), np.bool_)
    for k in range(len(columns)):
        same = (np.abs(sums - counts[k]) <= log.count_error) | (counts[k] < 0)
        others = same.all(axis=1) & fits
        others[k] = False
        rival[k] |= bool(others.any())
        rival |= others
    return rival


def _prove(
    log: Log,
    subspace: Subspace,
    active: IntArray,
    columns: Columns,
    evidence: Evidence,
    *,
    exclude: Exclude | None,
    deadline: float,
) -> None:
    """Fills in margins, failures, and which users have or provably have no rivals."""
    assert log.counts is not None
    wanted = evidence.fits & (subspace.exact | ~evidence.rivals)
    basis = subspace.plain
    if not subspace.exact:
        basis = column_basis(columns[active])
        if not wanted.all() or basis.shape[1] < len(active):
            return
    position = np.full(log.users, -1)
    position[active] = np.arange(len(active))
    for batch in batches(log.windows, log.counts, log.count_error, active[wanted]):
        where, own = position[batch.users], columns[batch.users]
        free = free_rounds(batch, log.empty)
        affine = AffineSet.of(basis, batch)
        evidence.margin[where] = margins(affine, own, free, deadline)
        evidence.failure[where] = failures(subspace, batch, own, free)
        exclude_others(batch, evidence, where, own, affine=affine, exclude=exclude)
