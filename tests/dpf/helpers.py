"""Conversions between the engine's arrays and the specification's integers."""

import numpy as np

import nescio.dpf
from spec import dpf as spec

# One generator per arity, for tests that do not depend on the generator.
GENERATORS = ("aes128", "chacha20")
ALL_GENERATORS = nescio.dpf.GENERATORS
OUTPUTS = tuple(spec.OUTPUT_BITS)


def to_integers(shares, output):
    """Convert shares as returned by the package to Python integers."""
    if output == "u128":
        return [int(low) | int(high) << 64 for low, high in shares]
    return [int(share) for share in shares]


def random_payload(rng, output):
    bits = spec.OUTPUT_BITS[output]
    return 1 if bits == 1 else int.from_bytes(rng.bytes(bits // 8), "little")


def random_roots(rng):
    return rng.bytes(16), rng.bytes(16)


def roots_array(roots):
    return np.frombuffer(b"".join(roots), np.uint8).reshape(1, 2, 16)
