"""Remedies: changed logs on which the attack may succeed where updates drift.

Rounds are divided by the size of an update, or a part of the rounds is used in which updates change
less. Differences of neighboring rounds are not among them. If all updates of a round change by a
common b(t), a sum of m_t participants changes by m_t b(t). Differences of the means A_t / m_t
remove a constant b, second differences a linear one: n-th differences remove the columns m_t t^j
with j < n. But columns of differences are not binary, counts do not apply to them, and neighbors
share noise. The attack instead adds the columns m_t t^j to the span of A, which allows the same
changes and keeps all three properties (`drift` of `estimate.py`).
"""

from dataclasses import dataclass

import numpy as np

from .gram import gram_matrix
from .record import Log

__all__ = ["Remedy", "burnt_in", "remedies", "rescaled", "slowest"]


@dataclass(frozen=True, eq=False, slots=True)
class Remedy:
    """A changed log to attack in place of the original."""

    name: str
    log: Log


def remedies(log: Log) -> list[Remedy]:
    """Returns the remedies that leave enough rounds."""
    found = [Remedy("rounds divided by the size of an update", rescaled(log))]
    active = log.users - int(log.idle.sum())
    first = _next(log, log.rounds // 3)
    if 4 * (log.rounds - first) > 5 * active and first:
        found.append(Remedy(f"without the first {first} rounds", burnt_in(log, first)))
    for times in (3, 2):
        length = max(times * active, active + 2)
        if length <= 3 * log.rounds // 4:
            start = slowest(log, length)
            stop = _next(log, start + length)
            found.append(Remedy(f"rounds {start + 1} to {stop} alone", cut(log, start, stop)))
    return found


def _next(log: Log, place: int) -> int:
    """Returns the first end of a window at or after `place`, so that a cut loses no count."""
    return min((stop for _, stop in log.windows if stop >= place), default=place)


def burnt_in(log: Log, rounds: int) -> Log:
    """Drops the first rounds, in which updates change most."""
    return cut(log, rounds, log.rounds)


def cut(log: Log, start: int, stop: int) -> Log:
    """Returns rounds `start` to `stop` (excluded), with the windows inside.

    Raises ArgumentError if too few rounds are left.
    """
    inside = [i for i, (a, b) in enumerate(log.windows) if start <= a and b <= stop]
    return Log(
        log.aggregates[start:stop],
        log.users,
        tuple((log.windows[i][0] - start, log.windows[i][1] - start) for i in inside),
        None if log.counts is None else log.counts[:, inside],
        None if log.participants is None else log.participants[start:stop],
        log.count_error,
    )


def slowest(log: Log, length: int) -> int:
    """Returns the start of the `length` rounds whose ends are most similar; a window begins there.

    The measure is the similarity between the first and the last third of the stretch, relative to
    that of neighboring rounds.
    """
    gram = gram_matrix(log.aggregates)
    energy = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    scaled = gram / energy[:, None] / energy[None, :]
    scaled[np.diag_indices(len(scaled))] = 0
    sums = np.zeros((log.rounds + 1, log.rounds + 1))
    sums[1:, 1:] = scaled.cumsum(axis=0).cumsum(axis=1)

    def block(a: int, b: int, c: int, d: int) -> float:
        return float(sums[b, d] - sums[a, d] - sums[b, c] + sums[a, c])

    third = max(1, length // 3)

    def steadiness(start: int) -> float:
        stop = start + length
        near = block(start, start + third, start, start + third)
        near += block(stop - third, stop, stop - third, stop)
        near *= third / max(1, third - 1)  # the diagonals are excluded
        return 2 * block(start, start + third, stop - third, stop) / max(near, 1e-300)

    last = log.rounds - length
    starts = {start for start, _ in log.windows if start <= last} or range(last + 1)
    return max(sorted(starts), key=steadiness)


def rescaled(log: Log) -> Log:
    """Divides each round by the size of an update there, smoothed over neighboring rounds.

    This compensates for updates that shrink as the model learns but keep their directions. Scaling
    a round does not change its participants.
    """
    energy = (np.asarray(log.aggregates, np.float64) ** 2).mean(axis=1)
    participants = np.ones(log.rounds) if log.participants is None else log.participants
    width = min(log.rounds, 2 * max(4, log.rounds // 20) + 1)
    kernel = np.ones(width)
    size = np.convolve(energy, kernel, "same") / np.maximum(
        np.convolve(participants, kernel, "same"), 1
    )
    size = np.sqrt(np.where(size > 0, size / size.mean(), 1))
    aggregates = (log.aggregates / size[:, None]).astype(log.aggregates.dtype)
    return Log(aggregates, log.users, log.windows, log.counts, log.participants, log.count_error)
