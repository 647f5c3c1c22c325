"""GF(2^128), random linear combinations, and bit transposition."""

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError
from ot.blocks import random_blocks, to_array, to_integers
from spec import ot_check as spec
from spec.blocks import to_block

SEED = bytes(range(100, 116))


def product(a, b, tier):
    return to_integers(_core.multiply_blocks(to_array([a])[0], to_array([b])[0], tier))[0]


def from_gcm(text):
    """Converts a block of GCM, which numbers bits from the highest bit of byte 0."""
    reflected = bytes(int(f"{byte:08b}"[::-1], 2) for byte in bytes.fromhex(text))
    return to_block(reflected)


# ---- Multiplication ------------------------------------------------------------------------------

# McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, test case 2: H, C,
# X_1 = C H, and GHASH(H, {}, C) = (X_1 ^ len) H. The field is the same, its bits are reversed.
GCM_H = "66e94bd4ef8a2c3b884cfa59ca342b2e"
GCM_C = "0388dace60b6a392f328c2b971b2fe78"
GCM_X1 = "5e2ec746917062882c85b0685353deb7"
GCM_LENGTHS = "00000000000000000000000000000080"
GCM_GHASH = "f38cbb1ad69223dcc3457ae5b6b0f885"


def test_products_are_those_of_gcm(tier):
    h = from_gcm(GCM_H)
    assert product(from_gcm(GCM_C), h, tier) == from_gcm(GCM_X1)
    assert product(from_gcm(GCM_X1) ^ from_gcm(GCM_LENGTHS), h, tier) == from_gcm(GCM_GHASH)


def test_the_specifications_products_are_those_of_gcm():
    h = from_gcm(GCM_H)
    assert spec.multiply(from_gcm(GCM_C), h) == from_gcm(GCM_X1)
    assert spec.multiply(from_gcm(GCM_X1) ^ from_gcm(GCM_LENGTHS), h) == from_gcm(GCM_GHASH)


EDGES = [0, 1, 2, 1 << 63, 1 << 64, 1 << 127, (1 << 128) - 1, 0x87, int("11" * 16, 16)]


@pytest.mark.parametrize("a", EDGES)
@pytest.mark.parametrize("b", EDGES)
def test_products_at_the_edges(a, b, tier):
    assert product(a, b, tier) == spec.multiply(a, b)


def test_products_of_random_elements(tier, rng):
    values = to_integers(random_blocks(rng, 60))
    for a, b in zip(values[::2], values[1::2], strict=True):
        assert product(a, b, tier) == spec.multiply(a, b)


# ---- Sums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 100, 512, 513, 1030])
def test_sums_are_those_of_the_specification(count, tier, pool, rng):
    leaves = random_blocks(rng, count)
    found = _core.chi_sum(leaves, SEED, pool, tier)
    assert to_integers(found) == [spec.chi_sum(to_integers(leaves), SEED)]


@pytest.mark.parametrize("count", [32767, 32768, 100_003])
def test_all_tiers_and_numbers_of_threads_agree(count, tier, rng):
    leaves = random_blocks(rng, count)
    expected = _core.chi_sum(leaves, SEED, _core.ThreadPool(1), "portable")
    for threads in (1, 2, 5):
        assert (_core.chi_sum(leaves, SEED, _core.ThreadPool(threads), tier) == expected).all()


@pytest.mark.parametrize("position", [0, 1, 31, 511, 512, 32767, 32768, 99_999])
def test_a_sum_is_linear_with_the_coefficients_told(position, tier, pool):
    leaves = np.zeros((100_000, 2), np.uint64)
    leaves[position] = (1, 0)
    chi = _core.chi_at(np.array([position], np.uint64), SEED, tier)
    assert (_core.chi_sum(leaves, SEED, pool, tier) == chi[0]).all()


def test_coefficients_are_those_of_the_specification(tier):
    positions = [0, 5, 5, 1 << 33, (1 << 64) - 1]
    found = _core.chi_at(np.array(positions, np.uint64), SEED, tier)
    assert to_integers(found) == [spec.chi(SEED, position) for position in positions]


def test_packed_bits_are_those_of_the_specification(rng):
    blocks = random_blocks(rng, 128)
    assert to_integers(_core.pack_bits(blocks)) == [spec.pack(to_integers(blocks))]


def test_packed_bits_of_a_constant_make_its_product(rng):
    """The sum of x_i * delta * X^i is delta times the block of the bits x_i."""
    delta, bits = to_integers(random_blocks(rng, 2))
    blocks = to_array([delta * (bits >> i & 1) for i in range(128)])
    assert to_integers(_core.pack_bits(blocks)) == [spec.multiply(delta, bits)]


# ---- Bit transposition ---------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0, 1, 7, 8, 63, 64, 65, 200])
def test_bits_are_turned_round(width, rng):
    rows = rng.integers(0, 256, (128, width), dtype=np.uint8)
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    expected = np.packbits(bits.T, axis=1, bitorder="little")
    found = _core.transpose_bits(rows)
    assert found.shape == (8 * width, 2)
    assert (found.view(np.uint8).reshape(-1, 16) == expected.reshape(-1, 16)).all()


# ---- Bad input -----------------------------------------------------------------------------------


def test_bad_arguments_are_refused(pool):
    with pytest.raises(ArgumentError, match="blocks: found 127, expected 128"):
        _core.pack_bits(np.zeros((127, 2), np.uint64))
    with pytest.raises(ArgumentError, match="rows of bits: found 64, expected 128"):
        _core.transpose_bits(np.zeros((64, 8), np.uint8))
    with pytest.raises(ArgumentError, match="chi_seed in bytes: found 8, expected 16"):
        _core.chi_sum(np.zeros((4, 2), np.uint64), bytes(8), pool)
    with pytest.raises(ArgumentError, match="chi_seed in bytes: found 17, expected 16"):
        _core.chi_at(np.zeros(4, np.uint64), bytes(17))
