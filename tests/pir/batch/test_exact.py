"""Failure probability of exact mode: the bound, compared with all possible candidates."""

from itertools import combinations, product
from math import log2

import pytest

from nescio.errors import ArgumentError
from nescio.pir.batch import bins_for, failure_probability

BARELY = 1 + 1e-9  # floats


def placed(candidates, keys=1):
    """Counts the rows of a maximum matching: augmenting paths."""
    held = {}

    def place(row, tried):
        for bin_ in candidates[row]:
            if bin_ in tried:
                continue
            tried.add(bin_)
            mine = held.setdefault(bin_, [])
            if len(mine) < keys:
                mine.append(row)
                return True
            for i, other in enumerate(mine):
                if place(other, tried):
                    mine[i] = row
                    return True
        return False

    return sum(place(row, set()) for row in range(len(candidates)))


def share_of_failures(rows, choices, keys=1):
    """Computes the exact probability of a failure, over all choices of the rows' candidates."""
    every = [placed(candidates, keys) < rows for candidates in product(choices, repeat=rows)]
    return sum(every) / len(every)


def permuted(hashes, per_hash):
    """Lists the candidates that a row can have: one bin of each hash."""
    bins = [[j * per_hash + i for i in range(per_hash)] for j in range(hashes)]
    return list(product(*bins))


@pytest.mark.parametrize(
    ("rows", "bins", "hashes", "keys"),
    [(3, 6, 2, 1), (4, 6, 2, 1), (5, 6, 2, 1), (5, 6, 3, 1), (6, 6, 3, 1), (5, 4, 2, 2)],
)
def test_the_bound_for_permutations_holds_for_all_choices(rows, bins, hashes, keys):
    exact = share_of_failures(rows, permuted(hashes, bins // hashes), keys)
    assert 0 < exact <= BARELY * failure_probability(rows, bins, hashes, keys=keys) <= 2.5 * exact


@pytest.mark.parametrize(("rows", "bins", "hashes"), [(3, 5, 2), (4, 5, 3), (4, 6, 3), (5, 5, 3)])
def test_the_bound_for_independent_hashes_holds_for_all_choices(rows, bins, hashes):
    exact = share_of_failures(rows, list(combinations(range(bins), hashes)))
    bound = failure_probability(rows, bins, hashes, independent=True)
    assert 0 < exact <= BARELY * bound <= 1.1 * exact


def test_fewest_bins_for_one_failure_in_two_to_the_forty():
    lookups = (8, 16, 32, 64, 72)
    assert [bins_for(n) for n in lookups] == [32, 40, 56, 92, 100]
    assert [bins_for(n, independent=True) for n in lookups] == [21, 32, 51, 89, 98]
    assert [bins_for(n, 3, independent=True) for n in lookups] == [67, 97, 136, 188, 198]


@pytest.mark.parametrize("lookups", [5, 9, 33, 72, 300])
@pytest.mark.parametrize(
    ("hashes", "keys", "failure"), [(4, 1, 2**-40), (3, 1, 1e-6), (3, 2, 1e-9)]
)
def test_one_bin_fewer_is_not_enough(lookups, hashes, keys, failure):
    bins = bins_for(lookups, hashes, failure, keys=keys)
    assert bins % hashes == 0
    assert failure_probability(lookups, bins, hashes, keys=keys) <= failure
    if bins > hashes:
        assert failure_probability(lookups, bins - hashes, hashes, keys=keys) > failure


def test_as_many_lookups_as_hashes_never_fail():
    assert [bins_for(n) for n in (1, 2, 3, 4)] == [4, 4, 4, 4]
    assert failure_probability(4, 4) == 0
    assert failure_probability(8, 4, keys=2) == 0


def test_more_lookups_than_keys_always_fail():
    assert failure_probability(33, 32) == 1
    assert failure_probability(2048, 4, 4) == 1


def test_large_numbers_neither_overflow_nor_underflow():
    bins = bins_for(1000)
    assert bins == pytest.approx(1000 * 1.2, rel=0.03)
    assert -50 < log2(failure_probability(1000, bins)) <= -40
    assert 0 < failure_probability(2048, 8 * 2048) < 2**-40


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bins_for(0), "lookups: found 0"),
        (lambda: bins_for(5000), "lookups: found 5000"),
        (lambda: bins_for(8, 0), "hashes: found 0"),
        (lambda: bins_for(8, 1.5), "hashes: found 1.5"),
        (lambda: bins_for(8, failure=0), "failure: found 0"),
        (lambda: bins_for(8, failure=float("nan")), "failure: found nan"),
        (lambda: bins_for(2000, 1, 2**-40), "1 hashes cannot reach"),
        (lambda: failure_probability(8, 33), "bins: found 33, expected a multiple of the 4"),
        (lambda: failure_probability(8, 3), "bins: found 3, expected 4"),
    ],
)
def test_invalid_numbers(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
