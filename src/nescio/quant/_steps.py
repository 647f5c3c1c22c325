"""Search for the quantization step of least squared error, per group of weights.

Rounding w to levels step * q has the squared error sum(w^2) - 2 step sum(q w) + step^2 sum(q^2).
For given integers q the minimum is at step = P / Q, with P = sum(q w) and Q = sum(q^2), where the
error is sum(w^2) - P^2 / Q. The search tries steps, rounds to integers q, and returns P / Q of the
integers with the largest P^2 / Q.

For few weights the error is a rugged function of the step; for many weights it is smooth. Groups of
up to 64 weights per level try a geometric progression of steps by rounding all weights, then as
many steps near the best. The number of steps is 65,536 / weights, but at least 96 and at most 128
per weight. Larger groups try 33 steps, then twice 33 steps between the neighbors of the best.
For them `_SortedGroup` computes P and Q from prefix sums over the sorted weights: with c levels
each step takes c binary searches.

Source: thesis, section 3.3.3.
"""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]

_MAX_PER_LEVEL = 64  # weights per level, in a group that is rounded for each step
_MAX_PRODUCTS = 1 << 16  # weights times steps, unless _MIN_STEPS needs more
_MIN_STEPS = 96
_CHUNK = 1 << 16  # integers, which fit in the cache
_STEPS = 33
_ROUNDS = 3
_MAX_FULL_SUMS = 1 << 16  # weights with a prefix sum each; larger groups have one per block
_BLOCK = 64
_SMALLEST = np.finfo(np.float32).smallest_subnormal


def levels(bits: int) -> tuple[int, int]:
    """Returns the lowest and the highest integer of `bits` bits; one bit gives -1 and 1."""
    return (-1, 1) if bits == 1 else (-(1 << bits - 1), (1 << bits - 1) - 1)


def best_steps(groups: FloatArray, bits: int) -> FloatArray:
    """Returns the step of least squared error for each row of finite floats (groups, weights).

    The step is zero if all weights are zero, otherwise at least the smallest float32.
    """
    if bits == 1:
        return _as_steps(np.abs(groups).mean(axis=1, dtype=np.float64), groups)
    few = groups.shape[1] <= _MAX_PER_LEVEL << bits
    found = [
        _best_tried(group, bits) if few else _SortedGroup(group, bits).best() for group in groups
    ]
    return _as_steps(np.array(found), groups)


def widest_steps(groups: FloatArray, bits: int) -> FloatArray:
    """Returns the step whose levels span the whole range, 2 max|w| / 2^b (thesis, 3.3.3).

    With one bit the two levels are the midpoints of the two intervals.
    """
    largest = np.abs(groups).max(axis=1).astype(np.float64)
    return _as_steps(largest / (2 if bits == 1 else 1 << bits - 1), groups)


def _as_steps(steps: DoubleArray, groups: FloatArray) -> FloatArray:
    """Converts steps to float32; a step that underflows becomes the smallest float32."""
    narrow = np.maximum(steps.astype(np.float32), _SMALLEST)
    steps_or_zero: FloatArray = np.where(groups.any(axis=1), narrow, np.float32(0))
    return steps_or_zero


def _range(largest: float, mean: float, bits: int) -> tuple[float, float]:
    """Returns the widest and the narrowest step to try, from the mean and the largest |w|."""
    low, high = levels(bits)
    return 2 * largest / high, mean / -low  # clips nothing; clips all above the mean


def _best_tried(group: FloatArray, bits: int) -> float:
    """Finds the best step for a small group by rounding with many steps."""
    largest = float(np.abs(group).max())
    if largest == 0:
        return 0.0
    weights = (group / np.float64(largest)).astype(np.float32)  # so that no square underflows
    count = min(max(_MAX_PRODUCTS // len(weights), _MIN_STEPS), 128 * len(weights))
    widest, narrowest = _range(1.0, float(np.abs(weights).mean()), bits)
    for _ in range(2):
        steps = np.geomspace(widest, narrowest, count)
        products, squares = _rounded_moments(weights, steps, bits)
        at = int((products * products / np.maximum(squares, 1)).argmax())
        margin = count // 16
        widest, narrowest = steps[max(at - margin, 0)], steps[min(at + margin, count - 1)]
    return float(products[at] / squares[at]) * largest


def _rounded_moments(
    weights: FloatArray, steps: DoubleArray, bits: int
) -> tuple[DoubleArray, DoubleArray]:
    """Returns P and Q of the integers that each step rounds to."""
    low, high = levels(bits)
    factors = (1 / steps[:, np.newaxis]).astype(np.float32)
    moments = np.empty((2, len(steps)))
    chunk = max(1, _CHUNK // len(weights))
    for first in range(0, len(steps), chunk):
        part = slice(first, first + chunk)
        integers = weights * factors[part]
        np.rint(integers, out=integers)
        np.clip(integers, low, high, out=integers)
        moments[0, part] = np.einsum("ij,j->i", integers, weights)
        moments[1, part] = np.einsum("ij,ij->i", integers, integers)
    return moments[0], moments[1]


class _SortedGroup:
    """Sorted weights of one group; computes P and Q of the integers of any step.

    With q_j + 1/2, j = 1 .. c - 1, between the levels, and n_j and s_j the count and the sum of the
    weights above (q_j + 1/2) step:   P = q_0 sum(w) + sum_j s_j,   and
    Q = q_0^2 n + sum_j (2 q_j + 1) n_j.
    """

    def __init__(self, group: FloatArray, bits: int) -> None:
        self._ordered = np.sort(group, axis=None)
        self._block = _BLOCK if len(self._ordered) > _MAX_FULL_SUMS else 1
        whole = len(self._ordered) // self._block * self._block
        blocks = self._ordered[:whole].reshape(-1, self._block).sum(axis=1, dtype=np.float64)
        rest = self._ordered[whole:].sum(dtype=np.float64)
        self._sums = np.concatenate([[0.0], np.cumsum(np.append(blocks, rest))])
        self._bits, self._levels = bits, levels(bits)
        self._between = np.arange(*self._levels) + 0.5

    def best(self) -> float:
        """Finds the best step; each round searches between the neighbors of the best so far."""
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
        """Returns P and Q of each step."""
        count, total = len(self._ordered), self._sums[-1]
        low = self._levels[0]
        with np.errstate(over="ignore"):  # no weight is beyond float32
            ends = (steps[:, np.newaxis] * self._between).astype(np.float32)
        at = np.searchsorted(self._ordered, ends, side="right")
        products = low * total + (total - self._sum_before(at)).sum(axis=1)
        squares = low**2 * count + ((count - at) * (2 * self._between)).sum(axis=1)
        return products, squares

    def _sum_before(self, at: npt.NDArray[np.intp]) -> DoubleArray:
        """Sums the weights before each index: whole blocks, and part of the block it is in."""
        if self._block == 1:
            return self._sums[at]
        indices = (at // _BLOCK * _BLOCK)[..., np.newaxis] + np.arange(_BLOCK)
        inside = indices < at[..., np.newaxis]
        values = self._ordered[np.minimum(indices, len(self._ordered) - 1)]
        partial: DoubleArray = np.where(inside, values, 0).sum(axis=-1, dtype=np.float64)
        return self._sums[at // _BLOCK] + partial
