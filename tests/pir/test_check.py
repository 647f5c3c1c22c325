"""The client's check of rows against hash tables, compared with a plain-Python model."""

import hashlib

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError


def hash_of(level, number, record):
    prefix = b"NescioL%d" % level + int(number).to_bytes(8, "little")
    return hashlib.sha256(prefix + bytes(record)).digest()


def as_rows(hashes):
    """Join hashes by sixteen, with zeros at the end."""
    joined = b"".join(hashes)
    joined += bytes(-len(joined) % 512)
    return [joined[i : i + 512] for i in range(0, len(joined), 512)]


def build(table, levels):
    """Return the hash tables of a table, lowest first, and the top hashes."""
    tables, hashes = [], [hash_of(0, i, row) for i, row in enumerate(table)]
    for level in range(1, levels + 1):
        tables.append(as_rows(hashes))
        hashes = [hash_of(level, i, row) for i, row in enumerate(tables[-1])]
    return tables, hashes


def model(index, row, records, tops):
    """Check one lookup."""
    number, digest = int(index), hash_of(0, index, row)
    for level, record in enumerate(records, 1):
        slot = number % 16
        if bytes(record)[32 * slot : 32 * slot + 32] != digest:
            return False
        number //= 16
        digest = hash_of(level, number, record)
    return number < len(tops) and bytes(tops[number]) == digest


def to_array(rows, width):
    return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, width).copy()


class Lookups:
    """A random table and sound answers to lookups in it."""

    def __init__(self, rng, rows, row_bytes, levels, indices):
        table = [rng.bytes(row_bytes) for _ in range(rows)]
        tables, tops = build(table, levels)
        self.indices = np.array(indices, np.uint64)
        self.rows = to_array([table[i] for i in indices], row_bytes)
        self.records = [
            to_array([level[i // 16 ** (depth + 1)] for i in indices], 512)
            for depth, level in enumerate(tables)
        ]
        self.tops = to_array(tops, 32)

    def arrays(self):
        """Return the arrays whose bytes the check depends on."""
        return [self.rows, *self.records, self.tops]

    def check(self, tier=None):
        return _core.check_rows(self.indices, self.rows, self.records, self.tops, tier)

    def model(self):
        return all(
            model(index, self.rows[k], [level[k] for level in self.records], self.tops)
            for k, index in enumerate(self.indices)
        )


@pytest.mark.parametrize("levels", [0, 1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 63, 64, 65, 130])
def test_sound_rows_pass(levels, count, tier, rng):
    indices = rng.integers(0, 300, count)
    lookups = Lookups(rng, 300, 40, levels, indices)
    assert lookups.model()
    assert lookups.check(tier) is True


@pytest.mark.parametrize("row_bytes", [1, 39, 48, 256, 1000])
def test_rows_of_every_length(row_bytes, tier, rng):
    assert Lookups(rng, 33, row_bytes, 1, [0, 15, 16, 31, 32]).check(tier)


@pytest.mark.parametrize("levels", [0, 1])
def test_every_wrong_bit_of_the_path_is_refused(levels, tier, rng):
    lookups = Lookups(rng, 20, 5, levels, [18])
    position = 18 // 16**levels
    tops = lookups.tops[position : position + 1]
    for array in (lookups.rows, *lookups.records, tops):
        for byte in range(array.shape[1]):
            for bit in range(8):
                array[0, byte] ^= 1 << bit
                assert lookups.check(tier) is False
                array[0, byte] ^= 1 << bit
    assert lookups.check(tier)


def test_only_top_hashes_of_other_rows_may_differ(tier, rng):
    lookups = Lookups(rng, 40, 8, 1, [20])
    lookups.tops[[0, 2]] ^= 1
    assert lookups.model()
    assert lookups.check(tier)


@pytest.mark.parametrize("count", [1, 5, 70])
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_random_errors_are_judged_as_by_the_model(count, levels, tier, rng):
    lookups = Lookups(rng, 600, 11, levels, rng.integers(0, 600, count))
    seen = set()
    for _ in range(60):
        arrays = lookups.arrays()
        array = arrays[rng.integers(len(arrays))]
        row, byte = rng.integers(array.shape[0]), rng.integers(array.shape[1])
        before = array[row, byte]
        array[row, byte] ^= rng.integers(1, 256)
        assert lookups.check(tier) is lookups.model()
        seen.add(lookups.model())
        array[row, byte] = before
    assert False in seen


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_a_wrong_index_is_refused(levels, tier, rng):
    lookups = Lookups(rng, 300, 16, levels, [7, 255])
    others = [*range(255), *range(256, 300), 299 + 16**levels, 256 * 4096, 255 + (1 << 20)]
    for other in [*others, 1 << 32, 255 + (1 << 32), 1 << 63, (1 << 63) + 255, (1 << 64) - 1]:
        lookups.indices[1] = other
        assert lookups.check(tier) is False


def test_rows_of_other_indices_are_refused(tier, rng):
    """The number is part of the hash: a sound row with a sound path is not another index's."""
    lookups = Lookups(rng, 300, 16, 2, [7, 255])
    lookups.indices = lookups.indices[::-1].copy()
    assert not lookups.check(tier)


def test_one_wrong_row_of_many_is_refused(tier, rng):
    lookups = Lookups(rng, 300, 16, 2, rng.integers(0, 300, 131))
    for k in range(131):
        lookups.rows[k, k % 16] ^= 0x80
        assert not lookups.check(tier)
        lookups.rows[k, k % 16] ^= 0x80


def test_a_hash_table_cannot_stand_for_rows(tier, rng):
    """Levels separate: a record of hashes does not pass as a row of the table."""
    lookups = Lookups(rng, 300, 512, 2, [40])
    forged = _core.check_rows(
        lookups.indices // 16, lookups.records[0], lookups.records[1:], lookups.tops, tier
    )
    assert forged is False


def test_without_top_hashes_nothing_passes(tier, rng):
    lookups = Lookups(rng, 20, 8, 1, [3])
    lookups.tops = lookups.tops[:0]
    assert lookups.check(tier) is False


@pytest.mark.parametrize("index", [1, 1 << 32, 1 << 63, (1 << 63) + 1, (1 << 64) - 1])
def test_an_index_beyond_the_tops_is_refused_with_its_own_hash(index, tier):
    row = bytes(8)
    tops = to_array([hash_of(0, index, row)], 32)
    assert not _core.check_rows(np.array([index], np.uint64), to_array([row], 8), [], tops, tier)


def test_the_widest_check(tier, rng):
    """4,096 top hashes over 65,536 rows."""
    lookups = Lookups(rng, 65_536, 8, 1, [0, 4_095, 65_535])
    assert len(lookups.tops) == 4096
    assert lookups.check(tier)
    lookups.tops[-1, 31] ^= 1
    assert not lookups.check(tier)


@pytest.mark.parametrize("levels", [0, 1])
def test_rows_are_proven_by_the_tops_of_their_ranges_only(levels, tier, rng):
    rows = [3, 40, 299]
    lookups = Lookups(rng, 300, 8, levels, rows)
    tops = [row // 16**levels for row in rows]

    def check(ranges):
        flat = np.array(ranges, np.uint64).reshape(-1)
        return _core.check_rows(
            lookups.indices, lookups.rows, lookups.records, lookups.tops, tier, flat
        )

    end = len(lookups.tops)
    assert check([(0, end)] * 3)
    assert check([(top, top + 1) for top in tops])
    for k, top in enumerate(tops):
        for wrong in ((top + 1, end), (0, top), (top, top)):
            ranges = [(0, end)] * 3
            ranges[k] = wrong
            assert not check(ranges)
    lookups.rows[1, 0] ^= 1
    assert not check([(top, top + 1) for top in tops])


@pytest.mark.parametrize("ranges", [[0, 1], [0, 1, 0, 21], [1, 0, 0, 1], [0, 1, 0, 1, 0, 1]])
def test_invalid_ranges(ranges, rng):
    a = Lookups(rng, 20, 8, 0, [3, 4])
    with pytest.raises(ArgumentError, match="expected a first one and an end for each index"):
        _core.check_rows(a.indices, a.rows, a.records, a.tops, ranges=np.array(ranges, np.uint64))


def test_invalid_shapes(rng):
    a = Lookups(rng, 20, 8, 1, [3, 4])
    check = _core.check_rows
    with pytest.raises(ArgumentError, match=r"rows: found .* \(1, 8\), expected \(2, 8\)"):
        check(a.indices, a.rows[:1], a.records, a.tops)
    with pytest.raises(ArgumentError, match=r"hash table: found .* \(1, 512\), expected \(2, 512"):
        check(a.indices, a.rows, [a.records[0][:1]], a.tops)
    with pytest.raises(ArgumentError, match=r"hash table: found .* \(2, 511\), expected \(2, 512"):
        check(a.indices, a.rows, [a.records[0][:, :511]], a.tops)
    with pytest.raises(ArgumentError, match=r"top hashes: found .* \(2, 31\), expected \(2, 32\)"):
        check(a.indices, a.rows, a.records, a.tops[:, :31])
    with pytest.raises(ArgumentError, match="hash tables: found 8, expected at most 7"):
        check(a.indices, a.rows, a.records * 8, a.tops)
    with pytest.raises(ArgumentError, match="bytes of a record: found 0"):
        check(a.indices, a.rows[:, :0], a.records, a.tops)
    with pytest.raises(ArgumentError):
        check(a.indices, a.rows, a.records, a.tops, "no tier")
