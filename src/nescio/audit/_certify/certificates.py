"""Certificates: what is said of each column, and why.

"unique" asks for all of this: as many directions stand out of the noise as users are active, so
that every true column is in the span; the column is as near to the span as a true one, with the
user's counts; no other recovered column has the user's counts; every other column with these counts
is proven to be farther from the span than true ones are; and, with noise, all columns are found,
this one is nearer than any by chance and about as near as the others, and the likelihood of all
columns near by is small.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._arrays import BoolArray, Columns, FloatArray, IntArray
from .._attack.milp import Others
from .._attack.sets import AffineSet
from .._attack.span import Subspace
from .._log.record import Log
from .._log.windows import Batch, agree, batches, free_rounds, log_choices, window_sums
from .result import Certificate, Status
from .uniqueness import margins, swap_failures

__all__ = ["certify_columns", "certify_without_counts"]

MAX_FAILURE = 1e-6
"""With noise, columns that are wrong with a larger probability are not called unique."""

_MAX_OFF = 2.0
"""How much farther off than noise puts most columns one may be that is called unique."""


@dataclass(frozen=True, eq=False, slots=True)
class _Evidence:
    """What is known of the columns of the active users, one entry each."""

    distance: FloatArray
    expected: FloatArray
    limit: FloatArray
    fits: BoolArray
    typical: BoolArray
    margin: FloatArray
    failure: FloatArray
    rivals: BoolArray
    only: BoolArray


Exclude = Callable[[FloatArray, Batch, IntArray, Columns], list[Others]]


def certify_columns(
    log: Log,
    subspace: Subspace,
    active: IntArray,
    columns: Columns,
    exclude: Exclude | None = None,
    *,
    prove: bool = True,
) -> list[Certificate]:
    """A certificate for each user; `columns` is (users, rounds). Without `prove` none is "unique".

    `exclude(basis, batch, places, columns)` says by an integer program, for users at `places` in
    the batch, whether other columns in the span of `basis` have their counts.
    """
    evidence = _gather(log, subspace, active, columns)
    if prove and subspace.complete:
        _prove(log, subspace, active, columns, evidence, exclude=exclude)
    place = {int(user): i for i, user in enumerate(active)}
    everyone = bool(evidence.fits.all())
    return [
        _certificate(user, evidence, place[user], subspace, everyone)
        if user in place
        else Certificate(user, "unique", 0.0, 0.0, 0.0, np.inf, 0.0, "counts of zero everywhere")
        for user in range(log.users)
    ]


def certify_without_counts(subspace: Subspace, columns: Columns) -> list[Certificate]:
    """Certificates for columns (users, rounds) that were found without counts.

    They are never unique: sums of columns can be binary as well, and nothing says whose they are.
    """
    points = columns.astype(np.float64)
    distance, expected = subspace.distances(points), subspace.expected(points)
    limit = subspace.limits(points)
    fits = (distance <= limit) & columns.any(axis=1)
    status: dict[bool, tuple[Status, str]] = {
        True: ("ambiguous", "in the span, but without counts nothing says whose it is"),
        False: ("not found", "no column met was near enough"),
    }
    return [
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
    ]


def _gather(log: Log, subspace: Subspace, active: IntArray, columns: Columns) -> _Evidence:
    assert log.counts is not None
    mine, counts = columns[active], log.counts[active]
    points = mine.astype(np.float64)
    empty, many = log.empty, np.zeros(log.users)
    for batch in batches(log.windows, log.counts, log.count_error, active):
        many[batch.users] = log_choices(batch, empty)
    distance, limit = subspace.distances(points), subspace.limits(points, many[active])
    fits = (distance <= limit) & agree(mine, log.windows, counts, log.count_error)
    fits &= ~mine[:, empty].any(axis=1) & mine.any(axis=1)
    rivals = _rivals(log, mine, counts, fits)
    expected = subspace.expected(points)
    typical = np.ones(len(active), np.bool_)
    if not subspace.exact:
        typical &= distance <= subspace.chance(points, many[active], MAX_FAILURE)
        typical &= (distance <= _MAX_OFF * expected) | (not subspace.coloured)
    return _Evidence(
        distance,
        expected,
        limit,
        fits,
        typical,
        np.zeros(len(active)),
        np.ones(len(active)),
        rivals,
        np.zeros(len(active), np.bool_),
    )


def _rivals(log: Log, columns: Columns, counts: IntArray, fits: BoolArray) -> BoolArray:
    """(k,): whether the counts fit another user's column too, or another user's counts this one."""
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
    evidence: _Evidence,
    *,
    exclude: Exclude | None,
) -> None:
    """Fills in margins, failures, who has rivals and who is shown to have none."""
    assert log.counts is not None
    wanted = evidence.fits & ~evidence.rivals
    basis = subspace.plain_basis()
    if not subspace.exact:
        found = columns[active].T.astype(np.float64)
        if not wanted.all() or np.linalg.matrix_rank(found) < len(active):
            return
        basis = np.linalg.qr(found)[0]
    position = np.full(log.users, -1)
    position[active] = np.arange(len(active))
    for batch in batches(log.windows, log.counts, log.count_error, active[wanted]):
        where, mine = position[batch.users], columns[batch.users]
        free = free_rounds(batch, log.empty)
        evidence.margin[where] = margins(AffineSet.of(basis, batch), mine, free)
        evidence.failure[where] = 0.0
        if not subspace.exact:
            windows = _hard_windows(batch, log.rounds)
            evidence.failure[where] = swap_failures(subspace, mine, windows, free)
        rest = np.flatnonzero(evidence.margin[where] == 0)
        if exclude is not None and len(rest):
            verdicts = exclude(basis, batch, rest, mine[rest])
            evidence.only[where[rest]] = [verdict == "none" for verdict in verdicts]
            evidence.rivals[where[rest]] = [verdict == "another" for verdict in verdicts]


def _hard_windows(batch: Batch, rounds: int) -> IntArray:
    """(rounds,): the number of the window whose count is exact for all, or -1."""
    windows = np.full(rounds, -1)
    for i, (start, stop) in enumerate(batch.apart):
        if (batch.lower[:, i] == batch.upper[:, i]).all():
            windows[start:stop] = i
    return windows


def _certificate(
    user: int, all_evidence: _Evidence, i: int, subspace: Subspace, everyone: bool
) -> Certificate:
    distance, limit = float(all_evidence.distance[i]), float(all_evidence.limit[i])
    margin, failure = float(all_evidence.margin[i]), float(all_evidence.failure[i])
    needed = distance + 2 * limit if subspace.exact else 1e-6
    status: Status = "ambiguous"
    if not all_evidence.fits[i]:
        status, reason = "not found", "no column met was near enough"
    elif all_evidence.rivals[i]:
        reason = "another column in the span has these counts"
    elif not subspace.complete:
        reason = "fewer directions stand out than users are active"
    elif not subspace.exact and not everyone:
        reason = "with noise, all columns are needed to exclude others, and some were not found"
    elif not all_evidence.typical[i]:
        reason = "with this noise, columns as near as this one are too probable"
    elif margin <= needed and not all_evidence.only[i]:
        reason = "other columns could not be excluded"
    elif failure > MAX_FAILURE:
        reason = "with this noise, columns near by are too probable"
    else:
        status, reason = "unique", "no other column in the span has these counts: proven"
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
