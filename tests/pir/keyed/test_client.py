"""Lookups of keys: of every type, absent keys among them."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nescio
from nescio.dpf import OUTPUTS
from nescio.errors import (
    ArgumentError,
    ForgedAnswerError,
    IndexRangeError,
    MalformedMessageError,
    MismatchError,
)
from nescio.pir import Bins, KeyedClient, KeyedTable, LocalTable
from nescio.pir._keyed._client import select
from pir.test_lookup import assert_same
from spec import keyed as spec

WORDS = [f"word {i}" for i in range(300)]


@pytest.fixture
def values(rng):
    return rng.normal(size=(300, 5)).astype("f4")


@pytest.fixture
def keyed(values):
    return KeyedTable(WORDS, values)


@pytest.fixture
def client(keyed):
    return KeyedClient(LocalTable(keyed.table))


def test_keys_that_the_table_has_and_others(client, values):
    found = client.lookup(["word 7", "no word", "word 299", "word 7"])
    assert_same(found.found, np.array([True, False, True, True]))
    assert_same(found.values[[0, 2, 3]], values[[7, 299, 7]])
    assert_same(found.values[1], np.zeros(5, "f4"))


@pytest.mark.parametrize(
    ("keys", "absent"),
    [
        ([f"é{i}\U0001f600" for i in range(99)], ["é", "é1\U0001f600 "]),
        ([b"\0", b"\0\0", b"a", *(b"%d" % i for i in range(99))], [b"\0\0\0", b"-1"]),
        ([-(2**63), -1, 0, 2**63 - 1, 2**63, 2**64 - 1], [-2, 1, 2**63 - 2]),
    ],
)
@pytest.mark.parametrize("output", OUTPUTS)
def test_keys_of_every_type(keys, absent, output, rng):
    values = rng.integers(0, 2**16, (len(keys), 2, 3), dtype="u2")
    client = KeyedClient(LocalTable(KeyedTable(keys, values, output=output).table))
    found = client.lookup([*keys, *absent])
    assert_same(found.values[: len(keys)], values)
    assert not found.values[len(keys) :].any()
    assert_same(found.found, np.arange(len(found.found)) < len(keys))


def test_shapes(client, values):
    found = client.lookup("word 5")
    assert (found.values.shape, found.found.shape) == ((5,), ())
    assert bool(found.found)
    assert_same(found.values, values[5])
    found = client.lookup(np.array([["word 5", "no"], ["word 1", "word 2"]]))
    assert (found.values.shape, found.found.tolist()) == ((2, 2, 5), [[True, False], [True, True]])
    assert_same(found.values[1], values[[1, 2]])
    found = client.lookup([])
    assert (found.values.shape, found.values.dtype, found.found.shape) == ((0, 5), "<f4", (0,))


@pytest.mark.parametrize("dtype", ["f8", "?", "S5", "U3", ">c16", "M8[s]"])
def test_values_of_any_type(dtype, rng):
    values = rng.integers(0, 2, 50).astype(dtype)
    client = KeyedClient(LocalTable(KeyedTable(range(50), values).table))
    found = client.lookup(range(50))
    assert_same(found.values, values)


@pytest.mark.parametrize("record_rows", [None, 1, 2, 32])
@pytest.mark.parametrize("count", [1, 2, 100, 13_000])
def test_sizes(count, record_rows, rng):
    """Also subtables shorter than a record, and with hash tables above them."""
    values = rng.integers(0, 256, (count, 20), dtype="u1")
    keyed = KeyedTable(range(count), values, record_rows=record_rows)
    some = rng.integers(2 * count, size=40)
    for verify in (False, True):
        found = KeyedClient(LocalTable(keyed.table, verify=verify)).lookup(some)
        assert_same(found.found, some < count)
        assert_same(found.values[some < count], values[some[some < count]])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([5], "keys: found integers, expected text, which the keys of this table are"),
        ([b"word 5"], "keys: found bytes, expected text"),
        (["word 5", 5], "found integer and text keys"),
        ([""], "found 0 bytes"),
        (2.5, "expected text, bytes or integers"),
    ],
)
def test_invalid_keys(client, keys, message):
    with pytest.raises(ArgumentError, match=message):
        client.lookup(keys)


class Recorder:
    """Both servers and the network between: what was asked, in bytes; and who interferes."""

    def __init__(self, table, forge=None, before=None, **options):
        self.servers = [nescio.Server(table, party=party, **options) for party in (0, 1)]
        self.table, self.forge, self.before = table, forge, before
        self.queries = []

    @property
    def params(self):
        return self.table.params

    @property
    def layout(self):
        return self.table.layout

    def lookup(self, places, *, layout=None):
        if self.before is not None:
            self.before(self)
        client = nescio.Client(self.table.params, self.table.tops)
        client.check_layout(layout)
        query = client.query(places)
        self.queries.append((query.keys, np.array(places)))
        answers = [s.answer(k) for s, k in zip(self.servers, query.keys, strict=True)]
        if self.forge is not None:
            answers[1] = self.forge(answers[1])
        return client.decode(query, *answers)


def test_the_servers_see_the_same_for_absent_keys(keyed):
    """One query of the same bytes apart from the keys' randomness, and no second one."""
    recorder = Recorder(keyed.table)
    client = KeyedClient(recorder)
    for keys in (["word 1", "word 2"], ["no", "none"], ["no", "word 1"], ["word 9", "word 9"]):
        client.lookup(keys)
    assert len(recorder.queries) == 4
    heads = {tuple(key[:32] for key in keys) for keys, _ in recorder.queries}
    sizes = {tuple(map(len, keys)) for keys, _ in recorder.queries}
    assert len(heads) == len(sizes) == 1
    assert all(places.shape == (2, 3) for _, places in recorder.queries)


def test_places_are_those_of_the_specification(keyed):
    recorder = Recorder(keyed.table)
    KeyedClient(recorder).lookup(["word 1", "no"])
    expected = [
        spec.places(spec.words(keyed.layout.seed, key), keyed.layout.rows)
        for key in ("word 1", "no")
    ]
    assert recorder.queries[0][1].tolist() == expected


def test_rows_of_absent_keys_are_checked(keyed):
    """A server that changes any of the three rows is detected."""
    part = keyed.params.verified_answer_bytes
    assert len(keyed.params.answer_widths) == 1  # no hash tables: the records alone
    for slot in range(3):

        def forge(answer, at=32 + slot * part // 3):
            return answer[:at] + bytes([answer[at] ^ 1]) + answer[at + 1 :]

        client = KeyedClient(Recorder(keyed.table, forge))
        for key in ("no word", "word 7"):
            with pytest.raises(ForgedAnswerError, match="one of the two servers"):
                client.lookup(key)


def test_a_table_that_changes(keyed, values):
    client = KeyedClient(LocalTable(keyed.table))
    keyed.delete("word 3")
    keyed.update("word 4", values[0])
    keyed.insert(["new", "word 5"], values[1:3])
    found = client.lookup(["word 3", "word 4", "new", "word 5", "word 6"])
    assert found.found.tolist() == [False, True, True, True, True]
    assert_same(found.values[1:], values[[0, 1, 2, 6]])
    assert client.layout == keyed.layout


def test_a_table_that_grows_during_a_lookup(keyed, values):
    """The client computes the places again. It sends none of the old layout to the new table."""
    grown = []

    def grow(_):
        if len(grown) < 2:
            keyed.insert([f"new {len(grown)} {i}" for i in range(40)], values[:40])
            grown.append(len(keyed))

    recorder = Recorder(keyed.table, before=grow)
    client = KeyedClient(recorder)
    rows = client.layout.rows
    found = client.lookup(WORDS)
    assert found.found.all()
    assert_same(found.values, values)
    assert client.layout.rows > rows
    assert len(grown) == 2
    assert len(recorder.queries) == 1


@pytest.mark.parametrize("devices", [["emulated"], ["emulated:0", "emulated:1"]])
def test_a_table_on_devices(devices, rng):
    """The copies follow changes in place, and growth."""
    values = rng.integers(0, 256, (5000, 24), dtype="u1")
    keyed = KeyedTable(range(4500), values[:4500])
    client = KeyedClient(Recorder(keyed.table, devices=devices))
    keyed.delete(range(10))
    keyed.insert(range(5), values[:5])
    assert client.lookup([3, 7, 4499]).found.tolist() == [True, False, True]
    rows = keyed.layout.rows
    keyed.insert(range(4500, 5000), values[4500:])
    assert keyed.layout.rows > rows
    found = client.lookup([3, 7, 4499, 4999])
    assert found.found.tolist() == [True, False, True, True]
    assert_same(found.values[[0, 2, 3]], values[[3, 4499, 4999]])


def test_a_table_that_never_stops_growing(keyed, values):
    def grow(recorder):
        count = len(keyed)
        keyed.insert(
            [f"new {count + i}" for i in range(count // 4)], values[:1].repeat(count // 4, 0)
        )

    with pytest.raises(MismatchError, match="has changed its layout in each of 8 tries"):
        KeyedClient(Recorder(keyed.table, before=grow)).lookup("word 1")


def test_a_table_that_is_replaced_by_a_smaller_one(keyed, values):
    small = KeyedTable(WORDS[:30], values[:30])

    def replace(recorder):
        recorder.table = small.table
        recorder.servers = [nescio.Server(small.table, party=party) for party in (0, 1)]

    found = KeyedClient(Recorder(keyed.table, before=replace)).lookup(WORDS[:60])
    assert_same(found.found, np.arange(60) < 30)
    assert_same(found.values[:30], values[:30])


def test_an_index_error_that_is_not_about_the_layout(keyed):
    def fail(recorder):
        raise IndexRangeError("for another reason")

    with pytest.raises(IndexRangeError, match="for another reason"):
        KeyedClient(Recorder(keyed.table, before=fail)).lookup("word 1")


@pytest.mark.parametrize(
    ("layout", "advice"),
    [
        (b"", "look up rows by their numbers"),
        (b'{"kind":"batch"}', "its rows with nescio.pir.batch.BatchClient"),
        (b"\xff", "look up rows by their numbers"),
    ],
)
def test_a_table_without_keys(layout, advice):
    table = nescio.Table(np.zeros((6, 10), "u1"), bins=[Bins(3, 2)], layout=layout)
    with pytest.raises(ArgumentError, match=f"the table has no keys.*{advice}"):
        KeyedClient(LocalTable(table))


def test_a_layout_that_is_always_of_another_version(keyed, values):
    other = LocalTable(KeyedTable(WORDS[:9], values[:9]).table)
    lookups = SimpleNamespace(params=keyed.params, layout=other.layout, lookup=other.lookup)
    with pytest.raises(MismatchError, match="of another version .* in each of 8 tries"):
        KeyedClient(lookups)


def test_hostile_layouts(keyed):
    layout = keyed.table.layout
    other = nescio.Table(np.zeros((6, 10), "u1"), bins=[Bins(3, 2)], layout=layout)
    with pytest.raises(MismatchError, match="does not fit the table's parameters"):
        KeyedClient(LocalTable(other))
    spoiled = layout.replace(b'"rows"', b'"sows"')
    other = nescio.Table(np.zeros((6, 10), "u1"), bins=[Bins(3, 2)], layout=spoiled)
    with pytest.raises(MalformedMessageError, match="expected the fields"):
        KeyedClient(LocalTable(other))


FINGERPRINTS = st.integers(0, 3)


@given(
    st.lists(st.tuples(st.integers(1, 3), *[FINGERPRINTS] * 3, st.binary(min_size=15, max_size=15)))
)
def test_selection(lookups):
    """The first row with the fingerprint counts; an empty row, of fingerprint 0, never does."""
    keys = [(0, 0, 0, key) for key, *_ in lookups]
    rows = [
        [own.to_bytes(8, "little") + noise[5 * j : 5 * j + 5] for j, own in enumerate(prints)]
        for _, *prints, noise in lookups
    ]
    array = np.frombuffer(b"".join(b"".join(own) for own in rows), "u1").reshape(-1, 3, 13)
    values, found = select(np.array(keys, "u8").reshape(-1, 4), array)
    expected = [spec.select(key, own) for key, own in zip(keys, rows, strict=True)]
    assert found.tolist() == [value is not None for value in expected]
    assert [value.tobytes() for value in values] == [value or bytes(5) for value in expected]
