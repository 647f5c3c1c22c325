"""The control: a permutation test that compares columns with those of chance.

Certificates compare distances with a model of noise. Where updates change in other ways, true
columns are farther off than the model expects and get no certificate. So the same attack is run on
the same sums in shuffled order, where the counts belong to other rounds and no column can be found.
If the sums did not depend on participation, the distances of both attacks would have the same
distribution; their ranks give the probability (Mann and Whitney, 1947).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._attack.options import Options
from .._disaggregate import SPACES, solve
from .._log.record import Log
from .result import Result

__all__ = ["Control", "shuffled_control"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Control:
    """Distances of columns from the sums in their order, and from the shuffled sums.

    `found`, `chance`: float64 (users who took part,). `probability`: the probability of distances
    as small as `found` if the sums do not depend on participation. `agreed`: bool (users who took
    part,), True if the audit's own attack, which knows the participants, found the same column.
    `timed_out`: the time limit ended one of the searches.
    """

    found: FloatArray
    chance: FloatArray
    probability: float
    agreed: npt.NDArray[np.bool_]
    timed_out: bool = False

    @property
    def clear(self) -> npt.NDArray[np.bool_]:
        """(users who took part,): agreed, and at most half as far as any column of chance."""
        return np.asarray(self.agreed & (self.found <= self.chance.min() / 2))


def shuffled_control(log: Log, result: Result, options: Options | None = None) -> Control | None:
    """Runs the test, which takes as long as two attacks; None without counts.

    Both attacks run without the participants of the rounds, which would contradict the counts of
    the shuffled sums. `result` comes from the audit's own attack, and both attacks estimate the
    span in the way that it chose. It chose among SPACES ways, so probabilities are multiplied by
    that number. Of `options`, the seed and the time limit apply.
    """
    if log.counts is None:
        return None
    options = options or Options()
    order = np.arange(log.rounds)
    full = np.flatnonzero(~log.empty)
    order[full] = np.random.default_rng(options.seed).permutation(full)
    active = ~log.idle
    own = Options(
        method="reflect",
        updates=False,
        certify=False,
        seed=options.seed,
        time_limit=options.time_limit,
        even=result.standardized if result.noise else None,
        drift=result.drift if result.noise else None,
    )
    plain, shuffled = (
        solve(Log(sums, log.users, log.windows, log.counts, None, log.count_error), own)
        for sums in (log.aggregates, log.aggregates[order])
    )
    found, chance = _distances(plain)[active], _distances(shuffled)[active]
    agreed = (plain.participation == result.participation).all(axis=0)
    probability = _rank_sum(found, chance) * (SPACES if result.noise else 1)
    late = plain.timed_out or shuffled.timed_out
    return Control(found, chance, min(probability, 1.0), agreed[active], late)


def _distances(result: Result) -> FloatArray:
    return np.array([c.distance for c in result.certificates], np.float64)


def _rank_sum(low: FloatArray, high: FloatArray) -> float:
    """Returns the probability that `low` has such low ranks by chance (normal approximation)."""
    n, m = len(low), len(high)
    ordered = np.sort(high)
    above = m - np.searchsorted(ordered, low, side="right")
    ties = np.searchsorted(ordered, low, side="right") - np.searchsorted(ordered, low)
    wins = float(above.sum() + ties.sum() / 2)
    score = (wins - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)
    return 0.5 * math.erfc(score / math.sqrt(2))
