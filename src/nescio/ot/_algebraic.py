"""The cost of algebraic attacks on regular LPN, where a block's noise is one of few patterns.

Sources. [BO] Briaud and Øygarden, "A New Algebraic Approach to the Regular Syndrome Decoding
Problem and Implications for PCG Constructions", Eurocrypt 2023, eprint 2023/176. [AGB2] "AGB 2.0",
eprint 2025/1476. [WWYL] Wang, Wang, Yang, Liu, Yu, Zhang, Wang, "A Hybrid Algorithm for the Regular
Syndrome Decoding Problem", Asiacrypt 2025, eprint 2025/1284. The costs over F_2 of the last two are
those of the public estimator that the authors of [WWYL] and others maintain (lpnestimator.com;
github.com/1234wangtr/Code_estimators at 41e013c). We did not have the papers themselves. This
module gives the estimator's results, or lower ones where its search stops at a local minimum.

All costs are logarithms to base 2.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ._decoding import Floats, Instance

_SAMPLES = 4096  # of a search over one number
_GRID = 192  # of each number in a search over two
_MAX_ENUMERATED = 64  # blocks; the optimum is 3 to 8 for instances of 80 to 180 bits
_DEGREES = (2, 3, 4)  # as in the published estimators; higher degrees cost too much at these sizes
_STRASSEN = 2.8
_STRASSEN_FACTOR = 5.64  # of a dense matrix product, as counted by [AGB2]


def hybrid(given: Instance) -> float:
    """Estimates guessing zeros of all blocks but g, enumerating those g, and quadratic equations.

    [WWYL], for F_2. With s guesses spread evenly over t - g blocks, linear equations leave `free`
    unknowns; two noisy positions of a block multiply to zero, which gives quadratic equations.
    """
    it = given.even()
    if it.k <= it.t:
        return math.log2(it.n)  # the parities of the blocks determine the secret
    lowest = math.inf
    for enumerated in range(min(it.t, _MAX_ENUMERATED)):
        if enumerated * math.log2(it.block) > lowest:
            break
        blocks = it.t - enumerated
        high = blocks * (it.block - 1) - 1
        cost = _hybrid_cost(it, enumerated)
        lowest = min(lowest, _minimum(cost, 0, high))
        solved = it.k - it.t - enumerated * (it.block - 1)
        if 0 <= solved <= high:
            lowest = min(lowest, float(cost(np.array([solved], float))[0]))
    return lowest


def _hybrid_cost(it: Instance, enumerated: int) -> Callable[[Floats], Floats]:
    """Makes the cost of s guesses, `guesses // blocks` or one more of them in each block."""
    blocks = it.t - enumerated

    def cost(guesses: Floats) -> Floats:
        each, more = np.divmod(guesses, blocks)
        left = it.block - 1 - each
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = more * np.log2(left / it.block) + (blocks - more) * np.log2(
                (left + 1) / it.block
            )
            free = it.k - it.t - guesses
            rows = it.n - it.k - (it.n - it.k) // (it.block - 1) * (left - 1)
            elimination = np.maximum(rows * (it.n - it.k) * (rows + free), 1)
            quadratic = (blocks - more) * (left - 1) * left / 2 + more * (left - 1) * (left - 2) / 2
            solved = _quadratic_cost(it, enumerated, free, quadratic)
            total = np.where(
                free <= 0, np.log2(elimination), np.logaddexp2(np.log2(elimination), solved)
            )
        possible = it.n - it.t - guesses > 0
        return np.where(possible & ~np.isnan(total), total - chance, np.inf)

    return cost


def _quadratic_cost(it: Instance, enumerated: int, free: Floats, quadratic: Floats) -> Floats:
    """Computes log2 of one linearization plus solving the rest for each choice of the g blocks.

    Method of Bouillaguet, Delaplace and Trimoska (Africacrypt 2022): the monomials in the other
    `rest` unknowns are eliminated, which needs rest^2 / 2 equations.
    """
    width = (it.block - 1) * enumerated
    rest = free - width
    once = np.maximum(rest**4 * free**2 / 8 / np.log2(np.maximum(rest**2 / 2, 2)), 1)
    substituted = 1.25 * (2 * rest**2 * width + rest * width**2)
    solved = (2.5 * rest) ** 3 / np.log2(np.maximum(2.5 * rest, 2))
    each = np.log2(np.maximum(substituted + solved, 1)) + enumerated * math.log2(it.block)
    enough = (rest >= 0) & ((rest == 0) | (rest <= np.sqrt(2 * quadratic) - 2))
    none = enumerated * math.log2(it.block)
    total = np.where(rest == 0, np.logaddexp2(0, none), np.logaddexp2(np.log2(once), each))
    return np.where(enough, total, np.inf)


def _minimum(cost: Callable[[Floats], Floats], low: int, high: int) -> float:
    """Finds the lowest cost of an integer in [low, high]: samples, then finer around the best."""
    while True:
        samples = np.unique(np.linspace(low, high, _SAMPLES).round())
        costs = cost(samples)
        best = int(np.argmin(costs))
        if len(samples) == high - low + 1 or not np.isfinite(costs[best]):
            return float(costs[best])
        low = int(samples[max(best - 1, 0)])
        high = int(samples[min(best + 1, len(samples) - 1)])


def _series(it: Instance, f: Floats, mu: Floats) -> tuple[dict[int, Floats], dict[int, Floats]]:
    """Counts for each degree d the monomials of degree 1 to d, and those the equations leave.

    [BO], section 4, over F_2: with mu guessed zeros in each of f blocks, monomials have the series
    (1 + (b-1) z)^(t-f) (1 + (b-1-mu) z)^f, b the block, and the parity checks divide it by
    (1 + z)^(n-k-1). The system is solved at the first degree that leaves none.
    """
    degrees = max(_DEGREES)
    monomials = _product(
        _power(it.block - 1 - mu, f, degrees), _power(it.block - 1, it.t - f, degrees)
    )
    left = _product(monomials, _power(1, -(it.n - it.k - 1), degrees))
    counts, remaining = np.cumsum(monomials[1:], axis=0), np.cumsum(left[1:], axis=0)
    return {d: counts[d - 1] for d in _DEGREES}, {d: remaining[d - 1] for d in _DEGREES}


def _power(base: ArrayLike, exponent: ArrayLike, degree: int) -> list[Floats]:
    """Computes the coefficients of (1 + base z)^exponent."""
    terms = [np.ones(np.broadcast_shapes(np.shape(base), np.shape(exponent)))]
    for index in range(degree):
        terms.append(terms[-1] * np.asarray(base) * (np.asarray(exponent) - index) / (index + 1))
    return terms


def _product(one: list[Floats], other: list[Floats]) -> list[Floats]:
    result = [np.zeros(()) for _ in one]
    for d in range(len(one)):
        for i in range(d + 1):
            result[d] = result[d] + one[i] * other[d - i]
    return result


def agb(given: Instance) -> float:
    """Estimates guessing mu zeros in each of f blocks, then linear algebra. [BO].

    The linear algebra is at the degree of regularity. The cost is 3 (k + 1 - f mu) M^2 for M
    monomials (Wiedemann's algorithm), divided by the chance of a correct guess.
    """
    it = given

    def cost(f: Floats, mu: Floats) -> tuple[Floats, list[tuple[int, int]]]:
        counts, left = _series(it, f, mu)
        degree = _witness(left)
        size = np.where(degree == 0, np.inf, 0.0)
        for d in _DEGREES:
            size = np.where(degree == d, np.log2(np.maximum(counts[d], 1)), size)
        work = 2 * size + np.log2(np.maximum(3 * (it.k + 1 - f * mu), 1))
        total = np.where(f * mu <= it.k, work - _chance(it, f, mu), np.inf)
        at = np.unravel_index(np.argmin(total), total.shape)
        return total, [(int(at[0]), int(at[1]))]

    return _minimum_on_grid(it, cost)


def agb2(given: Instance) -> float:
    """Estimates `agb` in two stages: eliminate with few guessed zeros, then guess more. [AGB2].

    Over F_2. The guesses f' <= f and mu' <= mu of the first stage are correct more often, so its
    large matrix is reduced fewer times. It eliminates `rank` monomials; the second stage works on
    the others.
    """
    it = given

    def cost(f: Floats, mu: Floats) -> tuple[Floats, list[tuple[int, int]]]:
        counts, left = _series(it, f, mu)
        chance = _chance(it, f, mu)
        possible = f * mu <= it.k
        best, points = np.full(np.broadcast_shapes(f.shape, mu.shape), np.inf), []
        for d in _DEGREES:
            size, rest = np.maximum(counts[d], 1), np.maximum(left[d], 1)
            rank = np.maximum(size - rest, 2)
            first = np.minimum(
                _dense(size), np.log2(size) + 2 * np.log2(rank) - np.log2(np.log2(rank))
            )
            second = np.maximum(_dense(np.minimum(rest, rank)), 0)
            solved = np.where((_smallest(left, d) < 1) & possible, -chance, np.inf)
            total = np.logaddexp2(np.maximum(first, 0) - chance, second + _from_above(solved))
            total = np.where((f >= 2) & (mu >= 1) & possible, total, np.inf)
            if np.min(total) < np.min(best):
                at = np.unravel_index(np.argmin(total), total.shape)
                tail = solved[at[0] :, at[1] :]
                then = np.unravel_index(np.argmin(tail), tail.shape)
                points = [(int(at[0]), int(at[1])), (int(at[0] + then[0]), int(at[1] + then[1]))]
            best = np.minimum(best, total)
        return best, points

    return min(agb(given), _minimum_on_grid(it, cost))


def _dense(size: Floats) -> Floats:
    result: Floats = math.log2(_STRASSEN_FACTOR) + _STRASSEN * np.log2(size)
    return result


def _chance(it: Instance, f: Floats, mu: Floats) -> Floats:
    result: Floats = f * np.log2(1 - mu / it.block)
    return result


def _smallest(left: dict[int, Floats], degree: int) -> Floats:
    """Finds the fewest monomials that any degree up to `degree` leaves."""
    result: Floats = np.minimum.reduce([left[d] for d in _DEGREES if d <= degree])
    return result


def _witness(left: dict[int, Floats]) -> Floats:
    """Finds the first degree that leaves no monomials, or 0."""
    degree = np.zeros(left[_DEGREES[0]].shape)
    for d in reversed(_DEGREES):
        degree = np.where(left[d] < 1, d, degree)
    return degree


def _from_above(values: Floats) -> Floats:
    """Computes at each grid point the minimum over all points with f and mu at least as large."""
    return np.minimum.accumulate(np.minimum.accumulate(values[::-1, ::-1], axis=0), axis=1)[
        ::-1, ::-1
    ]


def _minimum_on_grid(
    it: Instance, cost: Callable[[Floats, Floats], tuple[Floats, list[tuple[int, int]]]]
) -> float:
    """Finds the lowest cost over f blocks and mu zeros, on grids that become finer."""
    fs = _grid(0, it.t)
    mus = np.unique(np.concatenate([_grid(0, it.block - 1), _geometric(it.block - 1)]))
    lowest = math.inf
    for _ in range(5):
        costs, points = cost(fs[:, None], mus[None, :])
        here = float(np.min(costs))
        lowest = min(lowest, here)
        if not points or not math.isfinite(here):
            break
        fs = _finer(fs, [row for row, _ in points])
        mus = _finer(mus, [column for _, column in points])
    return lowest


def _grid(low: float, high: float) -> Floats:
    return np.unique(np.linspace(low, high, _GRID).round())


def _geometric(high: int) -> Floats:
    return np.unique(np.geomspace(1, max(high, 1), _GRID).round())


def _finer(values: Floats, chosen: list[int]) -> Floats:
    """Makes grids between the neighbors of the chosen points."""
    last = len(values) - 1
    parts = [_grid(values[max(at - 1, 0)], values[min(at + 1, last)]) for at in chosen]
    return np.unique(np.concatenate(parts))
