"""Public parameters as JSON: encoding, parsing, invalid fields."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nescio
from nescio.errors import ArgumentError, MalformedMessageError
from nescio.pir._params import TableParams


@pytest.fixture
def params():
    return nescio.Table(np.zeros((10, 2, 3), ">f4"), version="Nov 21", output="u32").params


def test_they_carry_what_a_client_needs(params):
    assert params.rows == 10
    assert params.row_shape == (2, 3)
    assert params.dtype == np.dtype(">f4")
    assert (params.output, params.generator, params.version) == ("u32", "chacha20", "Nov 21")
    assert (params.row_bytes, params.record_rows) == (24, 8)
    assert params.record_bytes == params.answer_bytes == 192
    assert params.key_bytes == nescio.dpf.key_bytes(2, output="u32")
    assert len(params.digest) == 64
    assert len(params.id) == 16


def test_json_there_and_back(params):
    again = TableParams.from_json(params.to_json())
    assert again == params
    assert again.id == params.id
    assert json.loads(params.to_json())["format"] == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", 2),
        ("bins", None),
        ("bins", []),
        ("bins", [[1, 10]]),
        ("bins", [[1, 10, 0]]),
        ("bins", [[2, 10, 1]]),
        ("bins", [[1, 10, True]]),
        ("bins", [[1.0, 10, 1]]),
        ("bins", [[5, 1, 1], [-5, -1, 1]]),
        ("bins", [[10, 1, 1 << 40]]),
        ("bins", "[[1, 10, 1]]"),
        ("layout", None),
        ("layout", "00"),
        ("layout", "g" * 64),
        ("record_rows", 0),
        ("record_rows", 3),
        ("record_rows", 1 << 17),
        ("record_rows", 8.0),
        ("hashes", None),
        ("hashes", {}),
        ("hashes", {"arity": 16, "levels": 1, "tops": 1}),
        ("hashes", {"arity": 16, "levels": 0, "tops": 10.0}),
        ("rows", 0),
        ("rows", (1 << 40) + 1),
        ("rows", "10"),
        ("rows", True),
        ("rows", 1.0),
        ("row_shape", [0]),
        ("row_shape", [-1]),
        ("row_shape", [1 << 30]),
        ("row_shape", [1] * 33),
        ("row_shape", "2"),
        ("row_shape", [True]),
        ("dtype", "O"),
        ("dtype", "no such type"),
        ("dtype", "f4,f4"),
        ("dtype", "M8[s/0]"),  # crashes NumPy 2.4
        ("dtype", "<M8[s/-1]"),
        ("dtype", "<M8[0s]"),
        ("dtype", "<f16"),
        ("dtype", "float"),
        ("dtype", "=f4"),
        ("dtype", "?"),
        pytest.param("rows", 10**5000, id="huge-rows"),
        ("row_shape", [1 << 200]),
        ("format", True),
        ("dtype", "V8"),
        ("dtype", "S0"),
        ("dtype", "S999999999"),
        ("dtype", 5),
        ("output", "u16"),
        ("generator", "md5"),
        ("generator", "siphash"),
        ("generator", "\ud800"),
        ("version", ""),
        ("version", "a" * 129),
        ("version", "\x1b[31m"),
        ("digest", "0" * 63),
        ("digest", "g" * 64),
        ("digest", "A" * 64),
        ("digest", None),
    ],
)
def test_an_invalid_field(params, field, value):
    fields = params.to_dict() | {field: value}
    with pytest.raises(MalformedMessageError, match="table parameters: "):
        TableParams.from_dict(fields)


def test_hashes_that_are_nested_deeply(params):
    for depth in range(500, 1000):  # some of them too deep for JSON
        text = params.to_json().replace('"levels":0', '"levels":' + "[" * depth + "]" * depth)
        with pytest.raises(MalformedMessageError):
            TableParams.from_json(text)


@pytest.mark.parametrize("missing", ["rows", "dtype", "digest", "format", "row_shape"])
def test_a_field_that_is_missing_or_unknown(params, missing):
    fields = params.to_dict()
    del fields[missing]
    with pytest.raises(MalformedMessageError, match=missing):
        TableParams.from_dict(fields)
    with pytest.raises(MalformedMessageError, match="surprise"):
        TableParams.from_dict(params.to_dict() | {"surprise": 1})


@pytest.mark.parametrize(
    "dtype", ["?", "u1", ">i8", "<f2", "c16", "S7", "<U3", "<M8[ms]", "m8[2D]"]
)
def test_types_that_can_be_served(dtype):
    params = nescio.Table(np.zeros((3, 2), dtype)).params
    assert TableParams.from_json(params.to_json()).dtype == np.dtype(dtype)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "5", b"\xff", "[" * 100_000])
def test_text_that_is_not_parameters(text):
    with pytest.raises(MalformedMessageError):
        TableParams.from_json(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_json_does_worse_than_be_refused(value):
    with pytest.raises(MalformedMessageError):
        TableParams.from_json(json.dumps(value))


def test_the_constructor_checks_its_arguments(params):
    fields = {name: getattr(params, name) for name in params.__dataclass_fields__}
    assert TableParams(**fields) == params
    with pytest.raises(ArgumentError, match="found 0 rows"):
        TableParams(**fields | {"rows": 0})
