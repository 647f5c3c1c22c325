"""The primal encoder: a public sparse matrix times short secrets, plus noise."""

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError
from ot.blocks import random_blocks, to_array, to_integers
from spec import ot_primal as spec

CODE = bytes(range(16))


def encoded(noise, seeds, *, code=CODE, first_row=0, pool, tier=None):
    rows = noise.copy()
    _core.encode_primal(rows, seeds, code, first_row, pool, tier)
    return rows


@pytest.mark.parametrize("k", [1, 2, 3, 64, 100, 1 << 10, 452_000])
@pytest.mark.parametrize(("first_row", "count"), [(0, 40), (7, 33), ((1 << 40) + 3, 21)])
def test_rows_are_those_of_the_specification(k, first_row, count, tier, pool, rng):
    noise, seeds = random_blocks(rng, count), random_blocks(rng, k)
    found = encoded(noise, seeds, first_row=first_row, pool=pool, tier=tier)
    expected = spec.encode(to_integers(noise), to_integers(seeds), CODE, first_row)
    assert to_integers(found) == expected


def test_a_row_is_ten_words_of_the_stream(tier, pool):
    """AES-128 of the blocks 0, 1 and 2 under the key 2b7e.. gives the first ten words."""
    key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    plain = np.array([0, 0, 1, 0, 2, 0], np.uint64).view(np.uint8)
    words = _core.aes128_encrypt(np.frombuffer(key, np.uint8), plain).view(np.uint32)[:10]
    seeds = to_array([1 << (i % 128) for i in range(128)])
    found = encoded(to_array([0]), seeds, code=key, pool=pool, tier=tier)
    expected = 0
    for word in words:
        expected ^= 1 << (int(word) & 127)
    assert to_integers(found) == [expected]


@pytest.mark.parametrize("k", [1 << 16, 50_021])
@pytest.mark.parametrize("count", [1, 255, 256, 257, 40_000])
def test_all_tiers_and_numbers_of_threads_agree(k, count, tier, rng):
    noise, seeds = random_blocks(rng, count), random_blocks(rng, k)
    expected = encoded(noise, seeds, pool=_core.ThreadPool(1), tier="portable")
    for threads in (1, 2, 5):
        found = encoded(noise, seeds, pool=_core.ThreadPool(threads), tier=tier)
        assert (found == expected).all()


def test_rows_can_be_made_in_parts(tier, pool, rng):
    noise, seeds = random_blocks(rng, 1000), random_blocks(rng, 4096)
    whole = encoded(noise, seeds, pool=pool, tier=tier)
    for cut in (1, 3, 300, 777):
        first = encoded(noise[:cut], seeds, pool=pool, tier=tier)
        rest = encoded(noise[cut:], seeds, first_row=cut, pool=pool, tier=tier)
        assert (np.concatenate([first, rest]) == whole).all()


def test_places_are_spread_evenly(pool):
    """Each of 64 seeds is at 1/64 of the 10 * 2^16 positions, within six standard deviations."""
    rows = encoded(
        np.zeros((1 << 16, 2), np.uint64), to_array([1 << i for i in range(64)]), pool=pool
    )
    ones = np.unpackbits(rows[:, :1].view(np.uint8), axis=1).sum(axis=0)
    odd = (1 - (1 - 2 / 64) ** 10) / 2  # chance that a row has a seed an odd number of times
    deviation = (odd * (1 - odd) * (1 << 16)) ** 0.5
    assert (abs(ones - odd * (1 << 16)) < 6 * deviation).all()


def test_no_rows_at_all(tier, pool):
    _core.encode_primal(
        np.zeros((0, 2), np.uint64), np.ones((4, 2), np.uint64), CODE, 0, pool, tier
    )


def test_bad_arguments_are_refused(pool):
    noise, seeds = np.zeros((8, 2), np.uint64), np.ones((4, 2), np.uint64)
    with pytest.raises(ArgumentError, match="seeds of a primal code: found 0"):
        _core.encode_primal(noise, seeds[:0], CODE, 0, pool)
    for length in (0, 15, 17):
        with pytest.raises(ArgumentError, match=f"code_seed in bytes: found {length}, expected 16"):
            _core.encode_primal(noise, seeds, bytes(length), 0, pool)
    shifted = np.zeros(17, np.uint64)[1:].reshape(8, 2)
    with pytest.raises(ArgumentError, match="noise: .* not aligned to 16 bytes"):
        _core.encode_primal(shifted, seeds, CODE, 0, pool)
    for bad in (
        noise.astype(np.int64),
        noise.T,
        noise.reshape(-1),
        np.zeros((8, 4), np.uint64)[:, :2],
    ):
        with pytest.raises(TypeError):
            _core.encode_primal(bad, seeds, CODE, 0, pool)
    noise.flags.writeable = False
    with pytest.raises(TypeError):
        _core.encode_primal(noise, seeds, CODE, 0, pool)
