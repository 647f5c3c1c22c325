"""Vacant rows: appending in their place, clearing, growth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nescio
from nescio.errors import ArgumentError, IndexRangeError, MalformedMessageError
from nescio.pir._vacancy import Vacancy
from pir.test_lookup import look_up


class Model:
    """The same operations on a NumPy array and a set."""

    def __init__(self, values, spare):
        self.rows = np.concatenate([values, np.zeros((spare, *values.shape[1:]), values.dtype)])
        self.vacant = set(range(len(values), len(self.rows)))

    def grow(self, count):
        first = len(self.rows)
        zeros = np.zeros((count, *self.rows.shape[1:]), self.rows.dtype)
        self.rows = np.concatenate([self.rows, zeros])
        self.vacant |= set(range(first, first + count))

    def append(self, rows):
        missing = len(rows) - len(self.vacant)
        if missing > 0:
            self.grow(max(missing, -(-len(self.rows) // 8)))
        where = sorted(self.vacant)[: len(rows)]
        self.rows[where] = rows
        self.vacant -= set(where)
        return where

    def update(self, where, rows):
        self.rows[where] = rows
        self.vacant -= set(where)

    def clear(self, where):
        self.rows[where] = 0
        self.vacant |= set(where)

    def reorder(self, rows, marks):
        self.rows, self.vacant = rows, set(np.flatnonzero(marks).tolist())

    @property
    def marks(self):
        return np.isin(np.arange(len(self.rows)), list(self.vacant))


def assert_like(table, model):
    assert table.vacant.tolist() == sorted(model.vacant)
    assert np.array_equal(table[np.arange(len(table))], model.rows)
    made = nescio.Table(
        model.rows,
        version=table.params.version,
        output=table.params.output,
        record_rows=table.params.record_rows,
    )
    assert made.params == table.params  # the hashes are those of a table made anew
    other = Vacancy(len(model.rows))
    other.add(np.array(sorted(model.vacant), np.uint64))
    assert table.lowest_vacant(0)[1].check == other.check


class Both:
    """A table and its model: the same change to both."""

    def __init__(self, rng, rows, spare, **options):
        self.rng = rng
        first = self.values(rows)
        self.table = nescio.Table(first, spare=spare, threads=1, **options)
        self.model = Model(first, spare)

    def values(self, count):
        return self.rng.integers(1, 1 << 16, (count, 3), np.uint16)

    def some(self, rows, size):
        return self.rng.choice(rows, min(size, len(rows)), replace=False)

    def append(self, size):
        new = self.values(size)
        assert self.table.append(new).tolist() == self.model.append(new)

    def grow(self, size):
        self.table.grow(size + 1)
        self.model.grow(size + 1)

    def update(self, size):
        where = self.some(np.arange(len(self.table)), size)
        new = self.values(len(where))
        self.table.update(where, new)
        self.model.update(where, new)

    def clear(self, size):
        where = self.some(np.flatnonzero(~self.model.marks), size)
        self.table.clear(where)
        self.model.clear(where)

    def insert(self, size):
        where, new = self.rng.integers(0, len(self.table) + 1, size), self.values(size)
        self.table.insert(where, new)
        marks = np.insert(self.model.marks, where, np.False_)
        self.model.reorder(np.insert(self.model.rows, where, new, 0), marks)

    def delete(self, size):
        where = self.some(np.arange(len(self.table) - 1), size)
        self.table.delete(where)
        marks = np.delete(self.model.marks, where)
        self.model.reorder(np.delete(self.model.rows, where, 0), marks)


CHANGES = [Both.append, Both.clear, Both.grow, Both.update, Both.insert, Both.delete]


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(
                [Both.append, Both.clear, Both.grow, Both.update, Both.insert, Both.delete]
            ),
            st.sampled_from([0, 1, 3, 40]),
        ),
        min_size=1,
        max_size=6,
    ),
    rows=st.sampled_from([1, 7, 500, 4090, 9000]),
    spare=st.sampled_from([0, 1, 30]),
    output=st.sampled_from(["bit", "u32"]),
    record_rows=st.sampled_from([1, 4]),
    seed=st.integers(0, 99),
)
def test_any_order_of_changes(steps, rows, spare, output, record_rows, seed):
    rng = np.random.default_rng(seed)
    both = Both(rng, rows, spare, output=output, record_rows=record_rows)
    for step, size in steps:
        step(both, size)
    assert_like(both.table, both.model)


@pytest.mark.parametrize("rows", [16, 4095, 4096, 4097, 65536, 66000])
@pytest.mark.parametrize("more", [1, 16, 600, 9000])
def test_growth_over_the_sizes_at_which_hash_tables_change(rng, rows, more):
    values = rng.integers(256, size=(rows, 2), dtype=np.uint8)
    table = nescio.Table(values, record_rows=1, threads=1)
    table.grow(more)
    whole = np.concatenate([values, np.zeros((more, 2), np.uint8)])
    assert table.params == nescio.Table(whole, record_rows=1, version="2").params
    where = np.array([0, rows - 1, rows, rows + more - 1])
    assert np.array_equal(look_up(table, where), whole[where])


def test_lookups_of_appended_and_of_vacant_rows(rng):
    values = rng.integers(256, size=(100, 40), dtype=np.uint8)
    table = nescio.Table(values, spare=2)
    assert table.append(values[:1] + 1).tolist() == [100]
    table.clear([7])
    assert np.array_equal(look_up(table, [100, 101, 7, 8]), np.stack(
        [values[0] + 1, np.zeros(40, np.uint8), np.zeros(40, np.uint8), values[8]]
    ))  # fmt: skip
    assert table.append(values[:1]).tolist() == [7]


def test_ids_stay_when_a_table_grows(rng):
    values = rng.integers(256, size=(80, 40), dtype=np.uint8)
    table = nescio.Table(values)
    assert table.append(values[:3], version="more").tolist() == [80, 81, 82]
    assert table.params.version == "more"
    assert len(table) == 90
    assert table.vacant.tolist() == list(range(83, 90))
    assert table.append(values[:20]).tolist() == list(range(83, 103))


def test_an_answer_that_has_begun_ends_with_its_version_while_the_table_grows(rng):
    values = rng.integers(256, size=(5000, 40), dtype=np.uint8)
    table = nescio.Table(values)
    servers = [nescio.Server(table, party=party, threads=1) for party in (0, 1)]
    client = nescio.Client(table.params, table.tops)
    query = client.query([4999])
    first = servers[0].answer(query.keys[0])
    before = table.params.id
    table.grow(100)
    assert table.params.id != before
    found = client.decode(query, first, servers[1].answer(query.keys[1]))
    assert np.array_equal(found, values[[4999]])
    table.release(before)
    with pytest.raises(nescio.errors.VersionGoneError):
        servers[1].answer(query.keys[1])


def test_changes_that_are_refused(rng):
    values = rng.integers(256, size=(100, 3), dtype=np.uint8)
    table = nescio.Table(values, spare=3)
    before = table.params
    row = values[:1]
    with pytest.raises(ArgumentError, match="row 99, which is not vacant"):
        table.append(row, at=[99])
    with pytest.raises(ArgumentError, match="twice"):
        table.append(values[:2], at=[100, 100])
    with pytest.raises(ArgumentError, match="2 indices for 1 rows"):
        table.append(row, at=[100, 101])
    with pytest.raises(IndexRangeError):
        table.append(row, at=[103])
    with pytest.raises(ArgumentError, match="shape"):
        table.append(np.uint8(3))
    with pytest.raises(ArgumentError, match="row 101, which is vacant already"):
        table.clear([5, 101])
    with pytest.raises(ArgumentError, match="has had already"):
        table.append(row, version="1")
    for count in (0, -1, 1 << 41):
        with pytest.raises(ArgumentError, match="rows to grow by"):
            table.grow(count)
    assert table.params == before
    assert table.vacant.tolist() == [100, 101, 102]


def test_tables_in_bins_have_no_vacant_rows():
    values = np.ones((64, 3), np.uint8)
    with pytest.raises(ArgumentError, match="spare: found 3 vacant rows of a table in bins"):
        nescio.Table(np.ones((61, 3), np.uint8), spare=3, bins=[(4, 16)])
    table = nescio.Table(values, bins=[(4, 16)])
    for change in (
        lambda: table.append(values[:1]),
        lambda: table.clear([1]),
        lambda: table.grow(1),
    ):
        with pytest.raises(ArgumentError, match="table in bins"):
            change()


@pytest.mark.parametrize("spare", [-1, 1.5, 1 << 41])
def test_spare_rows_that_cannot_be(spare):
    with pytest.raises(ArgumentError, match="spare"):
        nescio.Table(np.ones((6, 3), np.uint8), spare=spare)


def test_the_state_of_vacant_rows_in_a_file(tmp_path, rng):
    values = rng.integers(256, size=(100, 3), dtype=np.uint8)
    table = nescio.Table(values, spare=13)
    assert nescio.Table(values).extra_state() == b""
    table.clear([5])
    table.append(values[:2])
    table.save(tmp_path / "t.nescio")
    extra = table.extra_state()
    again = nescio.Table.load(tmp_path / "t.nescio", extra=extra)
    assert again.vacant.tolist() == table.vacant.tolist() == list(range(101, 113))
    assert again.lowest_vacant(2)[1].appended.tolist() == [5, 100]
    assert again.extra_state() == extra
    assert len(nescio.Table.load(tmp_path / "t.nescio").vacant) == 0
    for wrong in (extra[:-1], extra + b"x", b"x", nescio.Table(values, spare=12).extra_state()):
        with pytest.raises(MalformedMessageError, match="vacant rows is not valid"):
            nescio.Table.load(tmp_path / "t.nescio", extra=wrong)


def test_the_memory_of_a_large_set_is_a_bit_a_row():
    vacancy = Vacancy(1 << 27)
    vacancy.grow((1 << 27) + 1000)
    assert vacancy.lowest(2).tolist() == [1 << 27, (1 << 27) + 1]
    assert vacancy.count == 1000
    assert vacancy._bits.nbytes <= (1 << 24) + 125
    assert len(vacancy.to_bytes()) < 1 << 17
