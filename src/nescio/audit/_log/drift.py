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
"""

from dataclasses import dataclass

import numpy as np

from .._arrays import FloatArray
from .gram import gram_matrix
from .record import Log

__all__ = ["Drift", "measure"]

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
