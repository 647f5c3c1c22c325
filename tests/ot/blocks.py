"""Conversions between the engine's arrays and the specification's integers."""

import numpy as np

from spec.blocks import MASK


def random_blocks(rng, *shape):
    """Draws random blocks as an array of uint64."""
    return rng.integers(0, 1 << 64, (*shape, 2), dtype=np.uint64)


def to_integers(blocks):
    """Converts an array of blocks to Python integers."""
    return [int(low) | int(high) << 64 for low, high in blocks.reshape(-1, 2)]


def to_array(integers):
    """Converts Python integers to an array of blocks."""
    half = MASK >> 64
    return np.array([(x & half, x >> 64) for x in integers], np.uint64).reshape(-1, 2)
