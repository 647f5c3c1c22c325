"""What it costs to solve regular LPN as equations: the noise of a block is one of few patterns.

Sources. [BO] Briaud and Øygarden, "A New Algebraic Approach to the Regular Syndrome Decoding
Problem and Implications for PCG Constructions", Eurocrypt 2023, eprint 2023/176. [AGB2] "AGB 2.0",
eprint 2025/1476. [WWYL] Wang, Wang, Yang, Liu, Yu, Zhang, Wang, "A Hybrid Algorithm for the Regular
Syndrome Decoding Problem", Asiacrypt 2025, eprint 2025/1284. The costs over F_2 of the last two are
those of the public estimator that the authors of [WWYL] and others keep (lpnestimator.com;
github.com/1234wangtr/Code_estimators at 41e013c). The papers themselves were not at hand; what is
here gives that estimator's results, or less where its search stops at a local minimum.

All costs are logarithms to base 2.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ._decoding import Floats, Instance

_SAMPLES = 4096  # of one number that is searched
_GRID = 192  # of each of two
_MOST_ENUMERATED = 64  # blocks: the optimum is at 3 to 8 for instances of 80 to 180 bits
_DEGREES = (2, 3, 4)  # as the published estimators do; more costs too much at these sizes
_STRASSEN = 2.8
_STRASSEN_FACTOR = 5.64  # of a product of dense matrices, as [AGB2] counts it


def hybrid(given: Instance) -> float:
    """Guess some zeros of every block but g, enumerate those g, and solve quadratic equations.

    [WWYL], for F_2. With s guesses spread evenly over t - g blocks, linear equations leave `free`
    unknowns; two noisy positions of a block multiply to zero, which gives quadratic equations.
    """
    it = given.even()
    if it.k <= it.t:
        return math.log2(it.n)  # the blocks' parities alone leave nothing unknown
    least = math.inf
    for enumerated in range(min(it.t, _MOST_ENUMERATED)):
        if enumerated * math.log2(it.block) > least:
            break
        blocks = it.t - enumerated
        most = blocks * (it.block - 1) - 1
        cost = _hybrid_cost(it, enumerated)
        least = min(least, _least_of(cost, 0, most))
        nothing_left = it.k - it.t - enumerated * (it.block - 1)
        if 0 <= nothing_left <= most:
            least = min(least, float(cost(np.array([nothing_left], float))[0]))
    return least


def _hybrid_cost(it: Instance, enumerated: int) -> Callable[[Floats], Floats]:
    """The cost of s guesses, of which `guesses // blocks` or one more fall in each block."""
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
    """log2 of linearising once and then, for each choice of the g blocks, of solving for the rest.

    Bouillaguet, Delaplace and Trimoska's way (Africacrypt 2022): the monomials in the other
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


def _least_of(cost: Callable[[Floats], Floats], low: int, high: int) -> float:
    """The least cost of an integer from low to high: samples, then those around the best."""
    while True:
        samples = np.unique(np.linspace(low, high, _SAMPLES).round())
        costs = cost(samples)
        best = int(np.argmin(costs))
        if len(samples) == high - low + 1 or not np.isfinite(costs[best]):
            return float(costs[best])
        low = int(samples[max(best - 1, 0)])
        high = int(samples[min(best + 1, len(samples) - 1)])


def _series(it: Instance, f: Floats, mu: Floats) -> tuple[dict[int, Floats], dict[int, Floats]]:
    """For each degree d: monomials of degree 1 to d, and those that the equations leave.

    [BO], section 4, over F_2: with mu guessed zeros in each of f blocks, monomials have the series
    (1 + (b-1) z)^(t-f) (1 + (b-1-mu) z)^f, b the block, and the parity checks divide it by
    (1 + z)^(n-k-1). The system is solved at the first degree that leaves nothing.
    """
    degrees = max(_DEGREES)
    monomials = _product(
        _power(it.block - 1 - mu, f, degrees), _power(it.block - 1, it.t - f, degrees)
    )
    left = _product(monomials, _power(1, -(it.n - it.k - 1), degrees))
    counts, remaining = np.cumsum(monomials[1:], axis=0), np.cumsum(left[1:], axis=0)
    return {d: counts[d - 1] for d in _DEGREES}, {d: remaining[d - 1] for d in _DEGREES}


def _power(base: ArrayLike, exponent: ArrayLike, degree: int) -> list[Floats]:
    """The coefficients of (1 + base z)^exponent."""
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
    """Guess mu zeros in each of f blocks, then linear algebra at the degree of regularity. [BO].

    The cost is 3 (k + 1 - f mu) M^2 for M monomials (Wiedemann's algorithm), over the chance.
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

    return _least_on_grid(it, cost)


def agb2(given: Instance) -> float:
    """The same in two stages: eliminate with few zeros guessed, then guess more. [AGB2], F_2.

    The first stage's f' <= f and mu' <= mu are right more often, so its large matrix is reduced
    fewer times. `rank` is what the first stage eliminates; the second works on what it leaves.
    """
    it = given

    def cost(f: Floats, mu: Floats) -> tuple[Floats, list[tuple[int, int]]]:
        counts, left = _series(it, f, mu)
        chance = _chance(it, f, mu)
        possible = f * mu <= it.k
        best, where = np.full(np.broadcast_shapes(f.shape, mu.shape), np.inf), []
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
                where = [(int(at[0]), int(at[1])), (int(at[0] + then[0]), int(at[1] + then[1]))]
            best = np.minimum(best, total)
        return best, where

    return min(agb(given), _least_on_grid(it, cost))


def _dense(size: Floats) -> Floats:
    result: Floats = math.log2(_STRASSEN_FACTOR) + _STRASSEN * np.log2(size)
    return result


def _chance(it: Instance, f: Floats, mu: Floats) -> Floats:
    result: Floats = f * np.log2(1 - mu / it.block)
    return result


def _smallest(left: dict[int, Floats], degree: int) -> Floats:
    """The least that any degree up to `degree` leaves."""
    result: Floats = np.minimum.reduce([left[d] for d in _DEGREES if d <= degree])
    return result


def _witness(left: dict[int, Floats]) -> Floats:
    """The first degree that leaves nothing; 0 where none does."""
    degree = np.zeros(left[_DEGREES[0]].shape)
    for d in reversed(_DEGREES):
        degree = np.where(left[d] < 1, d, degree)
    return degree


def _from_above(values: Floats) -> Floats:
    """At each place of a grid, the least of all whose f and mu are as large or larger."""
    return np.minimum.accumulate(np.minimum.accumulate(values[::-1, ::-1], axis=0), axis=1)[
        ::-1, ::-1
    ]


def _least_on_grid(
    it: Instance, cost: Callable[[Floats, Floats], tuple[Floats, list[tuple[int, int]]]]
) -> float:
    """The least cost over f blocks and mu zeros: a grid, then finer ones around its best places."""
    fs = _grid(0, it.t)
    mus = np.unique(np.concatenate([_grid(0, it.block - 1), _geometric(it.block - 1)]))
    least = math.inf
    for _ in range(5):
        costs, places = cost(fs[:, None], mus[None, :])
        here = float(np.min(costs))
        least = min(least, here)
        if not places or not math.isfinite(here):
            break
        fs = _finer(fs, [row for row, _ in places])
        mus = _finer(mus, [column for _, column in places])
    return least


def _grid(low: float, high: float) -> Floats:
    return np.unique(np.linspace(low, high, _GRID).round())


def _geometric(high: int) -> Floats:
    return np.unique(np.geomspace(1, max(high, 1), _GRID).round())


def _finer(values: Floats, chosen: list[int]) -> Floats:
    """Grids of all between the neighbours of what was chosen."""
    last = len(values) - 1
    parts = [_grid(values[max(at - 1, 0)], values[min(at + 1, last)]) for at in chosen]
    return np.unique(np.concatenate(parts))
