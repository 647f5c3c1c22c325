"""Keyed tables that are built and changed, against the specification."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nescio
from nescio.errors import ArgumentError
from nescio.pir import KeyedTable
from pir.test_lookup import assert_same
from spec import keyed as spec

KEYS = st.integers(0, 60)
BATCHES = st.lists(KEYS, min_size=1, max_size=8, unique=True)
VALUE = 3


def values_of(keys, salt=0):
    """Returns values that depend on their keys, (n, 3) of uint16."""
    return np.array([[key % 1000 + salt, 2 * key % 997, 7] for key in keys], "u2").reshape(-1, 3)


def physical(keyed):
    """Returns the rows of the physical table as bytes."""
    return [row.tobytes() for row in keyed.table[np.arange(len(keyed.table))]]


class Expected:
    """A keyed table by the specification."""

    def __init__(self, keys, values):
        self.seed, self.tables = spec.build(keys)
        self.values = {}
        self.put(keys, values)

    def words(self, keys):
        return [spec.words(self.seed, key) for key in keys]

    def put(self, keys, values):
        for words, value in zip(self.words(keys), values, strict=True):
            self.values[words] = value.tobytes()

    def insert(self, keys, values):
        new = [words for words in self.words(keys) if self.tables.find(words) is None]
        self.tables = spec.insert(self.tables, new)
        self.put(keys, values)

    def delete(self, keys):
        for words in self.words(keys):
            self.tables.delete(words)

    def rows(self):
        return spec.physical_rows(self.tables, self.values, 6)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9, 26, 27, 28, 29, 100, 1000])
def test_tables_of_every_size_are_those_of_the_specification(count):
    """Small tables need several seeds, and may be larger than 1.11 rows for each key."""
    for number in range(4 if count < 1000 else 1):
        keys = [f"{number} {i}" for i in range(count)]
        values = values_of(range(count))
        keyed, expected = KeyedTable(keys, values), Expected(keys, values)
        assert physical(keyed) == expected.rows()
        text = spec.layout(expected.seed, expected.tables.rows, "text", "<u2", [3])
        assert keyed.table.layout == text
        assert len(keyed) == count


def test_a_large_table_has_a_load_of_nine_tenths(rng):
    keys = rng.permutation(100_000)
    keyed = KeyedTable(keys, keys)
    assert keyed.layout.rows == spec.least_rows(100_000) == 37_038
    slots = keyed._rows.places.find(keyed._hashed(keyed._packed(keys)))
    assert_same(keyed.table[slots][:, 8:].copy().view("i8")[:, 0], keys)


@given(
    BATCHES,
    st.lists(st.tuples(st.sampled_from(["insert", "update", "delete"]), BATCHES), max_size=12),
)
def test_two_servers_agree_after_the_same_changes(first, changes):
    """Also with the specification: insertions that overwrite or grow, updates, deletions."""
    one, two = (KeyedTable(first, values_of(first), threads=n) for n in (1, 2))
    expected, contents = Expected(first, values_of(first)), dict.fromkeys(first, 0)
    for salt, (operation, batch) in enumerate(changes, 1):
        if operation == "insert":
            keys, apply = batch, expected.insert
        else:
            keys = [key for key in batch if key in contents]
            apply = expected.put
        values = values_of(keys, salt)
        if operation == "delete":
            one.delete(keys), two.delete(keys), expected.delete(keys)
            contents = {key: salt for key, salt in contents.items() if key not in keys}
        else:
            for keyed in (one, two):
                getattr(keyed, operation)(keys, values)
            apply(keys, values)
            contents |= dict.fromkeys(keys, salt)
        assert one.params == two.params
        assert physical(one) == expected.rows()
        assert one.layout.rows == expected.tables.rows
        assert len(one) == len(contents)
    assert all((key in one) == (key in contents) for key in range(61))


def test_an_insertion_moves_few_rows(rng):
    """Also of a full table: the tops of few records change, so that clients fetch few."""
    keys = np.arange(20_000)
    keyed = KeyedTable(keys, keys)
    keyed.delete(keys[:50])
    before = keyed.table[np.arange(len(keyed.table))]
    version = keyed.params.version
    keyed.insert(keys[20:60] + 100_000, keys[20:60])
    changed = (before != keyed.table[np.arange(len(keyed.table))]).any(axis=1)
    assert 40 < changed.sum() < 400
    assert keyed.params.version == str(int(version) + 1)


def test_growth_is_one_version_and_keeps_every_key(rng):
    keys = [f"word {i}" for i in range(2700)]
    values = rng.integers(0, 2**16, (2700, 3), dtype="u2")
    keyed = KeyedTable(keys, values, version="7", output="u32", record_rows=4)
    rows, memory = keyed.layout.rows, keyed.bytes
    seed = keyed.layout.seed
    keyed.insert("one more", values[0])
    assert keyed.layout.rows == spec.grown(rows)
    assert keyed.params.rows == 3 * keyed.layout.rows
    assert (keyed.params.version, keyed.params.output, keyed.params.record_rows) == ("8", "u32", 4)
    assert keyed.layout.seed == seed
    assert keyed.bytes > memory
    slots = keyed._rows.places.find(keyed._hashed(keyed._packed([*keys, "one more"])))
    found = keyed.table[slots][:, 8:].copy().view("u2")
    assert_same(found, np.concatenate([values, values[:1]]))


def test_a_version_of_the_callers_own(rng):
    keyed = KeyedTable([1, 2, 3], np.arange(3), version="may")
    assert keyed.insert(4, 9, version="june").version == "june"
    assert keyed.update([4], np.array([8]), version="july").version == "july"
    assert keyed.delete([1], version="august").version == "august"
    assert keyed.insert([], np.zeros(0, np.int64)).version == "august+1"


def changes_that_fail():
    """Yields calls that raise ArgumentError, and a part of the message."""
    one = np.zeros((1, 3), "u2")
    two = np.zeros((2, 3), "u2")
    yield lambda k: k.insert(["x"], one, version="1"), "which this table has had already"
    yield lambda k: k.insert([f"n{i}" for i in range(99)], values_of(range(99)), version="1"), "had"
    yield lambda k: k.delete(["w1"], version="1"), "which this table has had already"
    yield lambda k: k.update(["w1"], one, version="1"), "which this table has had already"
    yield lambda k: k.insert(["x", "y"], one), r"found shape \(1, 3\) and dtype uint16, expected"
    yield lambda k: k.insert(["x"], one.astype("i2")), "and dtype int16, expected"
    yield lambda k: k.insert("x", one), r"found shape \(1, 3\) and dtype uint16, expected \(3,\)"
    yield lambda k: k.insert(["x", "x"], two), "found 'x' twice, as key 0 and as key 1"
    yield lambda k: k.insert(["w1", "x", "w1"], values_of(range(3))), "'w1' twice, as key 0 and as"
    yield lambda k: k.insert([5], one), "keys: found integers, expected text"
    yield lambda k: k.insert([b"w1"], one), "keys: found bytes, expected text"
    yield lambda k: k.insert(["a", 1], two), "found integer and text keys"
    yield lambda k: k.insert([""], one), "found 0 bytes"
    yield (
        lambda k: k.update(["w1", "nope"], two),
        "found 1 that are not in the table, such as 'nope'",
    )
    yield lambda k: k.update(["w1", "w1"], two), "'w1' twice"
    yield lambda k: k.delete(["w1", "nope", "no"]), "found 2 that are not in the table, such as"
    yield lambda k: k.delete(["w1", "w2", "w1"]), "'w1' twice, as key 0 and as key 2"
    yield lambda k: k.delete([1]), "found integers, expected text"
    yield lambda k: 5 in k, "found integers, expected text"
    yield lambda k: ["w1"] in k, "key: found 1 keys, expected one"


@pytest.mark.parametrize("number", range(len(list(changes_that_fail()))))
def test_a_change_that_fails_changes_nothing(number):
    change, message = list(changes_that_fail())[number]
    keys = [f"w{i}" for i in range(100)]
    keyed, twin = (KeyedTable(keys, values_of(range(100))) for _ in range(2))
    for table in (keyed, twin):
        table.delete(keys[50:60])  # so that an insertion has room
    before, rows = keyed.params, physical(keyed)
    with pytest.raises(ArgumentError, match=message):
        change(keyed)
    assert (keyed.params, physical(keyed), len(keyed)) == (before, rows, 90)
    for table in (keyed, twin):
        table.insert(["x", "w55"], values_of(range(2)))
    assert keyed.params == twin.params


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        ([], np.zeros((0, 3)), "at least one row and element"),
        ([], np.zeros((1, 3)), r"keys: found shape \(0,\), expected \(1,\)"),
        (["a", "b"], np.zeros((3, 3)), r"keys: found shape \(2,\), expected \(3,\): one for each"),
        ("a", np.zeros(1), r"keys: found shape \(\), expected \(1,\)"),
        (np.arange(4).reshape(2, 2), np.zeros(4), r"keys: found shape \(2, 2\), expected \(4,\)"),
        (["a", "a"], np.zeros(2), "found 'a' twice, as key 0 and as key 1"),
        ([b"\xff", b"b", b"\xff"], np.zeros(3), r"found b'\\xff' twice, as key 0 and as key 2"),
        ([-5, 7, 8, 7], np.zeros(4), "found 7 twice, as key 1 and as key 3"),
        (["a", 2], np.zeros(2), "found integer and text keys"),
        (["a"], np.zeros(1, object), "dtype object is not supported"),
        (["a"], "values.npy", "found a path, expected an array"),
        (["a"], np.zeros((1, 2**24 - 7), "u1"), "bytes, expected 1 to 16777208"),
    ],
)
def test_tables_that_cannot_be_built(keys, values, message):
    with pytest.raises(ArgumentError, match=message):
        KeyedTable(keys, values)


def test_keys_that_somebody_chose_so_that_they_have_no_places():
    """Four keys with the same places: the table refuses the fourth, whatever its size."""
    keyed = KeyedTable(range(20), values_of(range(20)))
    words = np.full((4, 4), 77, np.uint64)
    words[:, 3] = np.arange(1, 5)
    values = np.zeros((4, 6), "u1")

    def insert(words, values):
        keyed._rows.insert(keyed.table, words, values, None, str)

    insert(words[:3], values[:3])
    before, rows = keyed.params, physical(keyed)
    with pytest.raises(ArgumentError, match="have no places .* with another seed"):
        insert(words[3:], values[3:])
    assert (keyed.params, physical(keyed), len(keyed)) == (before, rows, 23)
    insert(words[:3], values[:3])


def test_a_build_that_fails_takes_the_next_seed(monkeypatch):
    keys = [f"word {i}" for i in range(5)]
    values = values_of(range(5))
    first = KeyedTable(keys, values).layout.seed
    tried = [spec.first_seed(keys)]
    while tried[-1] != first:
        tried.append(spec.next_seed(tried[-1]))
    assert KeyedTable(keys, values, seed=bytes(32)).layout.seed != first


def test_a_seed_of_the_callers_own():
    keyed = KeyedTable(["a", "b"], np.zeros(2), seed=bytes(32))
    assert keyed.layout.seed == bytes(32)


@pytest.mark.parametrize("dtype", ["f4", "?", "S5", "U3", "c16", "M8[s]", ">i2"])
def test_values_of_any_type(dtype, rng):
    values = rng.integers(0, 2, (50, 2)).astype(dtype)
    keyed = KeyedTable(range(50), values)
    slots = keyed._rows.places.find(keyed._hashed(keyed._packed(range(50))))
    found = keyed.table[slots][:, 8:].copy().view(dtype)
    assert_same(found, values)


def test_changes_from_several_threads():
    """Every change is made, and the table has what it should."""
    keyed = KeyedTable(range(1000), values_of(range(1000)))

    def work(number):
        for i in range(20):
            own = range(1000 + 100 * (20 * number + i), 1040 + 100 * (20 * number + i))
            keyed.insert(own, values_of(own))
            keyed.delete(own[:10])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keyed) == 1000 + 4 * 20 * 30
    assert keyed.params.version == "161"
    fresh = nescio.Table(
        keyed.table[np.arange(len(keyed.table))],
        bins=keyed.params.bins,
        layout=keyed.table.layout,
        record_rows=keyed.params.record_rows,
    )
    assert fresh.params.digest == keyed.params.digest


def test_the_table_describes_itself():
    keyed = KeyedTable([b"a", b"b"], np.zeros(2))
    assert repr(keyed).startswith("KeyedTable(2 bytes keys, ")
