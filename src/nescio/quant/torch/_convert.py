"""Conversion between PyTorch modules and NumPy layers."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from ..._arrays import Array
from ...errors import ArgumentError, FileError
from .. import _functions as functions
from .. import _recurrent as recurrent
from .._layers import Embedding, Group, Layer, Linear, Sequential, named_layers
from .._matrix import BitSerialMatrix, FloatMatrix
from .._plan import QUANTIZABLE
from .._store import load_layers
from ._linear import BitSerialLinear, floats
from ._models import Model, check_no_hooks, replace_modules
from ._recurrent import (
    BitSerialGRU,
    BitSerialGRUCell,
    BitSerialLSTM,
    BitSerialLSTMCell,
    matrix_parts,
)

_MAX_DEPTH = 32  # nesting of modules, as in files
_NUMPY_FLOATS = (torch.float16, torch.float32, torch.float64)


def to_layers(model: object) -> Layer:
    """Converts a model to NumPy layers; a module without a counterpart becomes a `Group`.

    Quantized layers share memory with the modules. Raises ArgumentError for anything but a module,
    for hooks (they would be lost), and for weights that are not finite.
    """
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(
            f"model: found {type(model).__name__}, expected a PyTorch module or a Layer"
        )
    return _layer("", model, 0)


def load(path: str | os.PathLike[str], model: Model) -> Model:
    """Returns a copy of a model with the quantized layers and all other weights of a file.

    `model` is an instance of the class that was quantized and saved; its weights are not used.
    Raises FileError if the file is invalid or belongs to another model.
    """
    stored = dict(named_layers(load_layers(path)))
    modules = dict(model.named_modules(remove_duplicate=False))
    made = {
        name: _restored(layer)
        for name, layer in stored.items()
        if name in modules and isinstance(layer, QUANTIZABLE) and _is_quantized(layer)
    }
    copied = replace_modules(model, made)
    state = {}
    for name, tensor in copied.state_dict().items():
        state[name] = _stored_tensor(name, tensor, stored)
    copied.load_state_dict(state)
    return copied


def _layer(name: str, module: torch.nn.Module, depth: int) -> Layer:
    if depth > _MAX_DEPTH:
        raise ArgumentError(f"{name!r}: found modules nested more than {_MAX_DEPTH} deep")
    check_no_hooks(repr(name), module)
    make = _LAYERS.get(type(module))
    try:
        if make is not None:
            return make(module)
    except ArgumentError as error:
        raise ArgumentError(f"{name!r}: {error}") from error
    children = {
        child: _layer(_joined(name, child), part, depth + 1)
        for child, part in module._modules.items()  # named_children omits repeated ones
        if part is not None
    }
    if type(module) is torch.nn.Sequential:
        return Sequential(named=children)
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    arrays = {key: _as_array(_joined(name, key), tensor) for key, tensor in own}
    return Group(children, arrays, type(module).__name__)


def _bit_serial(module: BitSerialLinear) -> Linear:
    matrix = module.matrix()
    return Linear(BitSerialMatrix(matrix.weights, matrix.activation_bits, bias=matrix.bias))


def _linear(module: torch.nn.Linear) -> Linear:
    return _float_linear(module.weight, module.bias)


def _float_linear(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    return Linear(FloatMatrix(floats(weight), None if bias is None else floats(bias)))


def _cell(module: torch.nn.Module) -> Layer:
    kind = recurrent.LSTMCell if isinstance(module, torch.nn.LSTMCell) else recurrent.GRUCell
    return kind(*(_float_linear(*matrix_parts(module, part)) for part in ("ih", "hh")))


def _stack(module: torch.nn.Module) -> Layer:
    if module.proj_size:
        raise ArgumentError(f"proj_size: found {module.proj_size}, expected 0")
    kind = recurrent.LSTM if isinstance(module, torch.nn.LSTM) else recurrent.GRU
    names = recurrent.stack_names(module.num_layers, bidirectional=module.bidirectional)
    return kind(
        {name: _float_linear(*matrix_parts(module, name)) for name in names},
        layers=module.num_layers,
        bidirectional=module.bidirectional,
        batch_first=module.batch_first,
    )


def _recurrent(module: Any) -> Layer:  # noqa: ANN401 - a bit-serial one
    parts = {name: _bit_serial(part) for name, part in module.named_children()}
    layer: Layer = module._of(parts)
    return layer


def _embedding(module: torch.nn.Embedding) -> Layer:
    if module.max_norm is not None:
        raise ArgumentError(f"max_norm: found {module.max_norm}, expected None")
    return Embedding(floats(module.weight))


def _flatten(module: torch.nn.Flatten) -> Layer:
    if (module.start_dim, module.end_dim) != (1, -1):
        found = (module.start_dim, module.end_dim)
        raise ArgumentError(f"Flatten: found axes {found}, expected (1, -1)")
    return functions.Flatten()


def _softmax(module: torch.nn.Softmax | torch.nn.LogSoftmax) -> Layer:
    if module.dim not in (-1,):
        raise ArgumentError(f"softmax: found axis {module.dim}, expected -1")
    return functions.Softmax(log=isinstance(module, torch.nn.LogSoftmax))


def _layer_norm(module: torch.nn.LayerNorm) -> Layer:
    if len(module.normalized_shape) != 1 or module.weight is None or module.bias is None:
        raise ArgumentError("LayerNorm: expected one axis, with weight and bias")
    return functions.LayerNorm(floats(module.weight), floats(module.bias), module.eps)


_LAYERS: dict[type[torch.nn.Module], Callable[[Any], Layer]] = {
    BitSerialLinear: _bit_serial,
    **dict.fromkeys((BitSerialLSTM, BitSerialGRU, BitSerialLSTMCell, BitSerialGRUCell), _recurrent),
    torch.nn.Linear: _linear,
    **dict.fromkeys((torch.nn.LSTM, torch.nn.GRU), _stack),
    **dict.fromkeys((torch.nn.LSTMCell, torch.nn.GRUCell), _cell),
    torch.nn.Embedding: _embedding,
    torch.nn.ReLU: lambda _: functions.ReLU(),
    torch.nn.LeakyReLU: lambda module: functions.LeakyReLU(module.negative_slope),
    torch.nn.Tanh: lambda _: functions.Tanh(),
    torch.nn.Sigmoid: lambda _: functions.Sigmoid(),
    **dict.fromkeys((torch.nn.Softmax, torch.nn.LogSoftmax), _softmax),
    torch.nn.LayerNorm: _layer_norm,
    torch.nn.Flatten: _flatten,
    **dict.fromkeys((torch.nn.Identity, torch.nn.Dropout), lambda _: functions.Identity()),
}


def _is_quantized(layer: Layer) -> bool:
    if isinstance(layer, Linear):
        return isinstance(layer.matrix, BitSerialMatrix)
    return any(_is_quantized(part) for part in layer.children().values())


def _restored(layer: Layer) -> torch.nn.Module:
    """Returns the module of a quantized layer."""
    if isinstance(layer, Linear):
        matrix = layer.matrix
        assert isinstance(matrix, BitSerialMatrix)
        bias = None if matrix.bias is None else torch.from_numpy(matrix.bias)
        return BitSerialLinear.from_weights(matrix.weights, matrix.activation_bits, bias)
    parts = {name: _restored(part) for name, part in layer.children().items()}
    made: torch.nn.Module
    if isinstance(layer, recurrent.LSTMCell | recurrent.GRUCell):
        cell = BitSerialLSTMCell if isinstance(layer, recurrent.LSTMCell) else BitSerialGRUCell
        made = cell(layer.inputs, layer.hidden)
    else:
        assert isinstance(layer, recurrent.LSTM | recurrent.GRU)
        stack = BitSerialLSTM if isinstance(layer, recurrent.LSTM) else BitSerialGRU
        made = stack(
            layer.inputs,
            layer.hidden,
            layer.layers,
            batch_first=layer.batch_first,
            bidirectional=layer.bidirectional,
        )
    for name, part in parts.items():
        made.add_module(name, part)
    return made


def _stored_tensor(name: str, expected: torch.Tensor, stored: Mapping[str, Layer]) -> torch.Tensor:
    """Returns a state's tensor from a file's layers.

    Raises FileError if they have no array of that name and shape.
    """
    owner, _, key = name.rpartition(".")
    if owner in stored and key in ("weight", "bias", "planes", "scale"):
        array = stored[owner].arrays().get(key)
    elif owner in stored and key == "sizes":
        return expected  # the module was built with them
    elif owner in stored and key.startswith(("weight_", "bias_")):  # of a float recurrent layer
        which, _, part = key.partition("_")
        parts = stored[owner].children()
        array = parts[part].arrays().get(which) if part in parts else None
    else:
        array = stored[owner].arrays().get(key) if owner in stored else None
    found = "nothing" if array is None else f"shape {array.shape}"
    wanted = f"shape {tuple(expected.shape)}"
    if array is None or found != wanted:
        raise FileError(
            f"{name}: found {found} in the file, expected {wanted}; pass a model of "
            "the class that was saved"
        )
    return torch.from_numpy(np.array(array)).to(expected.dtype)


def _joined(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child


def _as_array(name: str, tensor: torch.Tensor) -> Array:
    """Converts a dense parameter or buffer; float types that NumPy lacks become float32."""
    if tensor.dtype.is_floating_point and tensor.dtype not in _NUMPY_FLOATS:
        return floats(tensor)
    try:
        array: Array = tensor.detach().cpu().resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError) as error:  # sparse, quantized, or on meta
        raise ArgumentError(
            f"{name!r}: found {tensor.dtype} of {tensor.layout} on {tensor.device}, expected a "
            "dense tensor of a type that NumPy supports"
        ) from error
    return array
