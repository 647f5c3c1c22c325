"""Changes as bytes: encoding, parsing, invalid bytes."""

import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, IndexRangeError, MalformedMessageError, MismatchError
from nescio.pir._change import Change, make_change

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
        (3, b"\x03", MalformedMessageError),
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
