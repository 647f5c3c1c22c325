"""Steps of least squared error, for groups of weights that share one.

Rounding w to levels step * q makes the error sum(w^2) - 2 step sum(q w) + step^2 sum(q^2). For
given integers q it is least at step = P / Q, with P = sum(q w) and Q = sum(q^2), and is P^2 / Q
less than sum(w^2) there. So steps are tried for the integers that they round to, and the best is
P / Q of those with the largest P^2 / Q.

The error of few weights is a rugged function of the step, that of many a smooth one. Groups of up
to 64 weights for each level try steps by rounding all weights: up to 128 for each weight, but 96 or
no more than 65,536 products, in geometric progression, then as many near the best of these. Larger
groups try 33, then 33 between the neighbours of the best, and once more; there `_Sorted` gives P
and Q from sums over the sorted weights: with c levels that costs c look-ups, whatever the size.

Source: thesis, section 3.3.3.
"""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]

_MOST_TRIED = 64  # weights for each level, of a group that is rounded for each step
_TRIES = 1 << 16  # its weights times its steps, within bounds
_FEWEST_STEPS = 96
_AT_ONCE = 1 << 16  # integers, so that they stay in the cache
_STEPS = 33
_ROUNDS = 3
_MOST_SINGLE = 1 << 16  # weights with a sum up to each; more have one for each run
_RUN = 64
_SMALLEST = np.finfo(np.float32).smallest_subnormal


def levels(bits: int) -> tuple[int, int]:
    """The lowest and the highest integer of so many bits; one bit is -1 and 1."""
    return (-1, 1) if bits == 1 else (-(1 << bits - 1), (1 << bits - 1) - 1)


def best_steps(groups: FloatArray, bits: int) -> FloatArray:
    """The step of least squared error of each group, for finite groups (count, weights).

    Zero for a group of zeros alone; of others no less than the smallest float32.
    """
    if bits == 1:
        return _as_steps(np.abs(groups).mean(axis=1, dtype=np.float64), groups)
    few = groups.shape[1] <= _MOST_TRIED << bits
    found = [_tried(group, bits) if few else _Sorted(group, bits).best() for group in groups]
    return _as_steps(np.array(found), groups)


def widest_steps(groups: FloatArray, bits: int) -> FloatArray:
    """The step of levels over the whole range, thesis section 3.3.3: 2 max|w| / 2^b.

    With one bit the two levels stand in the middles of the two steps.
    """
    largest = np.abs(groups).max(axis=1).astype(np.float64)
    return _as_steps(largest / (2 if bits == 1 else 1 << bits - 1), groups)


def _as_steps(steps: DoubleArray, groups: FloatArray) -> FloatArray:
    """Steps as float32; what would vanish is the smallest one, unless all weights are zero."""
    narrow = np.maximum(steps.astype(np.float32), _SMALLEST)
    steps_or_zero: FloatArray = np.where(groups.any(axis=1), narrow, np.float32(0))
    return steps_or_zero


def _range(largest: float, mean: float, bits: int) -> tuple[float, float]:
    """Steps to search between, from the mean and the largest |w|."""
    low, high = levels(bits)
    return 2 * largest / high, mean / -low  # the first clips nothing, the last all above the mean


def _tried(group: FloatArray, bits: int) -> float:
    """The best step for few weights: of many steps, by rounding."""
    largest = float(np.abs(group).max())
    if largest == 0:
        return 0.0
    weights = (group / np.float64(largest)).astype(np.float32)  # so that no square vanishes
    count = min(max(_TRIES // len(weights), _FEWEST_STEPS), 128 * len(weights))
    widest, narrowest = _range(1.0, float(np.abs(weights).mean()), bits)
    for _ in range(2):
        steps = np.geomspace(widest, narrowest, count)
        products, squares = _rounded_moments(weights, steps, bits)
        at = int((products * products / np.maximum(squares, 1)).argmax())
        near = count // 16
        widest, narrowest = steps[max(at - near, 0)], steps[min(at + near, count - 1)]
    return float(products[at] / squares[at]) * largest


def _rounded_moments(
    weights: FloatArray, steps: DoubleArray, bits: int
) -> tuple[DoubleArray, DoubleArray]:
    """P and Q of the integers that each step rounds to."""
    low, high = levels(bits)
    factors = (1 / steps[:, np.newaxis]).astype(np.float32)
    moments = np.empty((2, len(steps)))
    at_once = max(1, _AT_ONCE // len(weights))
    for first in range(0, len(steps), at_once):
        part = slice(first, first + at_once)
        integers = weights * factors[part]
        np.rint(integers, out=integers)
        np.clip(integers, low, high, out=integers)
        moments[0, part] = np.einsum("ij,j->i", integers, weights)
        moments[1, part] = np.einsum("ij,ij->i", integers, integers)
    return moments[0], moments[1]


class _Sorted:
    """One group's weights in order, and P and Q of the integers of any step.

    With q_j + 1/2, j = 1 .. c - 1, between the levels, and n_j and s_j the count and the sum of the
    weights above (q_j + 1/2) step:   P = q_0 sum(w) + sum_j s_j,   and
    Q = q_0^2 n + sum_j (2 q_j + 1) n_j.
    """

    def __init__(self, group: FloatArray, bits: int) -> None:
        self._ordered = np.sort(group, axis=None)
        self._run = _RUN if len(self._ordered) > _MOST_SINGLE else 1
        whole = len(self._ordered) // self._run * self._run
        runs = self._ordered[:whole].reshape(-1, self._run).sum(axis=1, dtype=np.float64)
        rest = self._ordered[whole:].sum(dtype=np.float64)
        self._sums = np.concatenate([[0.0], np.cumsum(np.append(runs, rest))])
        self._bits, self._levels = bits, levels(bits)
        self._between = np.arange(*self._levels) + 0.5

    def best(self) -> float:
        """The best step; at each round, between the neighbours of the best so far."""
        largest = max(abs(float(self._ordered[0])), abs(float(self._ordered[-1])))
        if largest == 0:
            return 0.0
        mean = float(np.abs(self._ordered).mean(dtype=np.float64))
        widest, narrowest = _range(largest, mean, self._bits)
        for _ in range(_ROUNDS):
            steps = np.geomspace(widest, narrowest, _STEPS)
            products, squares = self._moments(steps)
            best = int((products * products / np.maximum(squares, 1)).argmax())
            widest, narrowest = steps[max(best - 1, 0)], steps[min(best + 1, _STEPS - 1)]
        return float(products[best] / squares[best])

    def _moments(self, steps: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
        """P and Q of each step."""
        count, total = len(self._ordered), self._sums[-1]
        low = self._levels[0]
        with np.errstate(over="ignore"):  # beyond float32 there are no weights
            ends = (steps[:, np.newaxis] * self._between).astype(np.float32)
        at = np.searchsorted(self._ordered, ends, side="right")
        products = low * total + (total - self._sum_before(at)).sum(axis=1)
        squares = low**2 * count + ((count - at) * (2 * self._between)).sum(axis=1)
        return products, squares

    def _sum_before(self, at: npt.NDArray[np.intp]) -> DoubleArray:
        """The sum of the weights before each place: of whole runs, and of the run it lies in."""
        if self._run == 1:
            return self._sums[at]
        places = (at // _RUN * _RUN)[..., np.newaxis] + np.arange(_RUN)
        inside = places < at[..., np.newaxis]
        values = self._ordered[np.minimum(places, len(self._ordered) - 1)]
        partial: DoubleArray = np.where(inside, values, 0).sum(axis=-1, dtype=np.float64)
        return self._sums[at // _RUN] + partial
