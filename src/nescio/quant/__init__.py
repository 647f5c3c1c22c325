"""Inference with weights of few bits and activations of many: PrecisionBatching.

    weights = quant.quantize_weights(w, bits=4)                  # planes of bits, and a step
    y = quant.BitSerialMatrix(weights, activation_bits=8)(x)

    small = quant.torch.quantize(model, {"fc*": (4, 8)})         # a PyTorch model, by plan
    quant.save(small, "small.safetensors")
    quant.load("small.safetensors")(x)                           # without PyTorch

    quantize          a model of NumPy layers, by plan
    nescio.quant.search           bits for each layer, by quality and time
    nescio.quant.torch            PyTorch modules, plans, and training (needs PyTorch)

What it is, and what it costs: docs/quant.md. Source: thesis, chapter 3.
"""

import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from ..errors import ArgumentError
from ._layers import Embedding, Group, Layer, Linear, Sequential
from ._matrix import BitSerialMatrix, FloatMatrix
from ._plan import quantize
from ._recurrent import GRU, LSTM, GRUCell, LSTMCell
from ._weights import QuantizedWeights, from_integers, quantize_weights

if TYPE_CHECKING:
    from . import search as search
    from . import torch as torch
else:

    def __getattr__(name: str) -> ModuleType:
        """Imports `quant.search` or `quant.torch` when it is first used."""
        if name in ("search", "torch"):
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "GRU",
    "LSTM",
    "BitSerialMatrix",
    "Embedding",
    "FloatMatrix",
    "GRUCell",
    "Group",
    "LSTMCell",
    "Layer",
    "Linear",
    "QuantizedWeights",
    "Sequential",
    "from_integers",
    "load",
    "quantize",
    "quantize_weights",
    "save",
]


def save(model: object, path: str | os.PathLike[str]) -> None:
    """Writes a model, of PyTorch modules or of NumPy layers, as safetensors that say what it is.

    Modules that are not known here become a `Group` of their parts. Raises ArgumentError if it is
    no such model or cannot be written.
    """
    from ._store import save_layers  # noqa: PLC0415 - needs safetensors

    save_layers(model if isinstance(model, Layer) else _from_modules(model), path)


def _from_modules(model: object) -> Layer:
    """A PyTorch model in NumPy layers. Raises ArgumentError if it is none."""
    if "torch" not in sys.modules:  # then there is no module either
        raise ArgumentError(
            f"model: found {type(model).__name__}, expected a PyTorch module or a Layer"
        )
    from .torch._convert import to_layers  # noqa: PLC0415 - needs PyTorch

    return to_layers(model)


def load(path: str | os.PathLike[str], *, threads: int = 0) -> Layer:
    """The model of a file that `save` wrote, in NumPy layers: PyTorch is not needed.

    What is quantised predicts bit for bit what the saved model does; recurrent layers do so on the
    same machine with the same NumPy, whose tanh they take. `threads` share a product, 0 is one for
    every processor.

    Raises ArgumentError for what is no such file, MismatchError for arrays of other shapes than the
    file's own description says.
    """
    from ._store import load_layers  # noqa: PLC0415 - needs safetensors

    return load_layers(path, threads=threads)
