"""Inference with low-bit weights and 8 to 32-bit activations (PrecisionBatching).

    weights = quant.quantize_weights(w, bits=4)                  # bit planes and a step
    y = quant.BitSerialMatrix(weights, activation_bits=8)(x)

    small = quant.torch.quantize(model, {"fc*": (4, 8)})         # a PyTorch model, by plan
    quant.save(small, "small.safetensors")
    quant.load("small.safetensors")(x)                           # without PyTorch

    quantize              quantizes a model of NumPy layers by plan
    nescio.quant.search   searches bits for each layer, by quality and time
    nescio.quant.device   multiplies on a GPU
    nescio.quant.torch    quantizes and trains PyTorch models (needs PyTorch)

Guide and measurements: docs/quant.md. Source: thesis, chapter 3.
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
    """Writes a model of PyTorch modules or NumPy layers to a safetensors file.

    The file's metadata describe the layers. A module without a NumPy counterpart becomes a `Group`
    of its submodules. Raises ArgumentError if the model cannot be saved, FileError if the file
    cannot be written.
    """
    from ._store import save_layers  # noqa: PLC0415 - needs safetensors

    save_layers(model if isinstance(model, Layer) else _from_modules(model), path)


def _from_modules(model: object) -> Layer:
    """Converts a PyTorch model to NumPy layers. Raises ArgumentError for anything else."""
    if "torch" not in sys.modules:  # then the model is not a PyTorch module
        raise ArgumentError(
            f"model: found {type(model).__name__}, expected a PyTorch module or a Layer"
        )
    from .torch._convert import to_layers  # noqa: PLC0415 - needs PyTorch

    return to_layers(model)


def load(path: str | os.PathLike[str], *, threads: int = 0) -> Layer:
    """Reads a model that `save` wrote, as NumPy layers. PyTorch is not needed.

    Quantized layers return the same bits as in the saved model. Recurrent layers do so on the same
    machine with the same NumPy release, because they use NumPy's tanh. `threads` is the number of
    threads per product; 0 means one per processor.

    Raises FileError if the file cannot be read or is invalid.
    """
    from ._store import load_layers  # noqa: PLC0415 - needs safetensors

    return load_layers(path, threads=threads)
