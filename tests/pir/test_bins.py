"""Tables with bins in the engine: their memory, their changes, and answers on every tier."""

import functools
from itertools import pairwise

import numpy as np
import pytest

from nescio import _core
from nescio.dpf import OUTPUTS
from nescio.errors import ArgumentError, IndexRangeError, MismatchError
from pir.test_lookup import assert_same, random_table
from pir.test_table import sliced
from spec import dpf, pir

# Groups of bins: their number, the rows of each, the keys to each. Bins of one row, of a tile and
# of a row less and more; more bins than threads; a group of one bin beside others.
TABLES = {
    "of one row": [(3, 1, 1)],
    "around a tile": [(1, 511, 1), (2, 512, 2), (2, 513, 1)],
    "a hot one": [(1, 40, 3), (7, 130, 1)],
    "many": [(40, 9, 2)],
}


def rows_of(groups):
    return sum(count * rows for count, rows, _ in groups)


def stored(groups, values, output, pool, tier=None):
    table = _core.Table(groups, values.shape[1], output)
    table.store(0, values, pool, tier)
    return table


def keys_for(groups, lookups, output, generator, rng):
    """Makes keys of lookups, for each party and group; and their rows, (lookups, slots)."""
    pairs, wanted, first = [], [], 0
    for count, rows, each in groups:
        places = rng.integers(rows, size=(lookups, count, each), dtype=np.uint64)
        one = np.tile(np.array([1, 0], np.uint64), (places.size, 1))
        pairs.append(_core.generate(places.reshape(-1), one, rows, output, generator))
        bins = first + rows * np.arange(count, dtype=np.uint64)[:, np.newaxis]
        wanted.append((places + bins).reshape(lookups, -1))
        first += count * rows
    parties = [[_core.Keys(pair[party]) for pair in pairs] for party in (0, 1)]
    return parties, [pair[0] for pair in pairs], np.concatenate(wanted, axis=1)


@functools.cache
def specified(name, output):
    """Returns rows, keys of two lookups, and the answers of the specification."""
    rng, groups = np.random.default_rng(5), TABLES[name]
    values = random_table(rng, (rows_of(groups), 9))
    parties, serialized, _ = keys_for(groups, 2, output, "chacha8", rng)
    left = [iter(own) for own in serialized]
    lookups = [
        [
            [[dpf.parse(next(left[g]).tobytes()) for _ in range(each)] for _ in range(count)]
            for g, (count, _, each) in enumerate(groups)
        ]
        for _ in range(2)
    ]
    answers = pir.answer_lookups(output, groups, [row.tobytes() for row in values], lookups)
    return values, parties[0], np.frombuffer(b"".join(answers), np.uint8).reshape(len(answers), -1)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", TABLES)
def test_answers_are_those_of_the_specification(name, output, threads, tier):
    values, keys, expected = specified(name, output)
    pool = _core.ThreadPool(threads)
    table = stored(TABLES[name], values, output, pool, tier)
    assert_same(table.answer(keys, pool, tier), expected)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("lookups", [1, 5, 90, 300])
@pytest.mark.parametrize("output", ["bit", "u32"])
@pytest.mark.parametrize("generator", ["aes128", "chacha20"])
def test_any_number_of_lookups(generator, output, lookups, threads, tier, rng):
    """With few keys to a bin, and with several passes; the parties' answers add up to the rows."""
    groups = [(2, {"bit": 2600, "u32": 700}[output], 2), (1, 5, 1), (30, 90, 1)]
    pool = _core.ThreadPool(threads)
    values = random_table(rng, (rows_of(groups), 24))
    table = stored(groups, values, output, pool, tier)
    parties, _, wanted = keys_for(groups, lookups, output, generator, rng)
    shares = [table.answer(keys, pool, tier).reshape(-1) for keys in parties]
    found = _core.combine(output, *shares).reshape(lookups, wanted.shape[1], 24)
    assert_same(found, values[wanted])


@pytest.mark.parametrize("output", ["bit", "u64"])
def test_bins_are_tables_of_their_own(output, rng, pool):
    """Each is in the memory of a table with its rows, and gives that table's answers."""
    groups = [(2, 600, 1), (1, 513, 2)]
    values = random_table(rng, (rows_of(groups), 20))
    table = stored(groups, values, output, pool)
    alone = [
        stored([(1, len(own), keys)], own, output, pool)
        for own, keys in zip(np.split(values, [600, 1200]), [1, 1, 2], strict=True)
    ]
    assert_same(table.memory(), np.concatenate([one.memory() for one in alone]))
    assert table.bytes == sum(one.bytes for one in alone)
    assert table.bytes == _core.table_bytes(groups, 20, output)
    parties, serialized, _ = keys_for(groups, 3, output, "aes128", rng)
    answers = table.answer(parties[0], pool).reshape(3, 4, -1)
    slots = np.concatenate([own.reshape(3, 2, -1) for own in serialized], axis=1)
    for one, own in zip(alone, [[0], [1], [2, 3]], strict=True):
        keys = _core.Keys(slots[:, own].reshape(-1, slots.shape[2]))
        separate = one.answer([keys], pool)
        assert_same(answers[:, own].reshape(separate.shape), separate)


@pytest.mark.parametrize("output", ["bit", "u8"])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("row_bytes", [1, 16, 70])
def test_rows_come_back_and_change(row_bytes, name, output, tier, rng):
    groups, pool = TABLES[name], _core.ThreadPool(2)
    values = random_table(rng, (rows_of(groups), row_bytes))
    table = stored(groups, values, output, pool, tier)
    assert_same(table.load_range(0, len(values), pool, tier), values)
    some = rng.integers(len(values), size=50).astype(np.uint64)
    assert_same(table.load(some, tier), values[some])
    new = random_table(rng, (50, row_bytes))
    table.replace(_core.RowChanges(some, new, groups, pool), pool, tier)
    for index, row in zip(some, new, strict=True):
        values[index] = row  # of several rows for one index, the last one stays
    assert_same(table.load_range(0, len(values), pool, tier), values)
    assert_same(table.memory(), stored(groups, values, output, pool).memory())


def test_the_memory_is_that_of_the_definition(rng, pool, tier):
    groups = TABLES["around a tile"]
    values = random_table(rng, (rows_of(groups), 12))
    table = stored(groups, values, "bit", pool, tier)
    bins = np.split(values, [511, 1023, 1535, 2048])
    assert_same(table.memory(), np.concatenate([sliced(rows) for rows in bins]))


@pytest.mark.parametrize("output", ["bit", "u32"])
def test_rows_that_come_in_parts(output, rng, pool):
    """From the beginning of any tile, over the ends of bins and groups."""
    groups = [(2, 700, 1), (3, 100, 1)]
    values = random_table(rng, (1700, 8))
    table = _core.Table(groups, 8, output)
    starts = [0, 512, 700, 1212, 1400, 1600, 1700]
    for first, end in reversed(list(pairwise(starts))):
        table.store(first, values[first:end], pool)
    assert_same(table.memory(), stored(groups, values, output, pool).memory())
    assert_same(table.load_range(512, 900, pool), values[512:1412])
    assert_same(table.load_range(1500, 200, pool), values[1500:])
    assert_same(table.load_range(1700, 0, pool), values[1700:])
    for first, count in [(1, 10), (512, 1189), (1024, 10), (1701, 0)]:
        with pytest.raises(IndexRangeError, match="outside the table of 1700 rows"):
            table.load_range(first, count, pool)
        with pytest.raises(IndexRangeError, match="outside the table of 1700 rows"):
            table.store(first, np.zeros((count or 1, 8), np.uint8), pool)


def test_changes_of_a_table_with_other_bins(pool):
    table = _core.Table([(2, 50, 1)], 8, "bit")
    one, row = np.zeros(1, np.uint64), np.zeros((1, 8), np.uint8)
    for groups in ([(1, 100, 1)], [(1, 50, 1)], [(4, 25, 1)]):
        with pytest.raises(ArgumentError, match="expected 100 rows of 8 bytes in bins"):
            table.replace(_core.RowChanges(one, row, groups, pool), pool)
    with pytest.raises(IndexRangeError, match="row 100 is outside the table of 100 rows"):
        _core.RowChanges(one + np.uint64(100), row, [(2, 50, 1)], pool)
    with pytest.raises(IndexRangeError, match="row 100 is outside the table of 100 rows"):
        table.load(one + np.uint64(100))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "found no group of bins, expected at least one"),
        ([(0, 5, 1)], "found 0 bins of 5 rows, 1 keys each, expected at least one"),
        ([(5, 0, 1)], "expected at least one bin"),
        ([(5, 5, 0)], "expected at least one bin"),
        ([(1 << 63, 2, 1)], "more than 2.62 rows or keys"),
        ([(2, 1 << 63, 1)], "more than 2.62 rows or keys"),
        ([(1, (1 << 64) - 1, 1)], "more than 2.62 rows or keys"),
        ([(1 << 61, 1, 1)], "more than 2.62 rows or keys"),
        ([(1 << 20, 1, 1 << 43)], "more than 2.62 rows or keys"),
        ([(1, 1, 1 << 61), (1, 1, 1 << 62)], "more than 2.62 rows or keys"),
        ([(1, 1 << 58, 1), (3, 1 << 58, 1)], "invalid table size: 1152921504606846976 rows"),
    ],
)
def test_invalid_bins(groups, message, pool):
    with pytest.raises(ArgumentError, match=message):
        _core.Table(groups, 8, "bit")
    with pytest.raises(ArgumentError, match=message):
        _core.table_bytes(groups, 8, "bit")


def test_keys_that_do_not_fit_the_bins(rng, pool):
    groups = [(2, 50, 1), (1, 60, 3)]
    table = stored(groups, random_table(rng, (160, 8)), "bit", pool)

    def keys(count, rows, output="bit"):
        return keys_for([(1, rows, count)], 1, output, "aes128", rng)[0][0][0]

    for found in ([], [keys(2, 50)], [keys(2, 50), keys(3, 60), keys(1, 50)]):
        with pytest.raises(ArgumentError, match=f"found {len(found)} groups, expected 2"):
            table.answer(found, pool)
    for first, second in [(3, 3), (2, 4), (2, 6), (4, 3), (1, 3), (0, 3), (2, 0)]:
        with pytest.raises(ArgumentError, match=r"group \d: found \d, expected \d for each"):
            table.answer([keys(first, 50), keys(second, 60)], pool)
    for wrong in ([keys(2, 51), keys(3, 60)], [keys(2, 50), keys(3, 50)]):
        with pytest.raises(MismatchError, match="a key does not match the table"):
            table.answer(wrong, pool)
    with pytest.raises(MismatchError, match="found u8 keys over 60 points"):
        table.answer([keys(2, 50), keys(3, 60, "u8")], pool)
    with pytest.raises(ArgumentError, match="keys of group 1: found None"):
        table.answer([keys(2, 50), None], pool)
    assert table.answer([keys(2, 50), keys(3, 60)], pool).shape == (5, 8)
    assert table.answer([_core.Keys(np.zeros((0, 0), np.uint8))] * 2, pool).shape == (0, 8)
