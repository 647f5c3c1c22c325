"""Polynomials for the tests of ring-LWE products, and products of them modulo 2^32."""

import numpy as np

from nescio import _core

N = _core.RLWE_DEGREE


def random_messages(rng, count):
    return rng.integers(0, 2**32, (count, N), np.uint32)


def sparse_weights(rng, outputs, inputs, taps=60, bits=8):
    """Returns polynomials (outputs, inputs, N) with a few coefficients of some bits."""
    weights = np.zeros((outputs, inputs, N), np.int32)
    for row in weights.reshape(-1, N):
        at = rng.choice(N, taps, replace=False)
        row[at] = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), taps)
    return weights


def prepared(weights, pool, **options):
    """Returns the engine's weights of polynomials (outputs, inputs, N)."""
    present = np.ones(weights.shape[:2], np.uint8)
    part = np.arange(N, dtype=np.uint32), present, weights.reshape(-1)
    return _core.RlweWeights([part], pool, **options)


def multiply(weights, messages):
    """Returns the products of sparse weights (outputs, inputs, N) with messages (inputs, N)."""
    products = np.zeros((weights.shape[0], N), np.uint32)
    for o, g, k in zip(*np.nonzero(weights), strict=True):
        factor = np.uint32(int(weights[o, g, k]) % 2**32)
        shifted = np.roll(messages[g], k)
        shifted[:k] = -shifted[:k]  # X^N = -1
        products[o] += factor * shifted
    return products


def results_of(positions, bits=32):
    """Returns the engine's Results, from the positions of each output."""
    counts = np.array([len(p) for p in positions], np.uint32)
    places = np.concatenate([*positions, []]).astype(np.uint32)
    return _core.RlweResults(counts, places, bits=bits)


def difference(first, second, expected, bits=32):
    """Returns first + second - expected modulo 2^bits, as signed numbers."""
    return ((first + second - expected) << np.uint32(32 - bits)).astype(np.int32) >> (32 - bits)
