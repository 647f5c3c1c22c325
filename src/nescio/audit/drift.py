"""How much updates change from round to round, from the aggregates alone, and what may help.

The attack supposes that a user sends one update again and again. A model that learns makes updates
change: A_t = sum over participants of g_k(t). Three marks of it are in the Gram matrix A A^T:

    similarity(lag)   mean of <A_t, A_t+lag> over the mean energy. With constant updates and
                      participants drawn anew each round it is the same for all lags from 1 on;
                      with drift it falls, and the lag at which it has halved is the half-life.
    trend             the energy of a participant's update by quarters of the run.
    tail              the share of the energy outside of the u strongest directions: what the
                      attack has to take for noise. Constant updates leave only the users' noise.

None of this needs the participation; the tail is an upper bound for what drift adds.
"""

from dataclasses import dataclass

import numpy as np

from .problem import FloatArray, Log
from .subspace import gram_matrix

__all__ = ["Drift", "burnt_in", "measure", "remedies", "rescaled", "slowest"]

_STEADY, _FAST = 0.05, 0.5


@dataclass(frozen=True, eq=False, slots=True)
class Drift:
    """What `measure` found.

    `similarity`: float64, entry lag - 1 is that of `lag`. `half_life`: rounds; infinite if the
    similarity never halves. `change`: 1 - similarity of the longest lags over that of the shortest,
    0 for constant updates. `trend`: (4,), energy of an update by quarters, the first as 1. `tail`:
    the share of the energy outside of as many directions as users are active.
    """

    similarity: FloatArray
    half_life: float
    change: float
    trend: FloatArray
    tail: float

    @property
    def words(self) -> str:
        """What it means for the attack."""
        if self.change < _STEADY:
            return "updates hardly change: the attack meets what it supposes"
        if self.change < _FAST:
            return (
                f"updates change by {self.change:.0%} over the run: to the attack that is noise; "
                "columns that it finds are checked all the same"
            )
        return (
            f"updates change by {self.change:.0%} over the run (half-life {self.half_life:.0f} "
            "rounds): the attack will mostly fail on the whole run. An attacker who keeps the "
            "model fixed, or a slower stretch of rounds, does not have this problem"
        )


def measure(log: Log) -> Drift:
    """The drift of a record, from its sums."""
    gram = gram_matrix(log.aggregates)
    filled = ~log.empty
    active = log.users - int(log.idle.sum())
    values = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0)
    similarity = _similarity(gram, filled)
    ends = max(1, len(similarity) // 8)
    near, far = float(similarity[:ends].mean()), float(similarity[-ends:].mean())
    change = float(np.clip(1 - far / near, 0, 1)) if near > 0 else 1.0
    smooth = np.convolve(similarity, np.ones(ends) / ends, mode="valid")
    below = np.flatnonzero(smooth < near / 2)
    return Drift(
        similarity,
        float(below[0] + (ends + 1) / 2) if len(below) else float("inf"),
        change,
        _trend(log, gram, filled),
        float(values[active:].sum() / values.sum()),
    )


def _similarity(gram: FloatArray, filled: FloatArray) -> FloatArray:
    """For lags of up to half of the rounds."""
    energy = np.sqrt(np.diag(gram))
    scaled = gram / np.where(filled, energy, 1)[:, None] / np.where(filled, energy, 1)[None, :]
    both = np.outer(filled, filled)
    longest = max(1, len(gram) // 2)
    return np.array(
        [
            np.diagonal(scaled, lag).sum() / max(1, np.diagonal(both, lag).sum())
            for lag in range(1, longest + 1)
        ]
    )


def _trend(log: Log, gram: FloatArray, filled: FloatArray) -> FloatArray:
    """Energy by quarters, per participant where their number is known."""
    energy = np.diag(gram).copy()
    if log.participants is not None:
        energy /= np.maximum(log.participants, 1)
    quarters = [
        float(part[mask].mean()) if mask.any() else float("nan")
        for part, mask in zip(np.array_split(energy, 4), np.array_split(filled, 4), strict=True)
    ]
    return np.array(quarters) / quarters[0]


def remedies(log: Log) -> dict[str, Log]:
    """Records to try the attack on, by name: those that leave enough rounds."""
    found = {"as it is": log, "rescaled": rescaled(log)}
    active = log.users - int(log.idle.sum())
    if 3 * log.rounds // 4 > active:
        found["burn-in"] = burnt_in(log, log.rounds // 4)
    length = max(active + 1, min(2 * active, 3 * log.rounds // 4))
    if length < log.rounds:
        start = slowest(log, length)
        found["slowest rounds"] = cut(log, start, start + length)
    return found


def burnt_in(log: Log, rounds: int) -> Log:
    """The record without its first rounds, when updates change most."""
    return cut(log, rounds, log.rounds)


def cut(log: Log, start: int, stop: int) -> Log:
    """Rounds from `start` to before `stop`, with the windows that lie in them.

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
    """The first of `length` rounds in which the halves are most alike.

    The measure is the similarity between the first and the last third of the stretch, against that
    of neighbouring rounds.
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
        near *= third / max(1, third - 1)  # the diagonals are left out
        return 2 * block(start, start + third, stop - third, stop) / max(near, 1e-300)

    return max(range(log.rounds - length + 1), key=steadiness)


def rescaled(log: Log) -> Log:
    """The record with rounds divided by the size of an update there, smoothed over neighbours.

    Where updates shrink as the model learns, but keep their directions, this undoes it: dividing a
    round by a number leaves its participants what they are.
    """
    energy = (np.asarray(log.aggregates, np.float64) ** 2).mean(axis=1)
    people = np.ones(log.rounds) if log.participants is None else log.participants
    width = min(log.rounds, 2 * max(4, log.rounds // 20) + 1)
    kernel = np.ones(width)
    size = np.convolve(energy, kernel, "same") / np.maximum(np.convolve(people, kernel, "same"), 1)
    size = np.sqrt(np.where(size > 0, size / size.mean(), 1))
    aggregates = (log.aggregates / size[:, None]).astype(log.aggregates.dtype)
    return Log(aggregates, log.users, log.windows, log.counts, log.participants, log.count_error)
