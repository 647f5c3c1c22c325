"""Whether columns that are not near enough are nearer than chance allows: a permutation test.

Certificates measure distances against a model of noise. Where updates change from round to round in
other ways, true columns are farther off than the model expects, and are not called found. So the
same attack is made on the same sums in shuffled order, where the counts belong to other rounds and
there is nothing to find. If the sums did not tell who took part, the distances of both would come
from one distribution; their ranks say how probable that is (Mann and Whitney, 1947).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._disaggregate import SPACES, solve
from .._log.record import Log
from .result import Result

__all__ = ["Control", "shuffled_control"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Control:
    """Distances of the columns from the sums as they are, and from the sums shuffled.

    `found`, `chance`: float64 (users who took part,). `probability`: of so small distances, or
    smaller ones, if the sums told nothing of who took part. `agreed`: bool (users who took part,),
    whose column is the one that the audit's own attack, which knows the participants, has found.
    """

    found: FloatArray
    chance: FloatArray
    probability: float
    agreed: npt.NDArray[np.bool_]

    @property
    def clear(self) -> npt.NDArray[np.bool_]:
        """(users who took part,): agreed, and at most half as far as any column of chance."""
        return np.asarray(self.agreed & (self.found <= self.chance.min() / 2))


def shuffled_control(
    log: Log,
    result: Result,
    *,
    seed: int = 0,
    time_limit: float | None = None,
) -> Control | None:
    """The test, which takes as long as two attacks; None without counts to shuffle against.

    Both attacks are made in the same way, without the participants of the rounds, which would
    contradict the counts once shuffled. `result`: of the audit's own attack, whose estimate of the
    span both take; as it was chosen among SPACES, probabilities are multiplied by as many. Raises
    ArgumentError for no seed or limit.
    """
    if log.counts is None:
        return None
    order = np.arange(log.rounds)
    full = np.flatnonzero(~log.empty)
    order[full] = np.random.default_rng(seed).permutation(full)
    active = ~log.idle
    space: dict[str, Any] = (
        {"even": result.standardized, "drift": result.drift} if result.noise else {}
    )
    plain, shuffled = (
        solve(
            Log(sums, log.users, log.windows, log.counts, None, log.count_error),
            method="reflect",
            updates=False,
            seed=seed,
            time_limit=time_limit,
            **space,
        )
        for sums in (log.aggregates, log.aggregates[order])
    )
    found, chance = _distances(plain)[active], _distances(shuffled)[active]
    agreed = (plain.participation == result.participation).all(axis=0)
    probability = _rank_sum(found, chance) * (SPACES if result.noise else 1)
    return Control(found, chance, min(probability, 1.0), agreed[active])


def _distances(result: Result) -> FloatArray:
    return np.array([c.distance for c in result.certificates], np.float64)


def _rank_sum(low: FloatArray, high: FloatArray) -> float:
    """The probability of ranks of `low` this low by chance, by the normal approximation."""
    n, m = len(low), len(high)
    ordered = np.sort(high)
    above = m - np.searchsorted(ordered, low, side="right")
    ties = np.searchsorted(ordered, low, side="right") - np.searchsorted(ordered, low)
    wins = float(above.sum() + ties.sum() / 2)
    score = (wins - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)
    return 0.5 * math.erfc(score / math.sqrt(2))
