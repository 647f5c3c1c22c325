"""What tests of devices start from: random blocks, and trees as the specification has them."""

import numpy as np

from spec import ot_trees

SEED = bytes(range(7, 23))


def random_blocks(rng, count):
    return rng.integers(0, 1 << 64, (count, 2), dtype=np.uint64)


def integers(blocks):
    """Blocks as the specifications have them."""
    return [int(low) | int(high) << 64 for low, high in np.asarray(blocks).reshape(-1, 2)]


def odd(block):
    return block | np.array([1, 0], np.uint64)


def grown(rng, trees, depth):
    """Seeds and delta, and what the specification makes of them."""
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
