"""Weights and activations for tests, and their products computed by NumPy."""

import numpy as np

from spec import bitserial as spec

BITS = range(1, 9)
ACTIVATION_BITS = (8, 16, 32)


def random_weights(rng, bits, rows, columns):
    """Draw weights of `bits` bits."""
    return rng.choice(np.array(spec.levels(bits), np.int64), (rows, columns))


def random_activations(rng, activation_bits, batch, columns):
    """Draw integers from the whole range of `activation_bits` bits."""
    half = 1 << activation_bits - 1
    return rng.integers(-half, half, (batch, columns)).astype(np.int32)


def to_planes(q, bits):
    """Compute spec.to_planes for matrices that are too large for plain Python."""
    codes = (q + 1) // 2 if bits == 1 else q
    words = -(-q.shape[1] // 64)
    planes = np.zeros((bits, q.shape[0], words * 64), np.uint8)
    for i in range(bits):
        planes[i, :, : q.shape[1]] = codes >> i & 1
    return np.packbits(planes, axis=-1, bitorder="little").view(np.uint64)


def products(q, x):
    """Return the exact product x q^T, one row per vector."""
    return x.astype(np.int64) @ q.T


def apply(q, x, activation_bits, scale, bias=None):
    """Apply the specification's `apply` to each vector."""
    weights = np.asarray(q).tolist()
    rows = [
        spec.apply(
            weights,
            [float(v) for v in vector],
            activation_bits,
            [float(s) for s in scale],
            None if bias is None else [float(b) for b in bias],
        )
        for vector in x
    ]
    return np.array(rows, np.float32)
