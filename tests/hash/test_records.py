"""Hashes of records: Python's SHA-256 of the prefix and the record, in every tier."""

import hashlib

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError

# Around the ends of pieces of 16 bytes and of blocks of 64, with the prefix of 16 and the padding.
LENGTHS = [1, 3, 4, 39, 40, 47, 48, 55, 56, 63, 64, 100, 256, 512, 1000, 5000]
COUNTS = [0, 1, 2, 7, 8, 9, 15, 16, 17, 33, 100]  # around 8 and 16 lanes


def expected(records, level, numbers):
    tag = b"NescioL%d" % level
    return [
        hashlib.sha256(tag + int(number).to_bytes(8, "little") + row.tobytes()).digest()
        for row, number in zip(records, numbers, strict=True)
    ]


def rows_of(array):
    return [row.tobytes() for row in array]


@pytest.mark.parametrize("length", LENGTHS)
def test_the_hashes_are_sha256_of_prefix_and_record(length, tier, pool, rng):
    for count in COUNTS:
        records = rng.integers(0, 256, (count, length), np.uint8)
        found = _core.hash_records(records, 0, 1000, pool, tier)
        assert found.shape == (count, 32)
        assert rows_of(found) == expected(records, 0, range(1000, 1000 + count))


def test_every_length_up_to_four_blocks(tier, pool, rng):
    for length in range(1, 257):
        records = rng.integers(0, 256, (3, length), np.uint8)
        found = _core.hash_records(records, 1, 5, pool, tier)
        assert rows_of(found) == expected(records, 1, (5, 6, 7))


def test_the_level_is_part_of_the_prefix(tier, pool, rng):
    records = rng.integers(0, 256, (17, 512), np.uint8)
    for level in range(8):
        found = _core.hash_records(records, level, 3, pool, tier)
        assert rows_of(found) == expected(records, level, range(3, 20))


@pytest.mark.parametrize("count", [1, 2, 16, 17, 50])
def test_records_with_numbers_of_their_own(count, tier, pool, rng):
    records = rng.integers(0, 256, (count, 40), np.uint8)
    numbers = rng.integers(0, 1 << 40, count, np.uint64)
    numbers[-1] = 1 << 40
    found = _core.hash_records_at(records, 2, numbers, pool, tier)
    assert rows_of(found) == expected(records, 2, numbers)


def test_consecutive_numbers_beyond_32_bits(tier, pool, rng):
    records = rng.integers(0, 256, (40, 64), np.uint8)
    first = (1 << 40) - 20
    found = _core.hash_records(records, 0, first, pool, tier)
    assert rows_of(found) == expected(records, 0, range(first, first + 40))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 100, 70_000])
def test_threads_split_the_records(threads, length, tier, rng):
    count = 300_001 // length + 3  # several tasks of 64 KiB, or of 16 records
    records = rng.integers(0, 256, (max(count, 40), length), np.uint8)
    numbers = rng.permutation(len(records)).astype(np.uint64)
    own = _core.ThreadPool(threads)
    sample = rng.choice(len(records), min(500, len(records)), replace=False)
    in_order = _core.hash_records(records, 0, 9, own, tier)
    assert rows_of(in_order[sample]) == expected(records[sample], 0, sample + 9)
    at = _core.hash_records_at(records, 0, numbers, own, tier)
    assert rows_of(at[sample]) == expected(records[sample], 0, numbers[sample])


def test_every_record_is_hashed_whatever_the_tasks(tier, pool):
    records = np.zeros((70_000, 1), np.uint8)
    found = _core.hash_records(records, 0, 0, pool, tier)
    assert rows_of(found) == expected(records, 0, range(len(records)))


def test_memory_at_any_address(tier, pool, rng):
    memory = rng.integers(0, 256, 20 * 48 + 1, np.uint8)
    records = memory[1:].reshape(20, 48)
    assert rows_of(_core.hash_records(records, 0, 0, pool, tier)) == expected(records, 0, range(20))


def test_invalid_arguments(pool):
    records = np.zeros((2, 4), np.uint8)
    with pytest.raises(ArgumentError, match="level of records: found 8, expected at most 7"):
        _core.hash_records(records, 8, 0, pool)
    with pytest.raises(ArgumentError, match="bytes of a record: found 0, expected at least 1"):
        _core.hash_records(np.zeros((2, 0), np.uint8), 0, 0, pool)
    with pytest.raises(ArgumentError, match="found 3, expected one for each of 2 records"):
        _core.hash_records_at(records, 0, np.zeros(3, np.uint64), pool)
    with pytest.raises(ArgumentError, match="found 8"):
        _core.hash_records_at(records, 8, np.zeros(2, np.uint64), pool)
    with pytest.raises(ArgumentError):
        _core.hash_records(records, 0, 0, pool, "no tier")
    with pytest.raises(TypeError):
        _core.hash_records(records[0], 0, 0, pool)
    with pytest.raises(TypeError):
        _core.hash_records(records, -1, 0, pool)
