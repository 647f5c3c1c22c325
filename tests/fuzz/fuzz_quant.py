"""Fuzz target: models of few bits as files, by coverage (atheris, libFuzzer).

    python tests/fuzz/fuzz_quant.py -max_total_time=60

Whatever a file holds, it is refused with a NescioError, or it is a model: then it predicts, and is
the same model when it has been saved and loaded again. Options are libFuzzer's.
"""

import itertools
import json
import math
import struct
import sys
import tempfile
from pathlib import Path
from types import FunctionType
from typing import Any

import atheris
import numpy as np

from nescio import NescioError, quant
from nescio.quant import _functions as functions
from nescio.quant import _layers as layers
from nescio.quant import _matrix as matrix
from nescio.quant import _recurrent as recurrent
from nescio.quant import _store as store
from nescio.quant import _weights as weights

# By function: atheris's import hook does not see packages that are installed in place.
MODULES = (functions, layers, matrix, recurrent, store, weights)
CLASSES = [thing for module in MODULES for thing in vars(module).values() if type(thing) is type]
for owner in (*MODULES, *CLASSES):
    for thing in list(vars(owner).values()):
        function = getattr(thing, "__func__", thing)  # of a class method
        if isinstance(function, FunctionType) and function.__module__.startswith("nescio.quant"):
            atheris.instrument_func(function)

FOLDER = tempfile.TemporaryDirectory(prefix="nescio-fuzz-")
FILE, AGAIN = Path(FOLDER.name, "model"), Path(FOLDER.name, "again")
BITS = {"BOOL": 8, "F4": 4, "F8_E4M3": 8, "F8_E5M2": 8, "BF16": 16, "C64": 64} | {
    f"{kind}{bits}": bits for bits in (8, 16, 32, 64) for kind in "UIF" if kind + str(bits) != "F8"
}
ONES = np.ones(3, np.float32)
KINDS = sorted(store._KINDS)


def linear(draw: np.random.Generator, inputs: int, outputs: int) -> quant.Linear:
    """A layer of floats."""
    return quant.Linear(
        quant.FloatMatrix(draw.standard_normal((outputs, inputs)), draw.standard_normal(outputs))
    )


def sound() -> tuple[dict[str, Any], bytes]:
    """The header of a sound file with a layer of most kinds, and its bytes after that."""
    draw = np.random.default_rng(0)
    model = quant.Group(
        {
            "fc": quant.Sequential(linear(draw, 5, 4), functions.ReLU(), linear(draw, 4, 3)),
            "rnn": quant.LSTM({"ih_l0": linear(draw, 3, 8), "hh_l0": linear(draw, 2, 8)}),
            "cell": quant.GRUCell(linear(draw, 3, 6), linear(draw, 2, 6)),
            "words": quant.Embedding(np.ones((3, 2), np.float32)),
            "rest": quant.Sequential(
                *(functions.Tanh(), functions.LeakyReLU(), functions.Softmax()),
                *(functions.Flatten(), functions.LayerNorm(ONES, ONES)),
            ),
        },
        {"more": np.arange(3)},
    )
    quant.save(quant.quantize(model, {"fc.0": (3, 8), "rnn": (1, 16)}), FILE)
    quant.load(FILE)
    content = FILE.read_bytes()
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


HEADER, DATA = sound()
TEXT = HEADER["__metadata__"]["nescio.quant"]


def damaged(provider: atheris.FuzzedDataProvider, text: bytes) -> bytes:
    """Some bytes overwritten, exchanged or left out."""
    at = provider.ConsumeIntInRange(0, len(text))
    keep = provider.ConsumeIntInRange(0, len(text))
    noise = provider.ConsumeBytes(16)
    return text[:at] + noise + text[keep if provider.ConsumeBool() else at + len(noise) :]


def value(provider: atheris.FuzzedDataProvider) -> object:
    """A number, a flag, text, or a list or object of such."""
    way = provider.ConsumeIntInRange(0, 7)
    if way < 5:
        size = provider.ConsumeIntInRange(-(1 << 63), (1 << 63) - 1)
        return (size >> 56, size, size / 3, provider.ConsumeBool(), None)[way]
    text = provider.ConsumeUnicode(8)
    return (text, [value(provider)], {text: value(provider)})[way - 5]


def change_node(provider: atheris.FuzzedDataProvider, node: dict[str, object]) -> None:
    """One option, the kind or the children of some layer changed."""
    children = node["children"]
    assert isinstance(children, dict)
    if children and provider.ConsumeIntInRange(0, 3):
        change_node(provider, children[provider.PickValueInList(sorted(children))])
        return
    options = node["options"]
    assert isinstance(options, dict)
    way = provider.ConsumeIntInRange(0, 3)
    if way == 0:
        node["kind"] = provider.PickValueInList(KINDS)
    elif way == 1 and options:
        options[provider.PickValueInList(sorted(options))] = value(provider)
    elif way == 2:
        children[provider.ConsumeUnicode(4)] = json.loads(json.dumps(node))
    else:
        node[provider.PickValueInList(sorted(node))] = value(provider)


def change_array(provider: atheris.FuzzedDataProvider, header: dict[str, Any]) -> bytes:
    """Another dtype and shape of an array, with as many bytes as these need, if they are few."""
    names = sorted(set(header) - {"__metadata__"}, key=lambda name: header[name]["data_offsets"])
    changed = provider.PickValueInList([*names, *["more"] * len(names)])  # which has any shape
    data = b""
    for name in names:
        array = header[name]
        own = DATA[slice(*array["data_offsets"])]
        if name == changed:
            array["dtype"] = provider.PickValueInList(sorted(BITS))
            axes = provider.PickValueInList([0, 1, 2, 3, 32, 33, 65])
            lengths = [1] * 9 + [0, 2, 3, 1 << 31, 1 << 62, (1 << 63) - 1]
            array["shape"] = [provider.PickValueInList(lengths) for _ in range(axes)]
            own = bytes(min(math.prod(array["shape"]) * BITS[array["dtype"]] // 8, 4096))
        array["data_offsets"] = [len(data), len(data) + len(own)]
        data += own
    return data


def content_of(provider: atheris.FuzzedDataProvider) -> bytes:
    """A file that is damaged in one of several ways."""
    header, data = json.loads(json.dumps(HEADER)), DATA
    way = provider.ConsumeIntInRange(0, 3)
    if way == 0:  # whatever the lengths say
        raw = json.dumps(header).encode()
        return damaged(provider, struct.pack("<Q", len(raw)) + raw + DATA)
    if way == 1:
        text = damaged(provider, TEXT.encode()).decode(errors="replace")
        header["__metadata__"]["nescio.quant"] = text
    elif way == 2:
        description = json.loads(TEXT)
        change_node(provider, description["model"])
        header["__metadata__"]["nescio.quant"] = json.dumps(description)
    else:
        data = change_array(provider, header)
    raw = json.dumps(header).encode()
    data = damaged(provider, data) if provider.ConsumeIntInRange(0, 9) == 9 else data
    return struct.pack("<Q", len(raw)) + raw + data


def one_input(data: bytes) -> None:
    """One input of the fuzzer."""
    FILE.write_bytes(content_of(atheris.FuzzedDataProvider(data)))
    try:
        model = quant.load(FILE, threads=1)
    except NescioError:
        return
    quant.save(model, AGAIN)
    both = (layers.named_layers(one) for one in (model, quant.load(AGAIN, threads=1)))
    for (name, one), (same, other) in itertools.zip_longest(*both, fillvalue=("", None)):
        assert name == same
        assert type(one) is type(other)
        assert repr(one.options()) == repr(other.options())
        if isinstance(one, quant.Linear):
            x = np.ones(one.matrix.columns, np.float32)
            assert one(x).tobytes() == other(x).tobytes()


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
