"""Failure probability of exact mode: an inference whose rows cannot all be placed.

A row has `hashes` candidate bins, and each bin answers `keys` lookups. An inference of n rows can
be placed exactly if no k of its rows have all of their candidates in b bins with keys * b < k
(Hall). A set of keys * b + 1 rows that is confined to b bins is called a violator here. The sum of
the probabilities of all possible violators is an upper bound of the failure probability, which is
tight where failures are rare: there, the smallest violators are nearly the whole sum.

**Permutations** (the hashes of a Layout). Hash j permutes the rows and cuts them into g equal bins
of its own; there are d hashes and d * g bins. A violator confines k rows to b_j >= 1 bins of hash
j, with b_1 + ... + b_d = b. With hashes like random permutations, that has probability
prod_j (b_j / g)^k at most, so the sum is

    sum over b of C(n, k) * sum over b_1 + ... + b_d = b of prod_j C(g, b_j) (b_j / g)^k,
    k = keys * b + 1.

**Independent hashes** (of the literature) give each row d distinct ones of all m bins:

    sum over b of C(n, k) * C(m, b) * (C(b, d) / C(m, d))^k.

The probability is over the hashes' seed, for rows chosen without knowledge of the seed. Source:
Yeo, "Cuckoo Hashing in Cryptography: Optimal Parameters, Robustness and Applications" (2023),
which also treats rows that an adversary chooses after seeing the seed.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..._arrays import as_count
from ...errors import ArgumentError

__all__ = ["MAX_HASHES", "MAX_LOOKUPS", "bins_for", "failure_probability"]

MAX_LOOKUPS = 1 << 11
MAX_HASHES = 8
_MAX_BINS = 1 << 24

Logs = npt.NDArray[np.float64]


def failure_probability(
    lookups: int, bins: int, hashes: int = 4, *, keys: int = 1, independent: bool = False
) -> float:
    """Returns an upper bound of the probability that `lookups` rows cannot be placed exactly.

    `bins` counts the bins of all hashes together: a multiple of `hashes`, unless the hashes are
    `independent`. Raises ArgumentError for other numbers.
    """
    lookups, hashes, keys = _sizes(lookups, hashes, keys)
    bins = as_count(bins, "bins", hashes, _MAX_BINS)
    if bins % hashes and not independent:
        raise ArgumentError(f"bins: found {bins}, expected a multiple of the {hashes} hashes")
    if lookups > keys * bins:
        return 1.0
    return min(1.0, math.fsum(_terms(lookups, bins, hashes, keys, independent)))


def bins_for(
    lookups: int,
    hashes: int = 4,
    failure: float = 2.0**-40,
    *,
    keys: int = 1,
    independent: bool = False,
) -> int:
    """Returns the fewest bins of all hashes together whose bound is at most `failure`.

    A multiple of `hashes`, unless the hashes are `independent`. Up to `hashes * keys` lookups fit
    `hashes` bins, each of the whole table: as many whole lookups are as good. Raises ArgumentError.
    """
    lookups, hashes, keys = _sizes(lookups, hashes, keys)
    if not 0 < failure < 1:
        raise ArgumentError(f"failure: found {failure}, expected a probability between 0 and 1")
    return _fewest(lookups, hashes, float(failure), keys, independent)


@lru_cache(maxsize=1024)
def _fewest(lookups: int, hashes: int, failure: float, keys: int, independent: bool) -> int:
    unit = 1 if independent else hashes

    def enough(units: int) -> bool:
        bins, total = units * unit, 0.0
        if bins < hashes or keys * bins < lookups:
            return False
        for term in _terms(lookups, bins, hashes, keys, independent):
            total += term
            if total > failure:
                return False
        return True

    high = 1
    while not enough(high):
        high *= 2
        if high * unit > _MAX_BINS:
            raise ArgumentError(
                f"failure: {hashes} hashes cannot reach {failure:g} for {lookups} lookups; use "
                "more hashes"
            )
    return unit * _smallest(enough, high)


def _smallest(enough: Callable[[int], bool], high: int) -> int:
    """Returns the smallest number in (high / 2, high] that is enough; `high` is."""
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _sizes(lookups: int, hashes: int, keys: int) -> tuple[int, int, int]:
    return (
        as_count(lookups, "lookups", 1, MAX_LOOKUPS),
        as_count(hashes, "hashes", 1, MAX_HASHES),
        as_count(keys, "keys", 1, MAX_LOOKUPS),
    )


def _terms(
    lookups: int,
    bins: int,
    hashes: int,
    keys: int,
    independent: bool,
) -> Iterator[float]:
    """Yields the terms of the sum, each at most 1, by the number of bins of the violator."""
    logarithms = _independent if independent else _permuted
    return (math.exp(min(0.0, term)) for term in logarithms(lookups, bins, hashes, keys))


def _independent(lookups: int, bins: int, hashes: int, keys: int) -> Iterator[float]:
    """Yields the logarithms of the terms of the sum, by the number of bins of the violator."""
    for within in range(hashes, (lookups - 1) // keys + 1):
        size = keys * within + 1
        inside = _log_comb(within, hashes) - _log_comb(bins, hashes)
        yield _log_comb(lookups, size) + _log_comb(bins, within) + size * inside


def _permuted(lookups: int, bins: int, hashes: int, keys: int) -> Iterator[float]:
    """Yields the logarithms of the terms of the sum, by the number of bins of the violator."""
    per_hash = bins // hashes
    for within in range(hashes, (lookups - 1) // keys + 1):
        size = keys * within + 1
        most = min(per_hash, within - hashes + 1)
        counts = np.arange(1, most + 1)
        weights = _log_combs(per_hash, most) + size * np.log(counts / per_hash)
        yield _log_comb(lookups, size) + _log_coefficient(weights, hashes, within)


def _log_coefficient(weights: Logs, power: int, index: int) -> float:
    """Returns log c_index, where c are the coefficients of (sum_i exp(weights[i - 1]) x^i)^power.

    Replacing x by a multiple of x scales every coefficient by a known factor. The multiple chosen
    makes the terms next to index / power the largest, so that nothing that matters underflows.
    """
    middle = min(max(index // power, 1), len(weights))
    after = min(middle + 1, len(weights))
    slope = 0.0 if after == middle else float(weights[after - 1] - weights[middle - 1])
    places = np.arange(1, len(weights) + 1)
    scaled = weights - slope * (places - middle)
    largest = float(scaled.max())
    factor = np.concatenate([[0.0], np.exp(scaled - largest)])
    left = _power(factor, power // 2, index)
    right = _power(factor, power - power // 2, index)
    first, end = max(0, index - len(right) + 1), min(len(left), index + 1)
    found = float(left[first:end] @ right[index - first :: -1][: end - first])
    if found <= 0.0:
        return -math.inf
    return math.log(found) + power * largest + slope * (index - power * middle)


def _power(factor: Logs, power: int, degree: int) -> Logs:
    """Returns the coefficients up to `degree` of a power of a polynomial."""
    product = np.ones(1)
    for _ in range(power):
        product = np.convolve(product, factor)[: degree + 1]
    return product


def _log_combs(of: int, most: int) -> Logs:
    """Returns log C(of, 1), ..., log C(of, most)."""
    return np.array([_log_comb(of, n) for n in range(1, most + 1)])


def _log_comb(of: int, n: int) -> float:
    if n > of:
        return -math.inf
    return math.lgamma(of + 1) - math.lgamma(n + 1) - math.lgamma(of - n + 1)
