"""Lookups of inferences: the rows of the array, and what is reported as missing."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nescio.errors import (
    ArgumentError,
    IndexRangeError,
    MalformedMessageError,
    MismatchError,
)
from nescio.pir import LocalTable, Table
from nescio.pir.batch import BatchClient, FullPart, Layout, Together, build
from pir.batch.clients import EXACT, PARTIAL, ROWS, VALUES, check, client_of
from pir.batch.layouts import as_layout, layouts


@pytest.fixture(scope="module")
def partial():
    return client_of(PARTIAL)


@settings(max_examples=25)
@given(layouts(), st.data())
def test_rows_are_those_of_the_array_for_every_layout(own, data):
    layout = as_layout(own)
    values = np.arange(1, own.rows + 1, dtype=np.int32)
    lookups = LocalTable(build(values, layout, threads=1).table, threads=1)
    row = st.integers(0, own.rows - 1)
    sets = data.draw(st.lists(st.lists(row, max_size=12), min_size=1, max_size=3))
    options = {
        "cache_rows": data.draw(st.sampled_from([0, 3, 50])),
        "carry": data.draw(st.booleans()),
    }
    client = BatchClient(lookups, **options)
    for _ in range(2):
        check(client.lookup(sets), sets, values)


def test_one_inference_or_several(partial):
    check(partial.lookup([3, 400, 17]), [[3, 400, 17]])
    check(partial.lookup(np.array([3, 400, 17], np.int32)), [[3, 400, 17]])
    check(partial.lookup((np.int64(3), 4)), [[3, 4]])
    check(partial.lookup([[3, 400], [], [17, 17, 3]]), [[3, 400], [], [17, 17, 3]])
    check(partial.lookup(np.array([[3, 4], [5, 6]])), [[3, 4], [5, 6]])
    check(partial.lookup([np.array([7]), (8, 9)]), [[7], [8, 9]])


def test_repeated_rows_take_one_slot_and_come_back_in_the_order_asked():
    asked = [5, 499, 5, 5, 499, 250] * 10
    result = client_of(EXACT).lookup(asked)
    check(result, [asked])
    assert result.found[0].all()


def test_an_inference_without_rows(partial):
    result = partial.lookup([])
    check(result, [[]])
    assert result.rows[0].shape == (0, 2, 3)


def test_exact_mode_drops_nothing_up_to_its_count(rng):
    client = client_of(EXACT)
    sets = [rng.choice(ROWS, rng.integers(0, 9), replace=False) for _ in range(200)]
    result = client.lookup(sets)
    check(result, sets)
    assert all(found.all() for found in result.found)


def test_what_exceeds_the_slots_is_missing_and_the_first_rows_have_priority():
    client = client_of(EXACT)
    asked = list(range(0, 480, 8))
    result = client.lookup([asked])
    check(result, [asked])
    assert result.found[0][:8].all()
    assert len(result.missing[0]) == 60 - 32  # as many as there are keys arrive


def test_one_bin_serves_as_many_rows_as_it_has_keys():
    client = client_of(Layout(ROWS, FullPart(1, keys=5), lookups=5))
    result = client.lookup([[9, 8, 7, 6, 5, 4, 3]])
    check(result, [[9, 8, 7, 6, 5, 4, 3]])
    assert result.missing[0].tolist() == [4, 3]


def test_neighbors_arrive_with_a_row():
    near = Together(np.array([10]), np.array([[20, 30]]))
    client = client_of(Layout(ROWS, FullPart(1), together=near))
    result = client.lookup([[10, 30, 20], [20, 30]])
    check(result, [[10, 30, 20], [20, 30]])
    assert result.missing[0].tolist() == []
    assert result.missing[1].tolist() == [30]


# ---- Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sets", "error", "message"),
    [
        ([ROWS], IndexRangeError, "found 500, expected 0 to 499"),
        ([[1], [-1]], IndexRangeError, "found -1"),
        ([1.5], ArgumentError, "integers"),
        ([[[1]]], ArgumentError, "found one of 2 dimensions"),
        (np.zeros((1, 1, 1), int), ArgumentError, "found one of 3 dimensions"),
        (5, ArgumentError, "found one of 0 dimensions"),
        ([[1], 5], ArgumentError, "found one of 0 dimensions"),
        ("12", ArgumentError, "integers"),
        (None, ArgumentError, "integers"),
        ([True], ArgumentError, "integers"),
    ],
)
def test_rows_that_are_not_rows(partial, sets, error, message):
    with pytest.raises(error, match=message):
        partial.lookup(sets)


def test_a_table_without_a_layout():
    with pytest.raises(ArgumentError, match="table without a layout.*expected a batch table"):
        BatchClient(LocalTable(Table(VALUES), threads=1))


def test_a_table_with_another_kind_of_layout():
    table = Table(VALUES, layout=b'{"kind":"keyed"}')
    with pytest.raises(ArgumentError, match="look up keys with nescio.pir.KeyedClient"):
        BatchClient(LocalTable(table, threads=1))
    table = Table(VALUES, layout=b'{"kind":"own"}')
    with pytest.raises(MalformedMessageError, match="not a batch layout: its .kind. is 'own'"):
        BatchClient(LocalTable(table, threads=1))


def test_a_client_with_an_old_layout():
    lookups = LocalTable(build(VALUES, EXACT, threads=1).table, threads=1)
    assert BatchClient(lookups, layout=EXACT).layout is EXACT
    old = replace(EXACT, full=replace(EXACT.full, seed=5))
    with pytest.raises(MismatchError, match="fetch the layout again") as caught:
        BatchClient(lookups, layout=old)
    assert caught.value.found == old.digest
    assert caught.value.expected == EXACT.digest


def test_servers_whose_bins_are_not_those_of_their_layout():
    table = Table(VALUES.reshape(ROWS, 1, 2, 3), bins=[(4, 125)], layout=EXACT.to_bytes())
    with pytest.raises(MismatchError, match="in other bins than its layout's"):
        BatchClient(LocalTable(table, threads=1))


def test_a_layout_that_changes_under_a_client():
    lookups = Rebuilt(EXACT, Layout(ROWS, FullPart(8, hashes=4, seed=2), lookups=8))
    client = BatchClient(lookups, cache_rows=10)
    check(client.lookup([1, 2]), [[1, 2]])
    lookups.change_during_lookup = True
    with pytest.raises(MismatchError, match="layout is of another table or version"):
        client.lookup([3, 4])
    with pytest.raises(MismatchError, match="new BatchClient"):
        client.lookup([1])  # the cache does not hide it
    check(BatchClient(lookups).lookup([3, 4]), [[3, 4]])


class Rebuilt:
    """Lookups of a table whose operator serves another layout from some lookup on."""

    def __init__(self, *layouts):
        self._tables = [
            LocalTable(build(VALUES, own, threads=1).table, threads=1) for own in layouts
        ]
        self.change_during_lookup = False

    @property
    def params(self):
        return self._tables[0].params

    @property
    def layout(self):
        return self._tables[0].layout

    def lookup(self, places, *, layout=None):
        if self.change_during_lookup:
            self._tables.pop(0)
            self.change_during_lookup = False
        return self._tables[0].lookup(places, layout=layout)


def test_a_new_layout_in_other_bins_is_a_mismatch_too():
    lookups = Rebuilt(EXACT, Layout(ROWS, FullPart(3, keys=1)))
    client = BatchClient(lookups)
    lookups.change_during_lookup = True
    with pytest.raises(MismatchError, match="layout is of another table or version"):
        client.lookup([3, 4])


@pytest.mark.parametrize("rows", [-1, 1 << 30, 1.5, True])
def test_caches_that_cannot_be(rows):
    with pytest.raises(ArgumentError, match="cache_rows"):
        client_of(PARTIAL, cache_rows=rows)


def test_a_result_does_not_print_its_rows(partial):
    result = partial.lookup([123])
    assert "123" not in repr(result)
    check(pickle.loads(pickle.dumps(result)), [[123]])


class Changing:
    """Lookups of a table that its operator changes before the next ones are answered."""

    def __init__(self, layout):
        self._batch = build(VALUES, layout, threads=1)
        self._local = LocalTable(self._batch.table, threads=1)
        self.params, self.layout = self._local.params, self._local.layout
        self.changes, self.asked = 0, []

    def lookup(self, places, *, layout=None):
        if self.changes:
            self._batch.update([1, 2], np.full((2, 2, 3), self.changes, np.int16))
            self.changes -= 1
        found = self._local.lookup(places, layout=layout)
        self.asked.append(np.shape(places))
        self.params = self._local.params
        return found


@pytest.mark.parametrize("needed", [[], [1], [1, 2], [400]])
def test_a_change_during_a_lookup_sends_all_again_whatever_is_cached(needed):
    lookups = Changing(Layout(ROWS, FullPart(8, hashes=4), lookups=8))
    client = BatchClient(lookups, cache_rows=10)
    client.lookup([1])
    lookups.asked, lookups.changes = [], 1
    new = VALUES.copy()
    new[[1, 2]] = 1
    check(client.lookup([needed, [2]]), [needed, [2]], new)
    assert lookups.asked == [(2, 32), (2, 32)]


def test_a_table_that_changes_all_the_time():
    lookups = Changing(Layout(ROWS, FullPart(8)))
    client = BatchClient(lookups, cache_rows=10)
    lookups.changes = 100
    with pytest.raises(MismatchError, match="changed during each of 10 lookups"):
        client.lookup([1])
    lookups.asked = []
    assert BatchClient(lookups).lookup([1]).found[0].all()  # without a cache, nothing to mix
    assert len(lookups.asked) == 1


def test_carried_rows_never_displace_those_of_the_inference():
    near = Together(np.array([10]), np.array([[20, 30]]))
    client = client_of(Layout(ROWS, FullPart(1), together=near), carry=True)
    assert client.lookup([5, 10]).missing[0].tolist() == [10]
    result = client.lookup([1, 20, 30])  # 10 would bring two of them
    assert result.missing[0].tolist() == [20, 30]
    assert result.carried.tolist() == []
    assert sorted(client.lookup([]).carried.tolist()) == [10, 20, 30]
