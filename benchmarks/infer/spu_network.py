"""`python -m benchmarks.infer.spu_network FILE OUT`: a whole network by SPU's Cheetah, in JAX.

It needs SPU and JAX, and no PyTorch, so that it can run in an environment of its own. FILE is an
.npz with the network's name, an image (height, width, channels), the float model's logits, and
`weights_0` and so on: kernels (height, width, in, out) or matrices (in, out), each followed by its
bias. The client owns the image and the server the weights.
"""

import importlib
import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from nescio.bench.infer.cheetah import Call, Program, run
from nescio.errors import NescioError

__all__ = ["FUNCTIONS", "lenet", "main", "resnet32"]

_RING = "FM64"
_BLOCKS = 3  # groups of blocks, the first of each but one with a stride of 2
_POOL = 2


def lenet(x: Any, *weights: Any) -> Any:  # noqa: ANN401 - JAX arrays
    """Returns logits (1, 10) of an image (1, 28, 28, 1)."""
    first, second, hidden, last = _pairs(weights)
    x = _relu(_convolved(x, *first, padding=0))
    x = _relu(_convolved(x, *second, padding=0))
    _, height, width, channels = x.shape
    parts = x.reshape(1, height // _POOL, _POOL, width // _POOL, _POOL, channels)
    x = parts.sum((2, 4)) * (1 / _POOL**2)
    x = _relu(x.reshape(1, -1) @ hidden[0] + hidden[1])
    return x @ last[0] + last[1]


def resnet32(x: Any, *weights: Any) -> Any:  # noqa: ANN401
    """Returns logits (1, 10) of an image (1, 32, 32, 3); the number of blocks is the weights'."""
    first, *others, last = _pairs(weights)
    x = _relu(_convolved(x, *first))
    for one, other in zip(others[::2], others[1::2], strict=True):
        stride = 2 if one[0].shape[3] > x.shape[3] else 1
        found = _convolved(_relu(_convolved(x, *one, stride=stride)), *other)
        added = (found.shape[3] - x.shape[3]) // 2
        shortcut = _numpy().pad(x[:, ::stride, ::stride], [(0, 0)] * 3 + [(added, added)])
        x = _relu(found + shortcut)
    _, height, width, _ = x.shape
    return (x.sum((1, 2)) * (1 / (height * width))) @ last[0] + last[1]


FUNCTIONS = {"LeNet": lenet, "ResNet-32": resnet32}


def _pairs(weights: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(pairwise(weights))[::2]


def _numpy() -> Any:  # noqa: ANN401
    return importlib.import_module("jax.numpy")


def _relu(x: Any) -> Any:  # noqa: ANN401
    return _numpy().maximum(x, 0)


def _convolved(x: Any, kernel: Any, bias: Any, *, stride: int = 1, padding: int = 1) -> Any:  # noqa: ANN401
    order, around = ("NHWC", "HWIO", "NHWC"), [(padding, padding)] * 2
    convolve = importlib.import_module("jax.lax").conv_general_dilated
    return convolve(x, kernel, (stride, stride), around, dimension_numbers=order) + bias


def main(argv: Sequence[str]) -> int:
    """Runs a network, and writes its calls and its error as JSON; returns the exit code."""
    source, out, threads, repeat = argv
    with np.load(source) as file:
        arrays = {name: file[name] for name in file.files}
    weights = [arrays[f"weights_{number}"] for number in range(len(arrays) - 3)]
    inputs = [arrays["image"][None], *weights]
    owners = [1] + [0] * len(weights)
    function = FUNCTIONS[str(arrays["network"])]
    try:
        plain = np.asarray(function(*inputs))
        found = run(Program(function, inputs, owners, _RING, int(threads), int(repeat)))
    except NescioError as error:
        print(error, file=sys.stderr)
        return 1
    case = {
        "calls": [_case(pair) for pair in found.calls],
        "error": float(np.abs(found.outputs - arrays["logits"]).max()),
        "plain_error": float(np.abs(plain - arrays["logits"]).max()),
        "same_class": bool(found.outputs.argmax() == arrays["logits"].argmax()),
    }
    Path(out).write_text(json.dumps(case))
    return 0


def _case(pair: tuple[Call, Call]) -> dict[str, float]:
    return {
        "seconds": max(own.seconds for own in pair),
        "cpu_seconds": sum(own.cpu_seconds for own in pair),
        "bytes": sum(own.received_bytes for own in pair),
    }


if __name__ == "__main__":
    # Processes import the functions by the module's name, which is not that of a main module.
    sys.exit(importlib.import_module("benchmarks.infer.spu_network").main(sys.argv[1:]))
