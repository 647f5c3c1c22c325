"""The codes of dual LPN, compared bit for bit with the specification in every tier."""

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
    """Encodes a copy of the noise."""
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


# ---- Quasi-cyclic codes --------------------------------------------------------------------------


def multiplier(p):
    """Computes the coefficients of the code's polynomial by the engine's AES."""
    counters = np.zeros(((p + 127) // 128, 2), np.uint64)
    counters[:, 0] = np.arange(len(counters))
    key = np.frombuffer(spec.own_key(SEED, 4), np.uint8)
    stream = _core.aes128_encrypt(key, counters.view(np.uint8).ravel())
    return np.unpackbits(stream, bitorder="little")[:p].astype(np.uint64)


@pytest.mark.parametrize("p", [1, 2, 3, 11, 13, 101, 256, 257, 511, 523, 1019, 2053])
def test_qc_agrees_with_the_specification(p, tier, pool, rng):
    noise = random_blocks(rng, 2 * p)
    expected = spec.encode_qc(integers(noise), SEED, p)
    assert integers(_core.encode_qc(noise, SEED, p, pool, tier=tier)) == expected


@pytest.mark.parametrize("p", [4099, 16421, 32771, 50021, 65539, 65541, 131213, 199999])
def test_qc_multiplies_single_blocks_right(p, pool, rng):
    """With few nonzero blocks the product has a closed form. The values of p are around powers of
    two, where the number of transforms and of coefficients to correct changes."""
    noise = np.zeros((2 * p, 2), np.uint64)
    noise[:p] = random_blocks(rng, p)
    expected = noise[:p].copy()
    for i in [0, p - 1, *rng.integers(0, p, 8)]:
        block = random_blocks(rng, 1)[0]
        noise[p + i] ^= block
        expected ^= np.roll(multiplier(p), i)[:, None] * block
    assert np.array_equal(_core.encode_qc(noise, SEED, p, pool), expected)


@pytest.mark.parametrize("p", [16421, 65539, 70001])
def test_qc_is_the_same_in_all_tiers_and_for_any_number_of_threads(p, rng):
    noise = random_blocks(rng, 2 * p)
    expected = _core.encode_qc(noise, SEED, p, _core.ThreadPool(1), tier="portable")
    for tier in _core.supported_tiers():
        for threads in (1, 3):
            pool = _core.ThreadPool(threads)
            assert np.array_equal(_core.encode_qc(noise, SEED, p, pool, tier=tier), expected)


def test_qc_is_linear(tier, pool, rng):
    a, b = random_blocks(rng, 2 * 4099), random_blocks(rng, 2 * 4099)
    one, other, both = (_core.encode_qc(x, SEED, 4099, pool, tier=tier) for x in (a, b, a ^ b))
    assert np.array_equal(one ^ other, both)


@pytest.mark.parametrize("count", [0, 1, 100, 1019])
def test_qc_returns_as_many_blocks_as_are_asked_for_and_leaves_the_noise(count, pool, rng):
    noise = random_blocks(rng, 2 * 1019)
    before = noise.copy()
    found = _core.encode_qc(noise, SEED, count, pool)
    assert found.shape == (count, 2)
    assert found.dtype == np.uint64
    assert np.array_equal(found, _core.encode_qc(noise, SEED, 1019, pool)[:count])
    assert np.array_equal(noise, before)


def test_qc_is_the_same_in_a_room_that_others_have_used(pool, rng):
    scratch = _core.QuasiCyclicScratch()
    for p in (1019, 1019, 2053, 65541, 1019):
        noise = random_blocks(rng, 2 * p)
        found = _core.encode_qc(noise, SEED, p, pool, scratch=scratch)
        assert np.array_equal(found, _core.encode_qc(noise, SEED, p, pool))


@pytest.mark.parametrize("blocks", [0, 1, 129])
def test_qc_refuses_an_odd_number_of_blocks_and_none(blocks, pool):
    with pytest.raises(ArgumentError, match=f"noise: found {blocks} blocks"):
        _core.encode_qc(np.zeros((blocks, 2), np.uint64), SEED, 0, pool)


def test_qc_refuses_to_return_more_blocks_than_there_are(pool):
    with pytest.raises(ArgumentError, match="count: found 102, expected at most 101"):
        _core.encode_qc(np.zeros((202, 2), np.uint64), SEED, 102, pool)


def test_qc_refuses_a_seed_of_another_length(pool):
    with pytest.raises(ArgumentError, match="code_seed: found 15 bytes"):
        _core.encode_qc(np.zeros((202, 2), np.uint64), bytes(15), 101, pool)
