"""Layouts of keyed tables from strangers."""

import json

import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, MalformedMessageError, MismatchError
from nescio.pir import Bins, KeyedTable
from nescio.pir._keyed._layout import MAX_LAYOUT_BYTES, KeyedLayout
from nescio.pir._layout_kind import layout_kind
from spec import keyed as spec

SEED = bytes(range(32))
LAYOUT = KeyedLayout(SEED, "text", 1000, np.dtype("<f4"), (16,))
GOOD = json.loads(LAYOUT.to_bytes())


def test_layouts_survive_a_round_trip():
    text = LAYOUT.to_bytes()
    assert KeyedLayout.from_bytes(text) == LAYOUT
    assert text == spec.layout(SEED, 1000, "text", "<f4", [16])
    assert layout_kind(text) == "keyed"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "batch"}, "found kind 'batch' of format 1, expected keyed of format 1"),
        ({"format": 2}, "of format 2, expected keyed of format 1: use the same release"),
        ({"format": True}, "of format True"),
        ({"rows": 0}, r"found subtables of 0 rows, expected 1 to 2\^32"),
        ({"rows": 2**32 + 1}, r"found subtables of 4294967297 rows"),
        ({"rows": -1}, "found subtables of -1 rows"),
        ({"rows": 1.0}, "a field of another type"),
        ({"rows": True}, "a field of another type"),
        ({"rows": 10**3000}, "found subtables of a number of 9966 bits"),
        ({"keys": "words"}, "found keys 'words', expected one of text, bytes, integer"),
        ({"keys": 1}, "a field of another type"),
        ({"seed": "00" * 31}, "a field of another type"),
        ({"seed": "zz" * 32}, "a field of another type"),
        ({"seed": SEED.hex().upper()}, "a field of another type"),
        ({"dtype": "O"}, "a field of another type"),
        ({"dtype": "<f4,<f4"}, "a field of another type"),
        ({"dtype": "f4"}, "a field of another type"),
        ({"dtype": 4}, "a field of another type"),
        ({"dtype": "|S9999999"}, "found values of 159999984 bytes, expected 1 to 16777208"),
        ({"shape": 16}, "a field of another type"),
        ({"shape": [16.0]}, "a field of another type"),
        ({"shape": [0]}, r"found values of shape \(0,\), expected at least one element"),
        ({"shape": [-1]}, "found values of shape"),
        ({"shape": [1] * 17}, "found values of shape"),
        ({"shape": [2**40, 2**40]}, "found values of"),
        ({"more": 1}, "expected the fields dtype, format, keys, kind, rows, seed, shape"),
    ],
)
def test_hostile_layouts(changes, message):
    text = json.dumps(GOOD | changes, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(MalformedMessageError, match=message):
        KeyedLayout.from_bytes(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 4000, "it is not JSON"),
        (b"[]", r"found \[\], expected the fields"),
        (b"null", "found None, expected the fields"),
        (b'{"rows":1}', "expected the fields"),
        (LAYOUT.to_bytes() + b" ", "expected the canonical"),
        (LAYOUT.to_bytes().replace(b",", b", "), "expected the canonical"),
        (LAYOUT.to_bytes()[:-1] + b',"rows":1000}', "expected the canonical"),
        (
            b" " * MAX_LAYOUT_BYTES + LAYOUT.to_bytes(),
            f"found {MAX_LAYOUT_BYTES + len(LAYOUT.to_bytes())} bytes, expected at most 4096",
        ),
    ],
)
def test_layouts_that_are_not_canonical(text, message):
    with pytest.raises(MalformedMessageError, match=message):
        KeyedLayout.from_bytes(text)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"kind":"batch"}', b" " * 5000 + b"{}"])
def test_other_layouts(text):
    assert layout_kind(text) != "keyed"


def test_a_layout_for_another_table(rng):
    keyed = KeyedTable(["a", "b", "c"], rng.integers(9, size=(3, 2), dtype="u1"))
    keyed.layout.check(keyed.params)
    for change in ({"rows": 5}, {"shape": (3,)}):
        other = KeyedLayout(**(vars(keyed.layout) | change))
        with pytest.raises(MismatchError, match="does not fit the table's parameters"):
            other.check(keyed.params)
    uncut = nescio.Table(np.zeros((6, 10), "u1"), layout=keyed.table.layout)
    with pytest.raises(MismatchError, match="does not fit the table's parameters"):
        keyed.layout.check(uncut.params)
    signed = nescio.Table(np.zeros((6, 10), "i1"), bins=[Bins(3, 2)], layout=keyed.table.layout)
    with pytest.raises(MismatchError, match="does not fit the table's parameters"):
        keyed.layout.check(signed.params)


@pytest.mark.parametrize(
    ("seed", "message"),
    [(bytes(31), "found 31 bytes, expected 32"), ("a" * 32, "found a string, expected bytes")],
)
def test_invalid_seeds(seed, message):
    with pytest.raises(ArgumentError, match=message):
        KeyedTable(["a"], np.zeros(1), seed=seed)
