"""Drift: the change of updates from round to round, measured from the aggregates alone.

The attack assumes that a user sends the same update in every round. As a model learns, updates
change: A_t = sum over participants of g_k(t). The Gram matrix A A^T shows it:

    tail              share of the energy outside the u strongest directions, which the attack
                      treats as noise. Constant updates leave only the users' noise there.
    change            relative reduction of the tail in a stretch of neighboring rounds, compared
                      with as many rounds from the whole run: zero for noise, which is the same
                      everywhere; large for drift, because a stretch contains little of it.
    similarity(lag)   mean cosine of A_t and A_t+lag. With constant updates and participants drawn
                      anew each round it is the same for all lags. It falls as the mean update
                      turns; the lag at which it has halved is the half-life.
    trend             energy of a participant's update by quarters of the run.

None of this needs the participation.
"""

import time
from dataclasses import dataclass

import numpy as np

from .._arrays import FloatArray
from .gram import gram_matrix
from .record import Log

__all__ = ["Drift", "measure"]

_STEADY = 0.05
_STRETCHES, _SUBSETS = 3, 8
_SHARP = 1e-9
"""A tail below this is rounding."""


@dataclass(frozen=True, eq=False, slots=True)
class Drift:
    """Measurements of drift in a log.

    `tail`: share of the energy outside as many directions as there are active users. `change`:
    lower bound on the share of the tail that is slow change; NaN if there are too few rounds.
    `similarity`: float64, entry lag - 1 belongs to `lag`. `half_life`: rounds; infinite if noise
    hides the similarity or it never halves. `trend`: (4,), energy of an update by quarters, the
    first as 1. `complete`: there was time to measure `change`.
    """

    similarity: FloatArray
    half_life: float
    change: float
    trend: FloatArray
    tail: float
    words: str
    complete: bool = True

    @property
    def small(self) -> bool:
        """True if the drift is too small for a remedy."""
        return not self.change >= _STEADY


def measure(log: Log, seed: int = 0, deadline: float = float("inf")) -> Drift:
    """Measures the drift of a log from its sums; no tail or change after the deadline."""
    gram = gram_matrix(log.aggregates)
    filled = ~log.empty
    active = log.users - int(log.idle.sum())
    tail = _tail(gram, active) if time.monotonic() < deadline else float("nan")
    similarity = _similarity(gram, filled)
    ends = max(1, len(similarity) // 8)
    near = float(similarity[:ends].mean())
    smooth = np.convolve(similarity, np.ones(ends) / ends, mode="valid")
    below = np.flatnonzero(smooth < near / 2)
    clear = near > 3 * float(similarity.std()) / np.sqrt(ends)
    change = 0.0 if tail < _SHARP else _change(log, gram, active, seed, deadline)
    return Drift(
        similarity,
        float(below[0] + (ends + 1) / 2) if clear and len(below) else float("inf"),
        float("nan") if change is None else change,
        _trend(log, gram, filled),
        tail,
        _words(change, tail),
        complete=change is not None,
    )


def _tail(gram: FloatArray, active: int) -> float:
    values = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0)
    return float(values[active:].sum() / values.sum())


def _change(log: Log, gram: FloatArray, active: int, seed: int, deadline: float) -> float | None:
    """Returns 1 - the tail of stretches / the tail of random rounds; 0 if it may be chance.

    None if the deadline came before all of them were computed.
    """
    filled = np.flatnonzero(~log.empty)
    rounds = len(filled)
    length = max(rounds // 2, active + (rounds - active) // 4)
    if not active + 2 < length < rounds:
        return float("nan")
    participants = np.diag(gram) if log.participants is None else log.participants
    weights = 1 / np.sqrt(participants[filled])
    gram = gram[np.ix_(filled, filled)] * weights[:, None] * weights
    rng = np.random.default_rng(seed)
    starts = np.linspace(0, rounds - length, _STRETCHES).astype(int)
    chosen = [np.arange(start, start + length) for start in starts]
    chosen += [np.sort(rng.choice(rounds, length, replace=False)) for _ in range(_SUBSETS)]
    tails = []
    for some in chosen:
        if time.monotonic() > deadline:
            return None
        tails.append(_tail(gram[np.ix_(some, some)], active))
    stretch, anywhere = np.array(tails[:_STRETCHES]), np.array(tails[_STRETCHES:])
    gap = float(anywhere.mean() - stretch.mean())
    error = float(anywhere.std(ddof=1)) * np.sqrt(1 / _STRETCHES + 1 / _SUBSETS)
    return gap / float(anywhere.mean()) if gap > 2 * error else 0.0


def _similarity(gram: FloatArray, filled: FloatArray) -> FloatArray:
    """Returns the similarity for lags of up to half the rounds."""
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
    """Returns the energy by quarters, per participant where participants are known."""
    energy = np.diag(gram).copy()
    if log.participants is not None:
        energy /= np.maximum(log.participants, 1)
    quarters = [
        float(part[mask].mean()) if mask.any() else float("nan")
        for part, mask in zip(np.array_split(energy, 4), np.array_split(filled, 4), strict=True)
    ]
    return np.array(quarters) / quarters[0]


def _words(change: float | None, tail: float) -> str:
    """The consequence of the drift for the attack, in words."""
    if change is None:
        return "there was no time to distinguish drift from noise"
    if np.isnan(change):
        return "the log has too few rounds to distinguish drift from noise"
    if tail < _SHARP:
        return "updates do not change from round to round, as the attack assumes"
    if not change >= _STEADY:
        return "updates show no slow drift; the rest of the sums is noise"
    return (
        f"updates drift as the model learns: constant updates leave {tail:.1g} of the "
        f"sums' energy unexplained, and at least {change:.0%} of that is slow drift. It "
        "makes true participation agree less with the sums, so less of it is found. An attacker "
        "who keeps the model fixed avoids this"
    )
