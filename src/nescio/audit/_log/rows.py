"""Sums or averages: what the rows of a log are, told from the rows themselves.

Many servers log the mean update of a round in place of the sum. With m_t participants in round t,
the rows are then A = D^-1 P G, D = diag(m), and no column in their span is binary: the attack finds
nothing unless the rows are multiplied by m. Where m varies, the span tells the cases apart: P 1 = m
is in that of sums, D^-1 P 1 = 1 in that of averages, also of averages with weights. Both are if a
user takes part in all rounds, and strong noise hides both. Then the energy of a row, between m and
m^2 for sums, says at most "probably sums": updates and participation may change together.

Averages with weights, such as numbers of examples, are never attacked with success. Two facts hide
them. If m is the same in all rounds, sums and plain averages differ by a constant, which changes
nothing, but averages with weights look like both. And noise moves m and 1 off the span. So rows are
"sums" for sure only if m varies and there is no noise; otherwise they are "probably sums".
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from ...errors import ArgumentError
from .._arrays import FloatArray, IntArray
from .gram import gram_matrix
from .record import Log

__all__ = ["Rows", "readings_of", "what_rows_are"]

Rows = Literal["sums", "probably sums", "averages", "averages without participants", "unclear"]
"""`what_rows_are`; averages without participants cannot be made sums."""

_CLEARLY = 0.5
"""One of two distances is clearly smaller if it is at most this fraction of the other."""

_FAR = 0.3
"""The other distance is at least this fraction of that by chance."""

_EXACTLY = 1e-3
"""Without noise, the smaller distance is less than this fraction of the other one."""

_SPARE = 4
"""Rounds beyond the users without which the span says nothing, if participants are unknown."""

_FEW_ROUNDS, _FEW_WINDOWS = 8, 16
"""Fewer rounds or windows do not tell by their energies."""

_ERRORS = 4.0
"""Standard errors by which the exponent of the energy must differ from 1/2."""


def readings_of(log: Log, rows: str = "auto") -> tuple[Rows, list[Log]]:
    """Returns what the rows are, and the logs of sums that they stand for.

    `rows`: "sums", "averages", or "auto" to tell. Where both are possible, both logs are returned.
    Raises ArgumentError for averages without participants, if `rows` says so.
    """
    if rows not in ("auto", "sums", "averages"):
        raise ArgumentError(f"rows: found {rows!r}, expected auto, sums or averages")
    many = _told_participants(log)
    if rows == "averages" and many is None:
        raise ArgumentError(
            "rows: found averages without participants, expected the number of participants of "
            "each round; log participants, or the sums themselves"
        )
    kind: Rows = what_rows_are(log) if rows == "auto" else "sums"
    if rows == "averages":
        kind = "averages"
    if kind in ("sums", "probably sums") or many is None:
        return ("averages without participants" if kind == "averages" else kind), [log]
    return kind, [_as_sums(log, many)] if kind == "averages" else [log, _as_sums(log, many)]


def what_rows_are(log: Log) -> Rows:
    """Tells sums from averages; "unclear" where both are possible."""
    many = _told_participants(log)
    filled = ~log.empty
    if many is not None and len(np.unique(many[filled])) == 1:
        return "probably sums"
    gram = gram_matrix(log.aggregates)
    told = _by_span(log, gram, many)
    return _by_energy(log, gram, many) if told == "unclear" else told


def _told_participants(log: Log) -> IntArray | None:
    """(rounds,): participants, also from counts of single rounds; None where they are unknown."""
    if log.participants is not None or log.counts is None or log.count_error:
        return log.participants
    many = np.where(log.empty, 0, -1)
    for (start, stop), counts in zip(log.windows, log.counts.T, strict=True):
        if stop == start + 1 and (counts >= 0).all():
            many[start] = counts.sum()
    return None if (many < 0).any() or ((many == 0) != log.empty).any() else many


def _as_sums(log: Log, participants: IntArray) -> Log:
    """Multiplies averages by the number of participants."""
    sums = (log.aggregates * participants[:, None]).astype(log.aggregates.dtype)
    return replace(log, aggregates=sums, participants=participants)


def _by_span(log: Log, gram: FloatArray, many: IntArray | None) -> Rows:
    """Compares the distances of m and 1 from the strongest directions, one for each user."""
    users = log.users - int(log.idle.sum())
    filled = ~log.empty
    few = filled.sum() < users + (_SPARE if many is None else 1)
    if few or log.aggregates.shape[1] <= users:  # any span has so few dimensions
        return "unclear"
    vectors = np.linalg.eigh(gram)[1][:, -users:]
    chance = np.sqrt(max(1 - users / int(filled.sum()), 0.0))
    of_averages = _distance(filled.astype(np.float64), vectors)
    if many is None:
        if of_averages < 1e-3 * chance:
            return "averages"
        values = np.linalg.eigvalsh(gram)
        exact = values[: len(values) - users].clip(0).sum() < 1e-10 * values.sum()
        return "sums" if exact and of_averages > 0.1 * chance else "unclear"
    of_sums = _distance(many.astype(np.float64), vectors)
    near, far = sorted((of_sums, of_averages))
    exact = near < _EXACTLY * far and far > _EXACTLY * chance
    if not exact and (near > _CLEARLY * chance or far < _FAR * chance):
        return "unclear"
    if of_sums < _CLEARLY * of_averages:
        return "sums" if exact else "probably sums"
    return "averages" if of_averages < _CLEARLY * of_sums else "unclear"


def _distance(vector: FloatArray, basis: FloatArray) -> float:
    """Returns the distance of a vector from a span, relative to its length."""
    rest = vector - basis @ (basis.T @ vector)
    return float(np.linalg.norm(rest) / np.linalg.norm(vector))


def _by_energy(log: Log, gram: FloatArray, many: IntArray | None) -> Rows:
    """Fits the exponent of m in the energies of the rows, or of windows where m is unknown.

    Says "probably sums" if it is clearly above 1/2. It does not say "averages": updates that shrink
    while more users take part look the same.
    """
    energy, size = np.diag(gram)[~log.empty], None
    if many is not None:
        size = many[~log.empty].astype(np.float64)
    elif log.counts is not None and not log.count_error and (log.counts >= 0).all():
        lengths = np.array([stop - start for start, stop in log.windows])
        size = log.counts.sum(axis=0) / lengths
        energy = np.array([np.diag(gram)[start:stop].mean() for start, stop in log.windows])
    if (
        size is None
        or len(size) < (_FEW_ROUNDS if many is not None else _FEW_WINDOWS)
        or (energy <= 0).any()
        or (size <= 0).any()
    ):
        return "unclear"
    x, y = np.log(size), np.log(energy)
    x, y = x - x.mean(), y - y.mean()
    square = float(x @ x)
    if square < 1e-12:
        return "unclear"
    slope = float(x @ y) / square
    error = float(np.sqrt(((y - slope * x) ** 2).sum() / (len(x) - 2) / square))
    return "probably sums" if slope - 0.5 > _ERRORS * error else "unclear"
