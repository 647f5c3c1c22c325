"""How much updates change from round to round, from the aggregates alone, and what may help.

The attack supposes that a user sends one update again and again. A model that learns makes updates
change: A_t = sum over participants of g_k(t). Marks of it are in the Gram matrix A A^T:

    tail              the share of the energy outside of the u strongest directions: what the
                      attack has to take for noise. Constant updates leave only the users' noise.
    change            how much less of it a stretch of neighbouring rounds has than as many rounds
                      from the whole run: nothing if it is noise, which is alike everywhere; much
                      if it is change, of which a stretch sees little.
    similarity(lag)   mean cosine of A_t and A_t+lag. With constant updates and participants drawn
                      anew each round it is the same for all lags; it falls where the mean update
                      turns, and the lag at which it has halved is the half-life.
    trend             the energy of a participant's update by quarters of the run.

None of this needs the participation.

What may help (`remedies`): rounds divided by the size of an update; fewer rounds, among which
updates change less. Differences of neighbouring rounds are no remedy of their own. If all updates
of a round change by a common b(t), it adds m_t b(t) to a sum of m_t participants. Differences of
the means A_t / m_t take a constant b away, and differences of differences a linear one: what the
n-th lose are the columns m_t t^j with j < n. But their columns are not binary any more, counts say
nothing of them, and neighbours share noise. Letting columns lie in the span of A and of m_t t^j
allows exactly as much, and keeps all three: `solve` does so by itself (`subspace`).
"""

from dataclasses import dataclass

import numpy as np

from .problem import FloatArray, Log
from .subspace import gram_matrix

__all__ = ["Drift", "Remedy", "burnt_in", "measure", "remedies", "rescaled", "slowest"]

_STEADY = 0.05
_STRETCHES, _SUBSETS = 3, 8
_SHARP = 1e-9
"""A tail that is rounding."""


@dataclass(frozen=True, eq=False, slots=True)
class Drift:
    """What `measure` found.

    `tail`: the share of the energy outside of as many directions as users are active. `change`: the
    share of the tail, at least, that is slow change; NaN if there are too few rounds to tell.
    `similarity`: float64, entry lag - 1 is that of `lag`. `half_life`: rounds; infinite if the
    similarity is lost in noise or never halves. `trend`: (4,), energy of an update by quarters, the
    first as 1.
    """

    similarity: FloatArray
    half_life: float
    change: float
    trend: FloatArray
    tail: float

    @property
    def small(self) -> bool:
        """Whether no change was seen that would be worth a remedy."""
        return not self.change >= _STEADY

    @property
    def words(self) -> str:
        """What it means for the attack."""
        if np.isnan(self.change):
            return "there are too few rounds to tell updates that change from updates with noise"
        if self.tail < _SHARP:
            return "updates do not change at all: the attack meets what it supposes"
        if self.small:
            return "updates do not change slowly; what they leave unexplained is noise"
        return (
            f"updates change as the model moves: of what constant updates do not explain "
            f"({self.tail:.1g} of the sums' energy), {self.change:.0%} or more is slow change. By "
            "it true columns are farther from the span of the sums, and fewer are found. An "
            "attacker who keeps the model fixed does not have this problem"
        )


def measure(log: Log, seed: int = 0) -> Drift:
    """The drift of a record, from its sums."""
    gram = gram_matrix(log.aggregates)
    filled = ~log.empty
    active = log.users - int(log.idle.sum())
    tail = _tail(gram, active)
    similarity = _similarity(gram, filled)
    ends = max(1, len(similarity) // 8)
    near = float(similarity[:ends].mean())
    smooth = np.convolve(similarity, np.ones(ends) / ends, mode="valid")
    below = np.flatnonzero(smooth < near / 2)
    clear = near > 3 * float(similarity.std()) / np.sqrt(ends)
    return Drift(
        similarity,
        float(below[0] + (ends + 1) / 2) if clear and len(below) else float("inf"),
        _change(log, gram, active, seed) if tail >= _SHARP else 0.0,
        _trend(log, gram, filled),
        tail,
    )


def _tail(gram: FloatArray, active: int) -> float:
    values = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0)
    return float(values[active:].sum() / values.sum())


def _change(log: Log, gram: FloatArray, active: int, seed: int) -> float:
    """1 - the tail of stretches over that of as many rounds from everywhere; 0 within chance."""
    filled = np.flatnonzero(~log.empty)
    rounds = len(filled)
    length = max(rounds // 2, active + (rounds - active) // 4)
    if not active + 2 < length < rounds:
        return float("nan")
    people = np.diag(gram) if log.participants is None else log.participants
    weights = 1 / np.sqrt(people[filled])
    gram = gram[np.ix_(filled, filled)] * weights[:, None] * weights
    rng = np.random.default_rng(seed)
    starts = np.linspace(0, rounds - length, _STRETCHES).astype(int)
    chosen = [np.arange(start, start + length) for start in starts]
    chosen += [np.sort(rng.choice(rounds, length, replace=False)) for _ in range(_SUBSETS)]
    tails = [_tail(gram[np.ix_(some, some)], active) for some in chosen]
    stretch, anywhere = np.array(tails[:_STRETCHES]), np.array(tails[_STRETCHES:])
    less = float(anywhere.mean() - stretch.mean())
    doubt = float(anywhere.std(ddof=1)) * np.sqrt(1 / _STRETCHES + 1 / _SUBSETS)
    return less / float(anywhere.mean()) if less > 2 * doubt else 0.0


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


@dataclass(frozen=True, eq=False, slots=True)
class Remedy:
    """A record to try the attack on in another's place."""

    name: str
    log: Log


def remedies(log: Log) -> list[Remedy]:
    """What may help where updates change: those that leave enough rounds."""
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
    """The first end of a window from `place` on, so that no count is lost."""
    return min((stop for _, stop in log.windows if stop >= place), default=place)


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
    """The first of `length` rounds in which the ends are most alike; a window begins there.

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

    last = log.rounds - length
    starts = {start for start, _ in log.windows if start <= last} or range(last + 1)
    return max(sorted(starts), key=steadiness)


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
