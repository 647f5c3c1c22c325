"""The codes of dual LPN against the executable specification, bit for bit, in every tier."""

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError
from spec import ot_codes as spec

SEED = bytes(range(7, 23))


def random_blocks(rng, count):
    return rng.integers(0, 2**64, (count, 2), np.uint64)


def integers(blocks):
    return [int(low) | int(high) << 64 for low, high in blocks]


def encode_ec(noise, pool, tier=None):
    """The outputs of a copy of the noise."""
    noise = noise.copy()
    _core.encode_ec(noise, SEED, pool, tier=tier)
    return noise[: len(noise) // 2]


@pytest.mark.parametrize("n", [64, 65, 71, 72, 96, 127, 128, 1000])
def test_ec_agrees_with_the_specification(n, tier, pool, rng):
    noise = random_blocks(rng, 2 * n)
    assert integers(encode_ec(noise, pool, tier)) == spec.encode_ec(integers(noise), SEED)


@pytest.mark.parametrize("n", [4096, 4097, 4096 + 31, (1 << 14) + 5])
def test_ec_is_the_same_in_all_tiers(n, pool, rng):
    noise = random_blocks(rng, 2 * n)
    expected = encode_ec(noise, pool, "portable")
    for tier in _core.supported_tiers():
        assert np.array_equal(encode_ec(noise, pool, tier), expected)


@pytest.mark.parametrize("n", [1 << 15, (1 << 16) + 7, (1 << 17) + 4095])
def test_ec_is_the_same_for_any_number_of_threads(n, rng):
    noise = random_blocks(rng, 2 * n)
    expected = encode_ec(noise, _core.ThreadPool(1))
    for threads in (2, 3, 5):
        assert np.array_equal(encode_ec(noise, _core.ThreadPool(threads)), expected)


def test_ec_is_linear(tier, pool, rng):
    a, b = random_blocks(rng, 600), random_blocks(rng, 600)
    both = encode_ec(a, pool, tier) ^ encode_ec(b, pool, tier)
    assert np.array_equal(encode_ec(a ^ b, pool, tier), both)


@pytest.mark.parametrize("blocks", [0, 2, 126, 129])
def test_ec_refuses_a_number_of_blocks_that_is_odd_or_too_small(blocks, pool):
    with pytest.raises(ArgumentError, match=f"noise: found {blocks} blocks"):
        _core.encode_ec(np.zeros((blocks, 2), np.uint64), SEED, pool)


@pytest.mark.parametrize("seed", [b"", bytes(15), bytes(17)])
def test_ec_refuses_a_seed_of_another_length(seed, pool):
    with pytest.raises(ArgumentError, match=f"code_seed: found {len(seed)} bytes"):
        _core.encode_ec(np.zeros((200, 2), np.uint64), seed, pool)


@pytest.mark.parametrize(
    "noise",
    [
        np.zeros((200, 3), np.uint64),
        np.zeros(400, np.uint64),
        np.zeros((200, 2), np.uint32),
        np.zeros((400, 2), np.uint64)[::2],
    ],
    ids=["three words", "flat", "32 bits", "strided"],
)
def test_ec_refuses_arrays_of_another_kind(noise, pool):
    with pytest.raises(TypeError):
        _core.encode_ec(noise, SEED, pool)
