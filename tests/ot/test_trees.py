"""Correlated trees and their punctured copies."""

from functools import cache

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError, ResourceError
from ot.blocks import random_blocks, to_array, to_integers
from spec import ot_trees as spec

BASE = bytes(range(100, 116))
DELTA = 0x9E3779B97F4A7C15F39CC0605CEDC835

# Trees and their depth: every width of a level up to that of one AES call, alone and with others.
SMALL = [(1, 1), (2, 1), (129, 1), (1, 2), (3, 2), (129, 2), (2, 3), (17, 4), (1, 5), (3, 5)]
SMALL += [(129, 5), (3, 6), (18, 7), (1, 10), (3, 10), (1, 13)]


@cache
def grown(trees, depth):
    """Draws seeds, and grows trees by the specification."""
    rng = np.random.default_rng(depth)
    seeds = random_blocks(rng, trees)
    results = [spec.grow(s, DELTA, depth, BASE, i) for i, s in enumerate(to_integers(seeds))]
    return seeds, [x for r in results for x in r[0]], [x for r in results for x in r[1]]


def sides_of(sums, choices):
    """Computes the sides that the receiver learns: sums of right nodes differ by delta."""
    return sums ^ (choices[:, None] * to_array([DELTA]))


def paths_of(choices, depth):
    return [spec.path_of([int(c) for c in own]) for own in choices.reshape(-1, depth)]


@pytest.mark.parametrize(("trees", "depth"), SMALL)
def test_grown_trees_are_those_of_the_specification(trees, depth, tier, pool):
    seeds, leaves, sums = grown(trees, depth)
    found = _core.grow_trees(seeds, depth, to_array([DELTA])[0], BASE, pool, tier)
    assert to_integers(found[0]) == leaves
    assert to_integers(found[1]) == sums


@cache
def punctured(trees, depth):
    _, _, sums = grown(trees, depth)
    choices = np.random.default_rng(trees).integers(0, 2, trees * depth, dtype=np.uint8)
    sides = sides_of(to_array(sums), choices)
    leaves = []
    for tree in range(trees):
        own = slice(tree * depth, (tree + 1) * depth)
        own_choices = [int(c) for c in choices[own]]
        leaves += spec.puncture(to_integers(sides[own]), own_choices, BASE, tree)
    return sides, choices, leaves


@pytest.mark.parametrize(("trees", "depth"), SMALL)
def test_punctured_trees_are_those_of_the_specification(trees, depth, tier, pool):
    sides, choices, leaves = punctured(trees, depth)
    found = _core.puncture_trees(sides, choices, depth, BASE, pool, tier)
    assert to_integers(found) == leaves


@pytest.mark.parametrize("path", range(8))
def test_every_leaf_can_be_the_punctured_one(path, tier, pool):
    _, leaves, sums = grown(1, 3)
    choices = np.array([1 - (path >> 2), 1 - (path >> 1 & 1), 1 - (path & 1)], np.uint8)
    sides = sides_of(to_array(sums), choices)
    found = _core.puncture_trees(sides, choices, 3, BASE, pool, tier)
    differences = [v ^ w for v, w in zip(leaves, to_integers(found), strict=True)]
    assert differences == [DELTA if i == path else 0 for i in range(8)]


@pytest.mark.parametrize(
    ("trees", "depth"), [(1, 1), (129, 2), (40, 10), (9, 11), (3, 13), (2, 14), (5, 15), (2, 18)]
)
def test_leaves_differ_by_delta_in_one_place_a_tree(trees, depth, tier, pool, rng):
    delta = to_array([DELTA])[0]
    leaves, sums = _core.grow_trees(random_blocks(rng, trees), depth, delta, BASE, pool, tier)
    choices = rng.integers(0, 2, trees * depth, dtype=np.uint8)
    found = _core.puncture_trees(sides_of(sums, choices), choices, depth, BASE, pool, tier)
    assert not (leaves[:, 0] & 1).any()
    differences = leaves ^ found
    at = np.flatnonzero(differences.any(axis=1))
    assert at.tolist() == [i << depth | path for i, path in enumerate(paths_of(choices, depth))]
    assert (differences[at] == delta).all()


@pytest.mark.parametrize(("trees", "depth"), [(37, 10), (3, 13), (2, 15)])
def test_sums_are_those_of_the_left_nodes(trees, depth, tier, pool, rng):
    """Tests the last level, whose nodes are the leaves except for the lowest bit."""
    delta = to_array([DELTA])[0]
    leaves, sums = _core.grow_trees(random_blocks(rng, trees), depth, delta, BASE, pool, tier)
    left = np.bitwise_xor.reduce(leaves.reshape(trees, -1, 2)[:, 0::2], axis=1)
    last = sums.reshape(trees, depth, 2)[:, -1]
    assert ((left ^ last) & np.array([~np.uint64(1), ~np.uint64(0)]) == 0).all()


@pytest.mark.parametrize(("trees", "depth"), [(100, 10), (33, 11), (5, 14)])
def test_all_tiers_and_numbers_of_threads_agree(trees, depth, tier, rng):
    seeds, delta = random_blocks(rng, trees), to_array([DELTA])[0]
    one = _core.ThreadPool(1)
    expected = _core.grow_trees(seeds, depth, delta, BASE, one, "portable")
    choices = rng.integers(0, 2, trees * depth, dtype=np.uint8)
    sides = sides_of(expected[1], choices)
    expected_other = _core.puncture_trees(sides, choices, depth, BASE, one, "portable")
    for threads in (1, 2, 5):
        pool = _core.ThreadPool(threads)
        found = _core.grow_trees(seeds, depth, delta, BASE, pool, tier)
        assert (found[0] == expected[0]).all()
        assert (found[1] == expected[1]).all()
        assert (
            _core.puncture_trees(sides, choices, depth, BASE, pool, tier) == expected_other
        ).all()


def test_results_go_where_the_caller_says(tier, pool, rng):
    seeds, delta = random_blocks(rng, 5), to_array([DELTA])[0]
    out = np.zeros((5 << 6, 2), np.uint64)
    leaves, sums = _core.grow_trees(seeds, 6, delta, BASE, pool, tier, out)
    assert np.shares_memory(leaves, out)
    assert (out == _core.grow_trees(seeds, 6, delta, BASE, pool, tier)[0]).all()
    choices = np.zeros(30, np.uint8)
    expected = _core.puncture_trees(sums, choices, 6, BASE, pool, tier)
    assert np.shares_memory(_core.puncture_trees(sums, choices, 6, BASE, pool, tier, out), out)
    assert (out == expected).all()


def test_no_trees_at_all(tier, pool):
    none = np.zeros((0, 2), np.uint64)
    leaves, sums = _core.grow_trees(none, 10, np.ones(2, np.uint64), BASE, pool, tier)
    assert leaves.shape == sums.shape == (0, 2)
    assert _core.puncture_trees(none, np.zeros(0, np.uint8), 10, BASE, pool, tier).shape == (0, 2)


@pytest.mark.parametrize("depth", [0, 33, 64])
def test_a_depth_that_no_tree_has_is_refused(depth, pool):
    with pytest.raises(ArgumentError, match=f"depth of a tree: found {depth}, expected 1 to 32"):
        _core.grow_trees(np.ones((1, 2), np.uint64), depth, np.ones(2, np.uint64), BASE, pool)
    with pytest.raises(ArgumentError, match=f"depth of a tree: found {depth}, expected 1 to 32"):
        _core.puncture_trees(np.ones((3, 2), np.uint64), np.ones(3, np.uint8), depth, BASE, pool)


def test_choices_and_sides_fit_each_other_and_the_depth(pool):
    sides = np.zeros((12, 2), np.uint64)
    with pytest.raises(ArgumentError, match="choices: found 11, expected a multiple of .* 4"):
        _core.puncture_trees(sides, np.zeros(11, np.uint8), 4, BASE, pool)
    with pytest.raises(ArgumentError, match="sides: found 12, expected one for each of 8 choices"):
        _core.puncture_trees(sides, np.zeros(8, np.uint8), 4, BASE, pool)
    with pytest.raises(TypeError):
        _core.puncture_trees(sides.reshape(-1), np.zeros(12, np.uint8), 4, BASE, pool)


@pytest.mark.parametrize("value", [2, 255])
@pytest.mark.parametrize("place", [0, 5, 11])
def test_a_choice_is_0_or_1(value, place, pool):
    choices = np.zeros(12, np.uint8)
    choices[place] = value
    with pytest.raises(ArgumentError, match="choices: found a byte above 1"):
        _core.puncture_trees(np.zeros((12, 2), np.uint64), choices, 4, BASE, pool)


def test_a_place_for_results_that_does_not_fit_is_refused(pool):
    seeds, delta = np.ones((2, 2), np.uint64), np.ones(2, np.uint64)
    with pytest.raises(ArgumentError, match="blocks of out: found 7, expected 8"):
        _core.grow_trees(seeds, 2, delta, BASE, pool, out=np.zeros((7, 2), np.uint64))
    shifted = np.zeros(17, np.uint64)[1:].reshape(8, 2)
    with pytest.raises(ArgumentError, match="not aligned to 16 bytes"):
        _core.grow_trees(seeds, 2, delta, BASE, pool, out=shifted)
    with pytest.raises(TypeError):
        _core.grow_trees(seeds, 2, delta, BASE, pool, out=np.zeros((8, 2), np.int64))


def test_inputs_may_stand_anywhere(tier, pool, rng):
    seeds, delta = random_blocks(rng, 3), to_array([DELTA])[0]
    shifted = np.concatenate([np.zeros(1, np.uint64), seeds.reshape(-1)])[1:].reshape(3, 2)
    expected = _core.grow_trees(seeds, 5, delta, BASE, pool, tier)[0]
    assert (_core.grow_trees(shifted, 5, delta, BASE, pool, tier)[0] == expected).all()


def test_more_leaves_than_any_memory_holds_are_refused(pool):
    with pytest.raises(ResourceError, match="out of memory"):
        _core.grow_trees(np.ones((1 << 20, 2), np.uint64), 32, np.ones(2, np.uint64), BASE, pool)
