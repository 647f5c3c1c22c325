"""Changes as bytes: encoding, parsing, invalid bytes."""

import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, IndexRangeError, MalformedMessageError, MismatchError
from nescio.pir._change import Change, check_head, head_of, make_change

VALUES = np.arange(300, dtype="<i2").reshape(100, 3)


@pytest.fixture
def table():
    return nescio.Table(VALUES)


def change(operation="update", indices=(5, 7), version="2", row_bytes=6):
    rows = np.zeros((0, 0), np.uint8)
    if operation != "delete":
        rows = np.full((len(indices), row_bytes), 9, np.uint8)
    return Change(operation, version, np.array(indices, np.uint64), rows)


@pytest.mark.parametrize("operation", ["update", "insert", "delete"])
@pytest.mark.parametrize("indices", [[], [5], [5, 7, 99]])
def test_there_and_back_and_made(table, operation, indices):
    made = change(operation, indices, "zwei")
    again = Change.parse(table.params, made.encode(table.params))
    assert (again.operation, again.version) == (operation, "zwei")
    assert again.indices.tolist() == indices
    again.apply(table)
    new = np.full((len(indices), 3), 0x0909, "<i2")
    expected = VALUES.copy()
    if operation == "update":
        expected[indices] = new
    else:
        where = np.array(indices, int)
        expected = (
            np.insert(VALUES, where, new, 0)
            if operation == "insert"
            else np.delete(VALUES, where, 0)
        )
    assert np.array_equal(table[np.arange(len(expected))], expected)
    assert table.params.version == "zwei"


def test_a_change_is_made_once(table):
    data = change("insert").encode(table.params)
    params = make_change(table, data)
    assert make_change(table, data) == params
    assert len(table) == 102
    with pytest.raises(MismatchError, match="another table or version"):
        Change.parse(table.params, data)
    table.update([0], VALUES[[1]])
    with pytest.raises(MismatchError, match="another table or version"):
        make_change(table, data)


def test_two_changes_that_look_alike_are_two(table):
    first, second = (change("insert").encode(table.params) for _ in range(2))
    make_change(table, first)
    with pytest.raises(MismatchError, match="another table or version"):
        make_change(table, second)


def test_a_change_cut_anywhere(table):
    data = change().encode(table.params)
    for length in range(len(data)):
        with pytest.raises(MalformedMessageError):
            Change.parse(table.params, data[:length])
    with pytest.raises(MalformedMessageError):
        Change.parse(table.params, data + b"\0")


@pytest.mark.parametrize(
    ("offset", "value", "error"),
    [
        (0, b"NQ", MalformedMessageError),
        (2, b"\x02", MalformedMessageError),
        (3, b"\x06", MalformedMessageError),
        (4, b"\xff\xff\xff\xff", MalformedMessageError),
        (8, b"\xff" * 8, MalformedMessageError),
        (16, bytes(16), MismatchError),
        (48, b"\xff", MalformedMessageError),
        (4, bytes(4), MalformedMessageError),
    ],
)
def test_a_damaged_change(table, offset, value, error):
    data = change().encode(table.params)
    with pytest.raises(error):
        Change.parse(table.params, data[:offset] + value + data[offset + len(value) :])


def test_changes_that_a_table_refuses(table):
    with pytest.raises(IndexRangeError):
        change(indices=[100]).apply(table)
    with pytest.raises(ArgumentError, match="version"):
        change(version="\n").apply(table)
    assert table.params.version == "1"


def spare_table():
    return nescio.Table(VALUES, spare=3)


@pytest.mark.parametrize("operation", ["append", "clear", "grow"])
def test_changes_of_vacant_rows_there_and_back_and_made(operation):
    table, plain = spare_table(), spare_table()
    none, where = np.zeros((0, 0), np.uint8), np.array([101, 100], np.uint64)
    rows = np.full((2, 6), 9, np.uint8)
    made = {
        "append": Change("append", "zwei", where, rows),
        "clear": Change("clear", "zwei", np.array([7, 5], np.uint64), none),
        "grow": Change("grow", "zwei", np.zeros(0, np.uint64), none, count=20),
    }[operation]
    data = made.encode(table.params)
    for length in range(len(data)):
        with pytest.raises(MalformedMessageError):
            Change.parse(table.params, data[:length])
    check_head(table, head_of(data), 1 << 20)
    again = Change.parse(table.params, data)
    assert (again.operation, again.version) == (operation, "zwei")
    assert again.encode(table.params) == data
    params = make_change(table, data)
    assert make_change(table, data) == params
    {
        "append": lambda: plain.append(rows.view("<i2"), at=where, version="zwei"),
        "clear": lambda: plain.clear([5, 7], version="zwei"),
        "grow": lambda: plain.grow(20, version="zwei"),
    }[operation]()
    assert table.params == plain.params
    assert table.vacant.tolist() == plain.vacant.tolist()


def test_changes_of_vacant_rows_that_a_table_refuses():
    table, rows = spare_table(), np.full((1, 6), 9, np.uint8)
    with pytest.raises(ArgumentError, match="row 5, which is not vacant"):
        Change("append", "2", np.array([5], np.uint64), rows).apply(table)
    none, nowhere = np.zeros((0, 0), np.uint8), np.zeros(0, np.uint64)
    growth = Change("grow", "2", nowhere, none, count=1 << 41)
    with pytest.raises(ArgumentError, match="expected 1 to 2\\^40"):
        check_head(table, head_of(growth.encode(table.params)), 1 << 20)
    keyed = nescio.pir.KeyedTable(["a", "b"], np.ones((2, 4), np.uint8)).table
    for operation in ("append", "clear", "grow"):
        with pytest.raises(ArgumentError, match="table in bins"):
            Change(operation, "2", nowhere, none).apply(keyed)
