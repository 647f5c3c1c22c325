"""Batch tables: their content, changes of rows at several places, files, what they refuse."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nescio.errors import ArgumentError, FileError, IndexRangeError
from nescio.pir import LocalTable, Table
from nescio.pir._change import Change, check_head, head_of, make_change
from nescio.pir.batch import (
    BatchClient,
    BatchServer,
    BatchTable,
    FullPart,
    HotPart,
    Layout,
    Together,
    build,
)
from pir.batch.layouts import as_layout, layouts
from spec import batch as spec

ROWS = 700
VALUES = np.random.default_rng(3).integers(0, 1 << 30, (ROWS, 3), np.int32)
NEAR = Together(np.arange(100), np.arange(100)[:, None] + [1, 50])
LAYOUT = Layout(ROWS, FullPart(7, hashes=3, seed=2), HotPart(np.arange(80), 3), NEAR)


@settings(max_examples=40)
@given(layouts(), st.sampled_from([1, 2, 8, None]))
def test_the_content_is_that_of_the_specification(own, record_rows):
    values = np.arange(1, own.rows + 1, dtype="<u4")
    table = build(values, as_layout(own), record_rows=record_rows, threads=1)
    cells = spec.cut([value.tobytes() for value in values], own)
    found = table.table[np.arange(table.layout.table_rows)]
    assert found.shape == (len(cells), 1 + own.together)
    assert [row.tobytes() for row in found] == cells
    assert np.array_equal(table[np.arange(own.rows)], values)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(30).reshape(15, 2) > 9,
        np.array([f"word {i}" for i in range(15)]),
        np.arange(0, 15, dtype="M8[D]"),
        np.arange(60, dtype="c16").reshape(15, 2, 2),
    ],
)
def test_rows_of_any_type(values):
    layout = Layout(15, FullPart(2, hashes=2), together=Together([3], [[4]]))
    table = build(values, layout, threads=1)
    assert np.array_equal(table[np.arange(15)], values)
    client = BatchClient(LocalTable(table.table, threads=1))
    assert np.array_equal(client.lookup([3, 4]).rows[0], values[[3, 4]])
    table.update([4], values[[7]])
    assert np.array_equal(client.lookup([3, 4]).rows[0], values[[3, 7]])


def test_arrays_of_other_libraries(dlpack):
    table = build(dlpack(VALUES), LAYOUT, threads=1)
    assert np.array_equal(table[[5, 9]], VALUES[[5, 9]])


def test_large_tables_are_built_in_parts(monkeypatch):
    monkeypatch.setattr("nescio.pir._state._PART_BYTES", 1 << 12)
    rows = 20_000
    values = np.arange(rows * 2, dtype="u4").reshape(rows, 2)
    layout = Layout(rows, FullPart(3, hashes=2), together=Together([0, 9], [[5], [6]]))
    table = build(values, layout, threads=1)
    assert np.array_equal(table[np.arange(rows)], values)
    monkeypatch.undo()
    assert build(values, layout).params == table.params


# ---- Changes -------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(layouts(), st.data())
def test_an_updated_table_is_the_one_built_from_the_new_rows(own, data):
    values = np.arange(1, own.rows + 1, dtype="<u4")
    layout = as_layout(own)
    table = build(values, layout, threads=1)
    for version in ("2", "3"):
        rows = data.draw(st.lists(st.integers(0, own.rows - 1), max_size=10))
        new = np.array(
            data.draw(st.lists(st.integers(0, 99), min_size=len(rows), max_size=len(rows)))
        )
        for row, value in zip(rows, new, strict=True):
            values[row] = value
        params = table.update(rows, new.astype("<u4"))
        assert params == build(values, layout, version=version, threads=1).params


@pytest.mark.parametrize("count", [1, 20, ROWS])
def test_a_row_changes_wherever_it_arrives(count, rng):
    table = build(VALUES, LAYOUT, threads=1)
    values = VALUES.copy()
    rows = np.sort(rng.choice(ROWS, count, replace=False))
    values[rows] = rng.integers(0, 1 << 30, (count, 3), np.int32)
    table.update(rows, values[rows])
    assert table.params == build(values, LAYOUT, version="2", threads=1).params
    client = BatchClient(LocalTable(table.table, threads=1))
    for first in range(0, ROWS, 50):
        result = client.lookup(np.arange(first, first + 50))
        asked = values[first : first + 50]
        assert np.array_equal(result.rows[0][result.found[0]], asked[result.found[0]])


def test_the_later_of_two_values_for_a_row_wins():
    table = build(VALUES, LAYOUT, threads=1)
    table.update([5, 6, 5], np.array([[1, 1, 1], [2, 2, 2], [3, 3, 3]], np.int32))
    assert table[[5, 6]].tolist() == [[3, 3, 3], [2, 2, 2]]


def test_one_change_makes_one_version():
    table = build(VALUES, LAYOUT, threads=1, version="7")
    params = table.update(range(40), VALUES[:40], version="may")
    assert (params.version, table.params.version) == ("may", "may")
    with pytest.raises(ArgumentError, match="has had already"):
        table.update([1], VALUES[:1], version="7")


def test_a_change_as_a_message_is_about_the_rows_of_the_array():
    table = build(VALUES, LAYOUT, threads=1)
    change = Change("update", "2", np.array([9], np.uint64), VALUES[[1]].view(np.uint8))
    data = change.encode(table.params)
    check_head(table.table, head_of(data), 1 << 20)
    params = make_change(table.table, data)
    assert table[9].tolist() == VALUES[1].tolist()
    assert make_change(table.table, data) == params  # sent again: applied once


@pytest.mark.parametrize("operation", ["insert", "delete"])
def test_insertions_and_deletions_are_refused(operation):
    table = build(VALUES, LAYOUT, threads=1)
    rows = VALUES[[1]].view(np.uint8) if operation == "insert" else np.zeros((0, 0), np.uint8)
    data = Change(operation, "2", np.array([9], np.uint64), rows).encode(table.params)
    for refused in (
        lambda: check_head(table.table, head_of(data), 1 << 20),
        lambda: make_change(table.table, data),
    ):
        with pytest.raises(ArgumentError, match=f"{operation[:3]}.*build the table again"):
            refused()
    with pytest.raises(ArgumentError, match="build the table again"):
        table.table.delete([1])
    assert table.params.version == "1"


@pytest.mark.parametrize(
    ("rows", "values", "error", "message"),
    [
        ([ROWS], VALUES[:1], IndexRangeError, "found 700, expected 0 to 699"),
        ([1], VALUES[:2], ArgumentError, r"expected \(1, 3\) and int32"),
        ([1], VALUES[:1].astype("f4"), ArgumentError, "float32, expected"),
        ([1], VALUES[:1, None], ArgumentError, r"found|shape \(1, 1, 3\)"),
    ],
)
def test_changes_that_do_not_fit(rows, values, error, message):
    table = build(VALUES, LAYOUT, threads=1)
    with pytest.raises(error, match=message):
        table.update(rows, values)
    assert table.params.version == "1"


# ---- Files and servers ---------------------------------------------------------------------------


def test_a_saved_table_keeps_its_layout_and_its_changes(tmp_path):
    table = build(VALUES, LAYOUT, threads=1)
    table.update([3], VALUES[[4]])
    table.save(tmp_path / "items.nescio")
    loaded = BatchTable.load(tmp_path / "items.nescio", threads=1)
    assert loaded.layout == LAYOUT
    assert loaded.params == table.params
    assert loaded.update([3], VALUES[[3]]) == build(VALUES, LAYOUT, version="3", threads=1).params


def test_files_without_a_batch_layout(tmp_path):
    Table(VALUES).save(tmp_path / "plain.nescio")
    with pytest.raises(ArgumentError, match="expected a batch table"):
        BatchTable.load(tmp_path / "plain.nescio")
    with pytest.raises(FileError):
        BatchTable.load(tmp_path / "missing.nescio")


def test_tables_that_are_not_in_the_bins_of_their_layout():
    table = Table(VALUES, layout=LAYOUT.to_bytes())
    with pytest.raises(ArgumentError, match="in other bins than its layout's"):
        BatchTable(table)
    with pytest.raises(ArgumentError, match="expected a batch table"):
        BatchTable(Table(VALUES, layout=b"another text"))


def test_a_server_takes_a_batch_table_alone():
    table = build(VALUES, LAYOUT, threads=1)
    assert BatchServer(table, party=1, threads=1).params == table.params
    with pytest.raises(ArgumentError, match="found Table, expected a BatchTable"):
        BatchServer(table.table)


def test_a_table_says_what_it_is():
    table = build(VALUES, LAYOUT, threads=1)
    assert len(table) == ROWS
    assert "3 hashes of 7 bins" in repr(table)


def test_the_memory_of_a_table_is_freed_at_once():
    gc.disable()
    try:
        table = build(VALUES, LAYOUT, threads=1)
        freed = weakref.ref(table.table)
        del table
        assert freed() is None
    finally:
        gc.enable()
