"""Model files: saved models predict the same, and invalid files are refused."""

import json

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError, FileError
from nescio.quant import _functions as functions
from nescio.quant import _store as store
from quant.models import cell, floats, linear, perceptron, stack

safetensors_numpy = pytest.importorskip("safetensors.numpy")


def everything(rng):
    """Returns a layer of every kind, some with low-bit and some with float weights."""
    return quant.Group(
        {
            "quantized": quant.quantize(perceptron(rng), {"0": (3, 8), "2": (1, 32)}, per_row=True),
            "floats": perceptron(rng),
            "no_bias": quant.quantize(linear(rng, 5, 6, bias=False), {"": (8, 16)}),
            "lstm": quant.quantize(
                stack(rng, quant.LSTM, layers=2, bidirectional=True), {"": (4, 8)}
            ),
            "gru": stack(rng, quant.GRU, batch_first=True),
            "lstm_cell": cell(rng, quant.LSTMCell),
            "gru_cell": quant.quantize(cell(rng, quant.GRUCell), {"": (2, 16)}),
            "embedding": quant.Embedding(floats(rng, 4, 3)),
            "rest": quant.Sequential(
                functions.Flatten(),
                functions.ReLU(),
                functions.LeakyReLU(0.2),
                functions.Tanh(),
                functions.Sigmoid(),
                functions.LayerNorm(floats(rng, 6), floats(rng, 6), 1e-3),
                functions.Identity(),
                functions.Softmax(log=True),
            ),
        },
        {"table": np.arange(5), "mask": np.array([[True]])},
        of="Everything",
    )


def arrays_of(result):
    return [result] if isinstance(result, np.ndarray) else [a for p in result for a in arrays_of(p)]


INPUTS = {
    "quantized": (2, 70),
    "floats": (2, 70),
    "no_bias": (5,),
    "rest": (2, 3, 2),
    "lstm": (4, 2, 10),
    "gru": (4, 2, 10),
    "lstm_cell": (3, 10),
    "gru_cell": (10,),
}


def test_every_layer_comes_back_and_predicts_the_same(rng, tmp_path):
    model = everything(rng)
    quant.save(model, tmp_path / "model.safetensors")
    loaded = quant.load(str(tmp_path / "model.safetensors"), threads=1)
    for name, shape in INPUTS.items():
        x = floats(rng, *shape)
        for a, b in zip(arrays_of(loaded[name](x)), arrays_of(model[name](x)), strict=True):
            assert a.tobytes() == b.tobytes()
            assert a.shape == b.shape
    assert (loaded["embedding"]([1, 3]) == model["embedding"]([1, 3])).all()
    assert loaded.of == "Everything"
    for name, array in loaded.arrays().items():
        assert (array == model.arrays()[name]).all()
        assert array.dtype == model.arrays()[name].dtype
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.fixture
def saved(rng, tmp_path):
    """Returns the path of a model file, its arrays and its description."""
    path = tmp_path / "model.safetensors"
    quant.save(quant.quantize(perceptron(rng), {"*": (4, 8)}), path)
    with store.safetensors.safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return path, arrays, json.loads(file.metadata()["nescio.quant"])


def rewrite(path, arrays, description):
    text = description if isinstance(description, str) else json.dumps(description)
    safetensors_numpy.save_file(arrays, path, {"nescio.quant": text})


def test_other_programs_read_the_arrays(saved):
    _, arrays, _ = saved
    assert {name: (str(a.dtype), a.shape) for name, a in arrays.items()} == {
        "0.planes": ("int64", (4, 33, 2)),
        "0.scale": ("float32", (33,)),
        "0.bias": ("float32", (33,)),
        "2.planes": ("int64", (4, 5, 1)),
        "2.scale": ("float32", (5,)),
        "2.bias": ("float32", (5,)),
    }


@pytest.mark.parametrize(
    ("name", "change", "found"),
    [
        ("0.planes", lambda a: a[:3], "I64 of shape (3, 33, 2)"),
        ("0.planes", lambda a: a[:, :, :1], "I64 of shape (4, 33, 1)"),
        ("0.planes", lambda a: a.astype(np.int32), "I32 of shape (4, 33, 2)"),
        ("0.scale", lambda a: a[:5], "F32 of shape (5,)"),
        ("2.bias", lambda a: a.astype(np.float64), "F64 of shape (5,)"),
    ],
)
def test_arrays_of_other_shapes_and_dtypes(saved, name, change, found):
    path, arrays, description = saved
    expected = quant.load(path)
    rewrite(path, {**arrays, name: np.ascontiguousarray(change(arrays[name]))}, description)
    with pytest.raises(FileError) as caught:
        quant.load(path)
    assert f"array {name!r}: found {found}, expected" in str(caught.value)
    rewrite(path, arrays, description)
    assert quant.load(path)[0].matrix.weights.bits == expected[0].matrix.weights.bits


def first(description):
    return description["model"]["children"]["0"]


RELU = {"kind": "ReLU", "options": {}, "children": {}}


def edit(**options):
    return lambda d: first(d)["options"].update(options)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(version=2), "found version 2, expected 1"),
        (lambda d: d.update(version=True), "found version True"),
        (lambda d: d.update(version=1.0), "found version 1.0"),
        (lambda d: d.pop("model"), "layer ''"),
        (lambda d: d.update(model=[]), "layer ''"),
        (lambda d: first(d).update(kind="Conv2d"), "found a layer of kind 'Conv2d'"),
        (lambda d: first(d).update(kind=["Linear"]), "found a layer of kind"),
        (lambda d: first(d).update(children=1), "not JSON objects"),
        (lambda d: first(d).update(more=1), "does not consist of kind, options and children"),
        (lambda d: first(d)["options"].pop("in"), "found options"),
        (edit(more=1), "found options"),
        (edit(weight_bits=9), "weight_bits: found 9, expected 0 to 8"),
        (edit(weight_bits=True), "found True, expected an integer"),
        (edit(activation_bits=4), "found 4, expected 8, 16 or 32"),
        (edit(**{"in": 1 << 23}), "found 8388608, expected 1 to 4194304"),
        (edit(**{"in": 0}), "found 0"),
        (edit(**{"in": 10**30}), "expected 1 to"),
        (edit(**{"in": "70"}), "found '70'"),
        (edit(**{"in": 65}), "found bits beyond column 64"),
        (edit(weight_bits=0, activation_bits=8), "activation_bits: found 8, expected 0 to 0"),
        (edit(**{"k" * 10_000: 1}), "found options ['activation_bits'"),
        (lambda d: first(d)["children"].update(x=first(d) | {"children": {}}), "has no array"),
        (
            lambda d: d["model"]["children"]["1"]["children"].update(x=RELU),
            "layer '1': found children ['x'], expected none for a ReLU",
        ),
        (edit(bias="yes"), "found 'yes', expected true or false"),
        (edit(bias=False), "'0.bias' belongs to no layer"),
        (edit(weight_bits=0, activation_bits=0), "has no array '0.weight'"),
        (lambda d: d["model"]["children"].pop("2"), "'2.bias' belongs to no layer"),
        (lambda d: d["model"]["children"].update({"a.b": first(d)}), "has no array 'a.b.bias'"),
        (lambda d: d["model"]["children"].update({"": first(d)}), "has no array 'bias'"),
    ],
)
def test_descriptions_that_cannot_be(saved, change, said):
    path, arrays, description = saved
    change(description)
    rewrite(path, arrays, description)
    with pytest.raises(FileError) as caught:
        quant.load(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 500


def nested(depth):
    layer = '{"kind": "Sequential", "options": {}, "children": {'
    return '{"version": 1, "model": ' + f'{layer}"0": ' * depth + layer + "}}" * (depth + 1) + "}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "found version None"),
        (nested(40), "more than 32 deep"),
        (nested(100_000), "is not"),
        (
            json.dumps({"version": 1, "model": {"children": dict.fromkeys(range(1 << 14), 1)}}),
            "more than 16384 layers",
        ),
        (" " * (1 << 20) + "{}", "its description has 1048578 bytes, expected at most 1048576"),
        (" " * (1 << 22) + "{}", "expected at most 4194304"),
    ],
    ids=["cut", "brackets", "list", "deep", "deeper", "wide", "long", "longer"],
)
def test_descriptions_without_bounds(saved, text, said):
    path, arrays, _ = saved
    rewrite(path, arrays, text)
    with pytest.raises(FileError) as caught:
        quant.load(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        b"\0" * 8,
        b"\xff" * 64,
        (1 << 62).to_bytes(8, "little") + b"{}",
        (1 << 30).to_bytes(8, "little") + b"{}" * 100,
        (2).to_bytes(8, "little") + b"{}",
        b"PK\3\4 another format altogether, a zip for example",
        (60).to_bytes(8, "little")
        + b'{"a":{"dtype":"F32","shape":[9999999999],"data_offsets":[0,4]}}',
    ],
)
def test_files_of_other_formats(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FileError, match="is not a valid nescio.quant model"):
        quant.load(path)


def test_truncated_files(saved):
    path, _, _ = saved
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FileError, match="is not a valid nescio.quant model"):
            quant.load(path)


def test_flipped_bytes_never_crash(saved, rng):
    path, _, _ = saved
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    refused = 0
    for at in rng.integers(0, header, 300):
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            quant.load(path)
        except FileError:
            refused += 1
    assert refused > 200


def test_safetensors_of_others(tmp_path):
    path = tmp_path / "other.safetensors"
    safetensors_numpy.save_file({"a": np.zeros(3)}, path)
    with pytest.raises(ArgumentError, match="its metadata has no 'nescio.quant'"):
        quant.load(path)


def test_scales_that_are_no_numbers(saved):
    path, arrays, description = saved
    rewrite(path, {**arrays, "0.scale": np.full(33, np.nan, np.float32)}, description)
    with pytest.raises(ArgumentError, match="layer '0': scale: found nan for row 0"):
        quant.load(path)


def test_paths_that_cannot_be_used(rng, tmp_path):
    with pytest.raises(FileError, match="it does not exist or is not a regular file"):
        quant.load(tmp_path / "nothing")
    with pytest.raises(FileError, match="it does not exist or is not a regular file"):
        quant.load(tmp_path)
    with pytest.raises(FileError, match="cannot write the file"):
        quant.save(perceptron(rng), tmp_path / "none" / "model")
    with pytest.raises(ArgumentError, match="model: found int"):
        quant.save(3, tmp_path / "model")
    assert not list(tmp_path.iterdir())
