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


def patch_of(before, after, where, groups, output):
    return _core.Patch(where, before[where], after[where], groups, output)


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
        )
        for i, own in enumerate(patches)
    ]
    _core.add_patches(made, parties[0], found, pool)
    assert found.tobytes() == expected


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", TABLES)
def test_every_tier_gives_the_specified_answers(name, output, threads, tier, rng):
    """Answers of a table that has changed since are those of the specification before."""
    before, keys, expected = specified(name, output)
    groups, pool = TABLES[name], _core.ThreadPool(threads)
    after, where = changed(before, max(1, len(before) // 3), rng)
    answers = stored(groups, after, output, pool, tier).answer(keys, pool, tier)
    _core.add_patches([patch_of(before, after, where, groups, output)], keys, answers, pool, tier)
    assert_same(answers, expected)


@pytest.mark.parametrize("generator", ["aes128", "chacha20"])
@pytest.mark.parametrize("lookups", [1, 9, 200])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("row_bytes", [5, 64])
def test_any_patches(row_bytes, output, lookups, generator, tier, rng):
    """Several updates of few and of many rows; more of a bin than are multiplied at a time."""
    groups = [(1, 3000, 1), (5, 60, 2)]
    pool = _core.ThreadPool(2)
    versions, patches = [random_table(rng, (rows_of(groups), row_bytes))], []
    for count in (1, 0, 700, 3):
        after, where = changed(versions[-1], count, rng)
        patches.append(patch_of(versions[-1], after, where, groups, output))
        versions.append(after)
    parties, _, _ = keys_for(groups, lookups, output, generator, rng)
    answers = [
        stored(groups, values, output, pool, tier).answer(parties[1], pool, tier)
        for values in versions
    ]
    for age in range(1, len(versions)):
        found = answers[-1].copy()
        _core.add_patches(patches[-age:], parties[1], found, pool, tier)
        assert_same(found, answers[-1 - age])


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
    _core.add_patches([patch], parties[0], found, pool, tier)
    assert_same(found, expected)


def test_invalid_patches(rng, pool):
    groups, rows = [(1, 50, 1)], random_table(rng, (2, 8))
    numbers = [np.array(own, np.uint64) for own in ([3, 3], [4, 3], [3, 50], [3])]
    for where in numbers[:2]:
        with pytest.raises(ArgumentError, match="found row 3 after row"):
            _core.Patch(where, rows, rows, groups, "bit")
    with pytest.raises(IndexRangeError, match="row 50 is outside the table of 50 rows"):
        _core.Patch(numbers[2], rows, rows, groups, "bit")
    with pytest.raises(ArgumentError, match="old rows"):
        _core.Patch(numbers[3], rows, rows[:1], groups, "bit")
    patch = _core.Patch(numbers[3], rows[:1], rows[1:], groups, "bit")
    assert (len(patch), patch.bytes) == (1, 16)
    (keys, _), _, _ = keys_for(groups, 2, "bit", "chacha20", rng)
    answers = np.zeros((2, 8), np.uint8)
    with pytest.raises(ArgumentError, match="answers: found 1 of 8 bytes, expected 2 of 8"):
        _core.add_patches([patch], keys, answers[:1], pool)
    other = _core.Patch(numbers[3], rows[:1], rows[1:], [(1, 51, 1)], "bit")
    with pytest.raises(ArgumentError, match="different tables"):
        _core.add_patches([patch, other], keys, answers, pool)
    (others, _), _, _ = keys_for([(1, 60, 1)], 2, "bit", "chacha20", rng)
    with pytest.raises(MismatchError):
        _core.add_patches([patch], others, answers, pool)
    assert not answers.any()
    _core.add_patches([], keys, answers, pool)
    assert not answers.any()
