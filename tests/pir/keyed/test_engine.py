"""The engine's hashes of keys and their places, against the specification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nescio import _core
from nescio.errors import ArgumentError
from spec import keyed as spec

POOL = _core.ThreadPool(2)
SEED = bytes(range(32))
TINY = st.integers(1, 9)
WORD = st.integers(0, 2**64 - 1)


def hashed(seed, keys):
    """Hashes keys of bytes, tags included."""
    data = np.frombuffer(b"".join(keys), np.uint8)
    ends = np.cumsum([len(key) for key in keys], dtype=np.uint64)
    return _core.hash_keys(np.frombuffer(seed, np.uint8), data, ends, POOL)


@given(st.lists(st.binary(max_size=200), max_size=30), st.binary(min_size=32, max_size=32))
def test_hashes(keys, seed):
    expected = [spec.words(seed, key) for key in keys]
    assert hashed(seed, [b"b" + key for key in keys]).tolist() == list(map(list, expected))


def test_many_hashes():
    """More than a task of a thread has."""
    keys = [b"%d" % i for i in range(5000)]
    words = hashed(SEED, [b"b" + key for key in keys])
    assert words.tolist() == [list(spec.words(SEED, key)) for key in keys]


@pytest.mark.parametrize(
    ("seed", "ends"), [(bytes(31), [3]), (SEED, [2]), (SEED, [4]), (SEED, [3, 2]), (SEED, [])]
)
def test_invalid_hashes(seed, ends):
    data = np.zeros(3, np.uint8)
    with pytest.raises(ArgumentError, match="found"):
        _core.hash_keys(np.frombuffer(seed, np.uint8), data, np.array(ends, np.uint64), POOL)


def contents(table):
    """Returns the words at each slot of a table of the engine."""
    found = [None] * (3 * table.rows)
    for slot, words in zip(*map(np.ndarray.tolist, table.entries()), strict=True):
        found[slot] = tuple(words)
    return found


@given(TINY, st.lists(st.tuples(WORD, WORD, WORD, st.integers(1, 2**64 - 1), st.booleans())))
def test_places(rows, operations):
    """Insertions, also those without a place, and deletions."""
    table, expected = _core.Cuckoo(rows), spec.Subtables(rows)
    for *words, is_deletion in operations:
        held = [key for key in expected.slots if key is not None]
        if is_deletion and held:
            key = held[words[0] % len(held)]
            expected.delete(key)
            table.erase(np.array([key], np.uint64))
        else:
            key = tuple(words)
            is_inserted = expected.find(key) is None and expected.insert(key)
            assert table.insert(np.array([key], np.uint64)) == is_inserted
        assert contents(table) == expected.slots
        assert len(table) == sum(key is not None for key in expected.slots)


@pytest.mark.parametrize("rows", [0, 2**32 + 1])
def test_invalid_sizes(rows):
    with pytest.raises(ArgumentError, match="rows of a subtable"):
        _core.Cuckoo(rows)


def random_words(rng, count):
    words = rng.integers(0, 2**64, (count, 4), dtype=np.uint64)
    words[:, 3] |= np.uint64(1)
    return words


def test_moves_of_an_insertion(rng):
    """The keys that moved are listed, and no others; undoing moves them back."""
    table = _core.Cuckoo(370)
    old, new = random_words(rng, 980), random_words(rng, 15)
    assert table.insert(old)
    before, held = table.find(old), contents(table)
    assert table.insert(new)
    after = table.find(old)
    left, reached, emptied = table.moves()
    moved = before != after
    assert moved.any()
    assert sorted(zip(left, reached, strict=True)) == sorted(
        zip(before[moved], after[moved], strict=True)
    )
    assert not len(emptied)
    table.undo()
    assert contents(table) == held


def test_nothing_changes_where_a_key_has_no_place(rng):
    table = _core.Cuckoo(2)
    assert table.insert(random_words(rng, 3))
    held = contents(table)
    assert not table.insert(random_words(rng, 4))
    assert contents(table) == held
    assert not table.insert(table.entries()[1][:1])
    assert contents(table) == held
    with pytest.raises(ArgumentError, match="not in the table"):
        table.erase(np.concatenate([table.entries()[1], random_words(rng, 1)]))
    assert contents(table) == held


def test_places_are_those_of_their_entries():
    random = np.random.default_rng(7)
    words = random.integers(1, 1 << 64, size=(300, 4), dtype=np.uint64)
    table = _core.Cuckoo(120)
    assert table.insert(words)
    table.erase(words[:100])
    restored = _core.Cuckoo(120)
    assert restored.insert(random.integers(1, 1 << 64, size=(50, 4), dtype=np.uint64))
    restored.restore(*table.entries())
    assert len(restored) == 200
    for both in (table, restored):
        assert both.insert(words[:80])
    assert np.array_equal(restored.find(words), table.find(words))
    restored.undo()
    assert len(restored) == 200


def test_places_of_other_keys_are_refused():
    table = _core.Cuckoo(120)
    words = np.random.default_rng(8).integers(1, 1 << 64, size=(10, 4), dtype=np.uint64)
    assert table.insert(words)
    slots, held = table.entries()
    for wrong in (slots[::-1].copy(), slots + 1, np.full_like(slots, -1), slots[:-1]):
        with pytest.raises(ArgumentError, match="keys at slots that are not theirs"):
            _core.Cuckoo(120).restore(wrong, held)
    empty = held.copy()
    empty[:, 3] = 0
    with pytest.raises(ArgumentError, match="not theirs"):
        _core.Cuckoo(120).restore(slots, empty)
