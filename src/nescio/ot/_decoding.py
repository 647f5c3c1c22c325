"""The cost of decoding noise of weight t: statistical and information-set decoding.

Sources. [LWYY] Liu, Wang, Yang, Yu, "The Hardness of LPN over Any Integer Ring and Field for PCG
Applications", Eurocrypt 2024, eprint 2022/712: non-asymptotic costs for noise of exact weight; an
instance with regular noise reduces to one with t fewer positions and t fewer dimensions, because
the parity of every block is known. [ES] Esser and Santini, "Not Just Regular Decoding", Crypto
2024, eprint 2023/1568, appendix A.1: information sets with equally many positions of every block.

All costs are base-2 logarithms of bit operations; `n` is the noise's length, `k` the dimension.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_STRASSEN = 2.8
_MAX_PARTS = 64  # noisy positions of an information set; the optimum is far below


@dataclass(frozen=True)
class Instance:
    """Regular LPN over F_2: a secret of k bits, n samples, one noisy sample in each of t blocks.

    The same numbers define a syndrome decoding problem: n positions, n - k parity checks, weight t.
    """

    n: int
    k: int
    t: int

    @property
    def block(self) -> int:
        """Positions per block, rounded down."""
        return self.n // self.t

    def even(self) -> "Instance":
        """Returns the instance with complete blocks only, without the positions beyond them."""
        n = self.block * self.t
        return Instance(n, self.k - (self.n - n), self.t)

    def reduced(self) -> "Instance":
        """Returns the instance with noise of exact weight t: one position less per block."""
        return Instance(self.n - self.t, self.k - self.t, self.t)


def log2_binomial(n: ArrayLike, m: ArrayLike) -> Floats:
    """Computes log2 of n choose m for real n, m, elementwise; -inf unless 0 <= m <= n."""
    above, below = np.broadcast_arrays(np.asarray(n, float), np.asarray(m, float))
    inside = (below >= 0) & (below <= above)
    above, below = np.where(inside, above, 0), np.where(inside, below, 0)
    result = _log2_factorial(above) - _log2_factorial(below) - _log2_factorial(above - below)
    return np.where(inside, result, -np.inf)


def _log2_factorial(x: Floats) -> Floats:
    """Computes Gamma(x + 9) by Stirling's series, then Gamma(x + 1); error below 1e-11."""
    z = x + 9
    series = 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5) - 1 / (1680 * z**7)
    gamma = (z - 0.5) * np.log(z) - z + 0.5 * math.log(2 * math.pi) + series
    steps = sum(np.log(x + step) for step in range(1, 9))
    result: Floats = (gamma - steps) / math.log(2)
    return result


def gauss(given: Instance) -> float:
    """Estimates pooled Gauss: guess k samples without noise and invert. [LWYY], section 3."""
    it = given.reduced()
    chance = log2_binomial(it.n - it.k, it.t) - log2_binomial(it.n, it.t)
    return _STRASSEN * math.log2(min(it.k, it.n - it.k)) - float(chance)


def gauss_one_code(given: Instance, extensions: int) -> float:
    """Estimates pooled Gauss on many extensions that use one code, where one success is enough.

    An inverse of k rows of the code serves all extensions. Each of them then takes two parity
    checks of k bits on average, until a check fails. With a code for each extension, as Nescio has
    them, an inverse serves one extension, and the cost of one success is that of `gauss`.
    """
    it = given.reduced()
    size = math.log2(min(it.k, it.n - it.k))
    shared = np.logaddexp2(_STRASSEN * size - math.log2(extensions), 1 + size)
    return gauss(given) - _STRASSEN * size + float(shared)


def parity(given: Instance) -> float:
    """Estimates statistical decoding with low-weight parities, and its version 2.0.

    [LWYY], section 3. Version 2.0 (Carrier, Debris-Alazard, Meyer-Hilfiger, Tillich 2022) has the
    lower bound given there: s bits of the secret are guessed at no cost, s the cost of Gauss.
    """
    it = given.reduced()
    guessed = min(math.floor(gauss(given)), it.k - 1)
    return min(_parity(it.n, it.k, it.t), _parity(it.n, it.k - guessed, it.t))


def _parity(n: int, k: int, t: int) -> float:
    if n - k - t <= 0:
        return math.inf
    return math.log2(k + 1) + 2 * t * math.log2((n - t + 1) / (n - k - t))


def isd(given: Instance) -> float:
    """Estimates ISD with collisions (Stern; Finiasz, Sendrier). [LWYY], theorem on SD-ISD."""
    it = given.reduced()
    lowest = math.inf
    for p in range(0, min(it.t // 2, _MAX_PARTS), 2):
        window = np.arange(2.0, max(min(it.n - it.k - 8, 600), 3))
        cost = float(np.min(_isd(it, window, p)))
        lowest = min(lowest, cost)
        if cost > lowest + 30:
            break
    return lowest


def _isd(it: Instance, window: Floats, p: int) -> Floats:
    width = _even_width(it.k, window)
    window = width - it.k
    half = log2_binomial(width / 2, p / 2)
    pairs = 2 * half - window
    work = np.logaddexp2(_elimination(it, window), np.logaddexp2(1 + half, 1 + pairs))
    rest = log2_binomial(it.n - width, it.t - p) - log2_binomial(it.n, it.t)
    chance = rest + window + pairs
    return np.where(chance < 0, work + math.log2(it.n) - chance, np.inf)


def _even_width(k: int, window: Floats) -> Floats:
    """Rounds dimension plus window down to an even number, for two equal halves."""
    return np.floor((k + window) / 2) * 2


def _elimination(it: Instance, window: Floats) -> Floats:
    """Estimates one Gaussian elimination by the method of the four Russians."""
    rows = np.maximum(it.n - it.k - window, 2)
    return np.log2(rows * it.n / np.log2(rows))


def bjmm(given: Instance) -> float:
    """Estimates ISD with representations, three levels (Becker, Joux, May, Meurer 2012).

    [LWYY], theorem on BJMM-ISD, with the window's partition r1, r2 as Hamdaoui and Sendrier
    (eprint 2013/162) choose it.
    """
    it = given.reduced()
    lowest = math.inf
    window = np.arange(2.0, max(min((it.n - it.k) // 8, 400), 4), 2)
    for p2 in range(2, min(it.t, _MAX_PARTS), 2):
        here = min(float(np.min(_bjmm(it, window, p2, e2))) for e2 in range(p2))
        lowest = min(lowest, here)
        if here > lowest + 8:
            break
    return lowest


def _bjmm(it: Instance, window: Floats, p2: int, e2: int) -> Floats:
    p1 = 2 * (p2 - e2)
    e1 = np.arange(max(0, p1 - it.t // 2), p1, dtype=float)[:, None]
    if not e1.size:
        return np.array([np.inf])
    p = 2 * (p1 - e1)
    width = _even_width(it.k, window)
    window = width - it.k
    leaf, middle, top = (
        log2_binomial(width / 2, p2 / 2),
        log2_binomial(width, p1),
        log2_binomial(width, p),
    )
    base = log2_binomial(width, p2)
    inner = log2_binomial(p2, e2) + log2_binomial(width - p2, p2 - e2) - base
    outer = log2_binomial(p1, e1) + log2_binomial(width - p1, p1 - e1) - middle
    r2 = np.clip(np.trunc(inner + 4 * leaf - middle), 0, window - 1)
    r1 = np.clip(np.trunc(outer + 2 * middle - top) - r2, 0, window - r2 - 1)
    joined3 = 2 * leaf - r2
    joined2 = 2 * joined3 - r1
    list1 = np.minimum(inner + joined2, middle - r1 - r2)
    joined1 = 2 * list1 - window + r1 + r2
    list0 = np.minimum(outer + joined1, top - window)
    work = _elimination(it, window)
    for part in (3 + leaf, 2 + joined3, 1 + joined2, 1 + joined1):
        work = np.logaddexp2(work, part)
    rest = log2_binomial(it.n - width, it.t - p) - log2_binomial(it.n, it.t)
    chance = rest + window + list0
    return np.where(chance < 0, work + math.log2(it.n) - chance, np.inf)


def regular_prange(given: Instance) -> float:
    """Estimates an information set with equally many positions of every block.

    [ES], appendix A.1, permutation.
    """
    it = given.even()
    free = it.k - it.t
    iteration = 2 * math.log2(it.n - free) + math.log2(it.n)
    return iteration - it.t * math.log2(1 - free / it.n)


def regular_isd(given: Instance) -> float:
    """Estimates `regular_prange` with two lists of p/2 noisy blocks.

    [ES], appendix A.1, enumeration.
    """
    it = given.even()
    lowest = math.inf
    for p in range(2, min(30, it.t), 2):
        half = float(log2_binomial(it.t // 2, p // 2))
        about = half + p / 2 * math.log2((it.k - it.t) / it.t)
        window = _around(about, it.n - it.k + it.t)
        share, chance = _regular_chance(it, window, p)
        lists = half + np.log2(share) * (p / 2)
        work = np.maximum(1 + lists, 2 * lists - window)
        lowest = min(lowest, _regular_cost(it, work, chance))
    return lowest


def regular_bjmm(given: Instance) -> float:
    """Estimates `regular_prange` with representations of depth 2.

    [ES], appendix A.1, representation.
    """
    it = given.even()
    lowest = math.inf
    half = it.t // 2
    for p in range(0, min(40, it.t), 4):
        for extra in range(0, 32, 2):
            weight = p // 2 + extra
            about = 2 * float(log2_binomial(half, weight // 2)) + weight * math.log2(it.k - it.t)
            ways = log2_binomial(p / 2, p / 4) + log2_binomial(it.t / 2 - p / 2, extra / 2)
            if not (math.isfinite(about) and math.isfinite(ways)):
                continue
            window = _around(about, it.n - it.k + it.t)
            share, chance = _regular_chance(it, window, p)
            lists = log2_binomial(half, weight / 2) + np.log2(share) * (weight / 2)
            fixed = math.floor(2 * float(ways))
            joined = 2 * lists - fixed
            work = np.maximum(np.maximum(2 + lists, 1 + joined), 2 * joined - (window - fixed))
            lowest = min(lowest, _regular_cost(it, work, chance))
    return lowest


def _around(about: float, high: int) -> Floats:
    """Lists windows from 0.5 to 1.5 times the collision size of two lists."""
    low = math.ceil(about * 0.5)
    return np.arange(low, max(min(round(about * 1.5), high), low + 1), dtype=float)


def _regular_chance(it: Instance, window: Floats, p: int) -> tuple[Floats, Floats]:
    """Returns positions per block, and log2 of the chance that they hold p blocks' noise."""
    share = (it.k - it.t + window) / it.t
    part = np.where(share < it.block, share / it.block, np.nan)
    half = log2_binomial(it.t // 2, p / 2) + log2_binomial(it.t - it.t // 2, p / 2)
    chance: Floats = half + p * np.log2(part) + (it.t - p) * np.log2(1 - part)
    return share, chance


def _regular_cost(it: Instance, work: Floats, chance: Floats) -> float:
    elimination = 2 * math.log2(it.n - it.k + it.t)
    cost = math.log2(it.n) + np.maximum(elimination, work) - chance
    return float(np.min(np.where(np.isnan(cost), np.inf, cost)))
