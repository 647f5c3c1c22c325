"""The hash that turns correlated transfers into random ones."""

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError
from ot.blocks import random_blocks, to_array, to_integers
from spec import ot_hash as spec

BASE = bytes(range(16, 32))
MOST = (1 << 64) - 1


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 31, 32, 33, 70, 150])
@pytest.mark.parametrize(("first_index", "tag"), [(0, 0), (1 << 40, 7), (MOST - 100, MOST)])
def test_hashes_are_those_of_the_specification(count, first_index, tag, tier, pool, rng):
    blocks = random_blocks(rng, count)
    found = _core.hash_blocks(blocks, first_index, tag, BASE, pool, tier=tier)
    expected = [
        spec.tccr(x, (first_index + i) & MOST, tag, BASE) for i, x in enumerate(to_integers(blocks))
    ]
    assert to_integers(found) == expected


def test_with_delta_the_blocks_are_shifted(tier, pool, rng):
    blocks, delta = random_blocks(rng, 100), random_blocks(rng)
    found = _core.hash_blocks(blocks, 5, 6, BASE, pool, delta, tier)
    assert (found == _core.hash_blocks(blocks ^ delta, 5, 6, BASE, pool, tier=tier)).all()
    assert (found != _core.hash_blocks(blocks, 5, 6, BASE, pool, tier=tier)).any(axis=1).all()


def test_indices_of_the_highest_run_over_to_zero_in_every_tier(tier, pool, rng):
    blocks = random_blocks(rng, 80)
    found = _core.hash_blocks(blocks, MOST - 39, 3, BASE, pool, tier=tier)
    assert (found[40:] == _core.hash_blocks(blocks[40:], 0, 3, BASE, pool, tier="portable")).all()


@pytest.mark.parametrize("count", [16383, 16384, 50_001])
def test_all_tiers_and_numbers_of_threads_agree(count, tier, rng):
    blocks, delta = random_blocks(rng, count), random_blocks(rng)
    expected = _core.hash_blocks(blocks, 9, 1, BASE, _core.ThreadPool(1), delta, "portable")
    for threads in (1, 2, 5):
        found = _core.hash_blocks(blocks, 9, 1, BASE, _core.ThreadPool(threads), delta, tier)
        assert (found == expected).all()


def test_hashes_may_take_the_place_of_the_blocks(tier, pool, rng):
    blocks = random_blocks(rng, 77)
    expected = _core.hash_blocks(blocks, 0, 0, BASE, pool, tier=tier)
    _core.hash_blocks(blocks, 0, 0, BASE, pool, tier=tier, out=blocks)
    assert (blocks == expected).all()


def test_bad_arguments_are_refused(pool):
    blocks = to_array([1, 2, 3])
    with pytest.raises(ArgumentError, match="blocks of out: found 2, expected 3"):
        _core.hash_blocks(blocks, 0, 0, BASE, pool, out=np.zeros((2, 2), np.uint64))
    with pytest.raises(TypeError):
        _core.hash_blocks(blocks, -1, 0, BASE, pool)
    with pytest.raises(TypeError):
        _core.hash_blocks(blocks, 0, 0, BASE, pool, np.zeros(3, np.uint64))
