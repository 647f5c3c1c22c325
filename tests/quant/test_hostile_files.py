"""Files with hand-made headers, and models that a file cannot hold."""

import json
import struct

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError, FileError
from nescio.quant import _functions as functions
from quant.models import perceptron

pytest.importorskip("safetensors")


def layer(kind, options=None, children=None):
    return {"kind": kind, "options": options or {}, "children": children or {}}


def group(*arrays):
    return layer("Group", {"of": ["x"], "arrays": list(arrays)})


@pytest.fixture
def written(tmp_path):
    """Writes a file of a description and arrays (name, dtype, shape, bytes)."""

    def write(model, *arrays):
        text = json.dumps({"version": 1, "model": model})
        header, end = {"__metadata__": {"nescio.quant": text}}, 0
        for name, dtype, shape, count in arrays:
            offsets = [end, end := end + count]
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        raw = json.dumps(header).encode()
        path = tmp_path / "model"
        path.write_bytes(struct.pack("<Q", len(raw)) + raw + b"\x02" * end)
        return path

    return write


def refused(path):
    with pytest.raises(FileError) as caught:
        quant.load(path)
    assert len(str(caught.value)) < 700
    return str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "shape", "count"),
    [
        ("BF16", [1], 2),
        ("F8_E4M3", [1], 1),
        ("F8_E5M2", [1], 1),
        ("F8_E8M0", [1], 1),
        ("F4", [2], 1),
        ("U8", [1] * 100, 1),
        ("U8", [1] * 33, 1),
        ("U8", [0, 1 << 63], 0),
        ("F64", [0, 1 << 62], 0),
        ("F32", [0, 1 << 47, 4], 0),
    ],
)
def test_arrays_that_numpy_has_not(written, dtype, shape, count):
    said = refused(written(group("a"), ("a", dtype, shape, count)))
    assert f"'a' is {dtype} of shape" in said or "deserializing" in said


@pytest.mark.parametrize("dtype", ["U8", "I16", "U32", "F16", "F64"])
@pytest.mark.parametrize("shape", [[], [1] * 32, [0, 3], [2, 2]])
def test_arrays_that_it_has(written, dtype, shape):
    count = int(np.prod(shape)) * int(dtype[1:]) // 8
    array = quant.load(written(group("a"), ("a", dtype, shape, count))).arrays()["a"]
    assert array.shape == tuple(shape)
    assert array.tobytes() == b"\x02" * count


def test_bytes_that_are_neither_true_nor_false(written):
    array = quant.load(written(group("a"), ("a", "BOOL", [3], 3))).arrays()["a"]
    assert array.tobytes() == b"\x01" * 3


def test_messages_do_not_repeat_the_file(written):
    long = {f"k{i}" * 8: layer("ReLU") for i in range(10_000)}
    flags = {"layers": 1, "bidirectional": False, "batch_first": False}
    assert "matrices: found" in refused(written(layer("LSTM", flags, long)))
    assert "found options" in refused(written(layer("ReLU", dict.fromkeys(long, 0))))
    assert "found children" in refused(written(layer("ReLU", None, long)))
    assert "has no array" in refused(written(group("a" * 100_000)))
    assert "found a layer of kind" in refused(written(layer("K" * 100_000)))
    norm = layer("LayerNorm", {"size": 1, "eps": 1})
    path = written(norm, ("weight", "F16", [1] * 9999, 2))
    with pytest.raises(FileError, match=r"found F16 of shape \(1, 1, .*\.\.\., expected") as caught:
        quant.load(path)
    assert len(str(caught.value)) < 700


def test_options_that_a_layer_refuses(written):
    norm = layer("LayerNorm", {"size": 1, "eps": -5})
    said = refused(written(norm, ("weight", "F32", [1], 4), ("bias", "F32", [1], 4)))
    assert "eps: found -5.0, expected at least 0" in said


def saved(model, tmp_path):
    quant.save(model, tmp_path / "model")
    return quant.load(tmp_path / "model")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
def test_floats_of_any_width_are_saved_as_float32(tmp_path, dtype):
    values = np.arange(1, 7).reshape(3, 2).astype(dtype)
    table = saved(quant.Embedding(values), tmp_path)
    assert table.weight.dtype == np.float32
    assert (table([0, 2]) == values[[0, 2]]).all()
    norm = saved(functions.LayerNorm(values[0], values[1], np.float32(0.5)), tmp_path)
    assert norm(values[:1].astype(np.float32)).dtype == np.float32
    assert norm.eps == 0.5


def test_arrays_without_axes_stay_so(tmp_path):
    arrays = {"n": np.array(7), "x": np.asarray(2.5, ">f4"), "t": np.ones((2, 3))[:, ::2].T}
    found = saved(quant.Group({}, arrays), tmp_path).arrays()
    assert {name: array.shape for name, array in found.items()} == {"n": (), "x": (), "t": (2, 2)}
    assert (found["n"], found["x"]) == (7, 2.5)


def nested(depth):
    model = functions.ReLU()
    for _ in range(depth):
        model = quant.Sequential(model)
    return model


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: quant.Group({}, {"a": np.array([object()])}), "'a' is object of shape (1,)"),
        (lambda: quant.Group({}, {"a": np.array(["x"])}), "'a' is <U1"),
        (lambda: quant.Group({}, {"__metadata__": np.zeros(1)}), "two arrays have the name"),
        (
            lambda: quant.Group({"a": quant.Group({}, {"b": [1]})}, {"a.b": [2]}),
            "two arrays have the name 'a.b'",
        ),
        (lambda: nested(32), "more than 32 deep"),
        (lambda: nested(5000), "more than 32 deep"),
        (
            lambda: quant.Sequential(*[functions.ReLU()] * (1 << 14)),
            "describes more than 16384 layers",
        ),
        (lambda: quant.Sequential(named={"n" * (1 << 20): functions.ReLU()}), "1048"),
    ],
    ids=["objects", "text", "metadata", "names", "deep", "deeper", "wide", "long"],
)
def test_what_a_file_cannot_hold_is_not_written(tmp_path, make, said):
    with pytest.raises(ArgumentError, match="cannot save the model") as caught:
        quant.save(make(), tmp_path / "model")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 700
    assert not list(tmp_path.iterdir())


def test_the_deepest_model_comes_back(rng, tmp_path):
    assert saved(nested(31), tmp_path)(np.float32([-1, 2])).tolist() == [0, 2]
    assert len(saved(perceptron(rng), tmp_path)) == 3
