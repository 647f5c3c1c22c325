"""Answers of older versions in the engine: those of the current one and patches, on every tier."""

from itertools import pairwise

import numpy as np
import pytest

from nescio import _core
from nescio.dpf import OUTPUTS
from nescio.errors import ArgumentError, IndexRangeError, MismatchError
from pir.test_bins import TABLES, keys_for, rows_of, specified, stored
from pir.test_lookup import assert_same, random_table
from spec import dpf, pir


def changed(values, count, rng):
    """Returns rows after an update of `count` of them at random, and the indices of these."""
    where = np.sort(rng.choice(len(values), count, replace=False)).astype(np.uint64)
    after = values.copy()
    after[where] = random_table(rng, (count, values.shape[1]))
    return after, where


def patch_of(before, after, where, groups, output, lane_bytes=None, tier=None):
    """Makes a patch; a lane is the whole row if its size is not given."""
    lane_bytes = lane_bytes or _core.answer_bytes(output, before.shape[1])
    return _core.Patch(where, before[where], after[where], groups, output, lane_bytes, tier)


def lanes_of(output, row_bytes):
    """Returns some sizes of lanes: the smallest, one between, and the whole row."""
    element, whole = _core.answer_bytes(output, 1), _core.answer_bytes(output, row_bytes)
    least = element * max(1, -(-whole // (64 * element)))
    return sorted({least, min(whole, 2 * least), whole})


def all_lookups(lookups, age):
    return np.full(lookups, age, np.uint64)


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_specification_of_older_answers(output, rng, pool):
    """The answer before two updates is the current one and the later patches' differences."""
    versions = [random_table(rng, (150, 21))]
    for _ in range(2):
        versions.append(changed(versions[-1], 20, rng)[0])
    rows = [[row.tobytes() for row in values] for values in versions]
    patches = [pir.patch(output, *pair) for pair in pairwise(rows)]
    parties, serialized, _ = keys_for([(1, 150, 1)], 1, output, "chacha8", rng)
    key = dpf.parse(serialized[0][0].tobytes())
    expected = pir.answer_key(output, rows[0], key)
    current = pir.answer_key(output, rows[2], key)
    assert pir.older_answer(output, current, patches, key) == expected
    found = stored([(1, 150, 1)], versions[2], output, pool).answer(parties[0], pool)
    made = [
        _core.Patch(
            np.array(sorted(own), np.uint64),
            versions[i][sorted(own)],
            versions[i + 1][sorted(own)],
            [(1, 150, 1)],
            output,
            _core.answer_bytes(output, 21),
        )
        for i, own in enumerate(patches)
    ]
    _core.add_patches(made, all_lookups(1, 2), parties[0], found, pool)
    assert found.tobytes() == expected


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", TABLES)
def test_every_tier_gives_the_specified_answers(name, output, threads, tier, rng):
    """Answers of a table that has changed since are those of the specification before."""
    before, keys, expected = specified(name, output)
    groups, pool = TABLES[name], _core.ThreadPool(threads)
    after, where = changed(before, max(1, len(before) // 3), rng)
    current = stored(groups, after, output, pool, tier).answer(keys, pool, tier)
    for lane in lanes_of(output, before.shape[1]):
        patch, answers = patch_of(before, after, where, groups, output, lane, tier), current.copy()
        _core.add_patches([patch], all_lookups(2, 1), keys, answers, pool, tier)
        assert_same(answers, expected)


@pytest.mark.parametrize("generator", ["aes128", "chacha20"])
@pytest.mark.parametrize("lookups", [1, 9, 200])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("row_bytes", [5, 64])
def test_any_patches(row_bytes, output, lookups, generator, tier, rng):
    """Several updates of few and of many rows; lookups of all ages and in any order together."""
    groups = [(1, 3000, 1), (5, 60, 2)]
    pool = _core.ThreadPool(2)
    versions, patches = [random_table(rng, (rows_of(groups), row_bytes))], []
    lane = lanes_of(output, row_bytes)[-1 if lookups % 2 else 0]
    for count in (1, 0, 700, 3):
        after, where = changed(versions[0], count, rng)
        patches.insert(0, patch_of(versions[0], after, where, groups, output, lane))
        versions.insert(0, after)
    parties, _, _ = keys_for(groups, lookups, output, generator, rng)
    answers = np.stack(
        [
            stored(groups, values, output, pool, tier)
            .answer(parties[1], pool, tier)
            .reshape(lookups, 11, -1)
            for values in versions
        ]
    )
    ages = rng.integers(len(versions), size=lookups, dtype=np.uint64)
    found = answers[0].reshape(11 * lookups, -1).copy()
    _core.add_patches(patches, ages, parties[1], found, pool, tier)
    assert_same(found.reshape(lookups, 11, -1), answers[ages, np.arange(lookups)])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("lookups", [1, 9, 300])
@pytest.mark.parametrize("output", OUTPUTS)
def test_several_versions_in_one_pass(output, lookups, threads, tier, rng):
    """Shares of changed rows come from the passes over a table of one bin, or from walks.

    300 lookups take two passes. The shares of the most changed rows of 16 bytes, and those of a
    table of several bins, are not taken from passes.
    """
    for groups in ([(1, 3000, 1)], [(1, 1400, 1), (4, 400, 1)]):
        pool = _core.ThreadPool(threads)
        versions, patches = [random_table(rng, (3000, 40))], []
        for count in (2900, 0, 700, 3):
            after, where = changed(versions[0], count, rng)
            patches.insert(0, patch_of(versions[0], after, where, groups, output, 16))
            versions.insert(0, after)
        (keys, _), _, _ = keys_for(groups, lookups, output, "chacha8", rng)
        tables = [stored(groups, values, output, pool) for values in versions]
        expected = np.stack([table.answer(keys, pool) for table in tables])
        slots = sum(count * each for count, _, each in groups)
        ages = rng.integers(len(versions), size=lookups, dtype=np.uint64)
        for own in (ages, all_lookups(lookups, 0)):
            (found,) = _core.answer_all([(tables[0], keys, patches, own)], pool, tier)
            at = np.repeat(own, slots).astype(np.int64)
            assert_same(found, expected[at, np.arange(len(at))])


@pytest.mark.parametrize("output", ["bit", "u32"])
def test_more_leaves_than_are_walked_to_at_a_time(output, tier, rng, pool):
    """A section has rows in several parts of the leaves, and parts begin within a byte of bits."""
    rows = 1_300_000 if output == "bit" else 70_000
    before = rng.integers(256, size=(rows, 4), dtype=np.uint8)
    first = changed(before, 10_000, rng)[1]
    middle, second = before.copy(), changed(before, 9_000, rng)[1]
    middle[first, :2] ^= 255
    after = middle.copy()
    after[second] ^= 255
    groups = [(1, rows, 1)]
    (keys, _), _, _ = keys_for(groups, 3, output, "aes128", rng)
    found = stored(groups, after, output, pool).answer(keys, pool)
    lane = _core.answer_bytes(output, 1)
    patches = [
        patch_of(middle, after, second, groups, output, lane),
        patch_of(before, middle, first, groups, output, lane),
    ]
    _core.add_patches(patches, np.array([2, 0, 1], np.uint64), keys, found, pool, tier)
    for i, values in enumerate((before, after, middle)):
        assert_same(found[i], stored(groups, values, output, pool).answer(keys, pool)[i])


def test_a_patch_has_the_lanes_that_differ(rng):
    before = random_table(rng, (4, 64))
    after, where = before.copy(), np.arange(4, dtype=np.uint64)
    after[2, 16:32] ^= 1
    small = patch_of(before, after, where, [(1, 4, 1)], "bit", 16)
    assert len(small) == 4
    assert small.bytes < patch_of(before, after, where, [(1, 4, 1)], "bit", 64).bytes
    same = patch_of(before, before, where, [(1, 4, 1)], "bit", 16)
    assert same.bytes == 0


def test_deep_trees(tier, rng, pool):
    """One changed row far from the others, in a domain of many leaves."""
    values = random_table(rng, (70_000, 16))
    where = np.array([0, 1, 4095, 4096, 65_535, 65_536, 69_999], np.uint64)
    after = values.copy()
    after[where] = random_table(rng, (7, 16))
    parties, _, _ = keys_for([(1, 70_000, 1)], 3, "u128", "chacha20", rng)
    expected = stored([(1, 70_000, 1)], values, "u128", pool).answer(parties[0], pool)
    found = stored([(1, 70_000, 1)], after, "u128", pool).answer(parties[0], pool)
    patch = patch_of(values, after, where, [(1, 70_000, 1)], "u128")
    _core.add_patches([patch], all_lookups(3, 1), parties[0], found, pool, tier)
    assert_same(found, expected)


def test_several_tables_are_answered_in_one_call(tier, rng, pool):
    """A table with patches and one without, each with keys of its own."""
    groups = [(1, 900, 1)], [(3, 40, 2)]
    before = [random_table(rng, (rows_of(own), 20)) for own in groups]
    after, where = changed(before[0], 50, rng)
    patch = patch_of(before[0], after, where, groups[0], "bit")
    keys = [keys_for(own, 2, "bit", "aes128", rng)[0][0] for own in groups]
    ages, none = np.array([1, 0], np.uint64), np.zeros(2, np.uint64)
    tables = [
        stored(own, v, "bit", pool) for own, v in zip(groups, (after, before[1]), strict=True)
    ]
    found = _core.answer_all(
        [(tables[0], keys[0], [patch], ages), (tables[1], keys[1], [], none)], pool, tier
    )
    older = stored(groups[0], before[0], "bit", pool).answer(keys[0], pool)
    assert_same(found[0], np.stack([older[0], tables[0].answer(keys[0], pool)[1]]))
    assert_same(found[1], tables[1].answer(keys[1], pool))
    assert _core.answer_all([], pool, tier) == []
    with pytest.raises(ArgumentError, match="found one without its own patches"):
        _core.answer_all([(tables[1], keys[1], [patch], none)], pool)
    with pytest.raises(ArgumentError, match="patches: found None"):
        _core.answer_all([(tables[0], keys[0], [None], ages)], pool)


def test_invalid_patches(rng, pool):
    groups, rows = [(1, 50, 1)], random_table(rng, (2, 8))
    numbers = [np.array(own, np.uint64) for own in ([3, 3], [4, 3], [3, 50], [3])]
    for where in numbers[:2]:
        with pytest.raises(ArgumentError, match="found row 3 after row"):
            _core.Patch(where, rows, rows, groups, "bit", 8)
    with pytest.raises(IndexRangeError, match="row 50 is outside the table of 50 rows"):
        _core.Patch(numbers[2], rows, rows, groups, "bit", 8)
    with pytest.raises(ArgumentError, match="old rows"):
        _core.Patch(numbers[3], rows, rows[:1], groups, "bit", 8)
    for lane in (0, 9, 6):
        with pytest.raises(ArgumentError, match=f"found {lane} bytes, expected 1 to 8, in mult"):
            _core.Patch(numbers[3], rows[:1], rows[1:], groups, "u32", lane)
    wide = random_table(rng, (1, 1000))
    with pytest.raises(ArgumentError, match="found 15 bytes, expected 16 to 1000"):
        _core.Patch(numbers[3], wide, wide, groups, "bit", 15)
    patch = _core.Patch(numbers[3], rows[:1], rows[1:], groups, "bit", 8)
    (keys, _), _, _ = keys_for(groups, 2, "bit", "chacha20", rng)
    answers, ages = np.zeros((2, 8), np.uint8), all_lookups(2, 1)
    with pytest.raises(ArgumentError, match="answers: found 1 of 8 bytes, expected 2 of 8"):
        _core.add_patches([patch], ages, keys, answers[:1], pool)
    with pytest.raises(ArgumentError, match="ages: found 1, expected 2, one for each lookup"):
        _core.add_patches([patch], ages[:1], keys, answers, pool)
    with pytest.raises(ArgumentError, match="ages: found 2, expected at most 1"):
        _core.add_patches([patch], ages + 1, keys, answers, pool)
    others = [(rows[1:], [(1, 51, 1)], 8), (rows[1:], groups, 4)]
    for after, bins, lane in others:
        other = _core.Patch(numbers[3], rows[:1], after, bins, "bit", lane)
        with pytest.raises(ArgumentError, match="different tables"):
            _core.add_patches([patch, other], ages, keys, answers, pool)
    (foreign, _), _, _ = keys_for([(1, 60, 1)], 2, "bit", "chacha20", rng)
    with pytest.raises(MismatchError):
        _core.add_patches([patch], ages, foreign, answers, pool)
    assert not answers.any()
    _core.add_patches([], ages, keys, answers, pool)
    assert not answers.any()
