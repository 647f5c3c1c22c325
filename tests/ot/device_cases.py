"""Inputs of the tests of devices, and results of the specification, computed once for all."""

from functools import cache

import numpy as np

from spec import ot_check, ot_codes, ot_primal, ot_trees

SEED = bytes(range(7, 23))


def random_blocks(rng, count):
    return rng.integers(0, 1 << 64, (count, 2), dtype=np.uint64)


def integers(blocks):
    """Converts blocks to integers, as in the specifications."""
    return [int(low) | int(high) << 64 for low, high in np.asarray(blocks).reshape(-1, 2)]


def odd(block):
    return block | np.array([1, 0], np.uint64)


@cache
def specified_ec(noise):
    """Encodes by the specification of expand-convolute codes; noise is a tuple of integers."""
    return ot_codes.encode_ec(list(noise), SEED)


@cache
def specified_primal(noise, seeds, first_row):
    return ot_primal.encode(list(noise), list(seeds), SEED, first_row)


@cache
def specified_chi_sum(leaves):
    return ot_check.chi_sum(list(leaves), SEED)


def grown(rng, trees, depth):
    """Draws seeds and delta, and grows trees by the specification."""
    seeds, delta = random_blocks(rng, trees), odd(random_blocks(rng, 1)[0])
    both = [
        ot_trees.grow(s, integers(delta)[0], depth, SEED, tree)
        for tree, s in enumerate(integers(seeds))
    ]
    return (
        seeds,
        delta,
        [x for leaves, _ in both for x in leaves],
        [k for _, ks in both for k in ks],
    )
