"""Quantized modules of the device's half: their bits, and modules that wait for their state."""

from collections.abc import Callable
from typing import Any

import torch

from .._arrays import shown
from ..errors import ArgumentError
from ..quant.torch import (
    BitSerialGRU,
    BitSerialGRUCell,
    BitSerialLinear,
    BitSerialLSTM,
    BitSerialLSTMCell,
)

_RECURRENT = (BitSerialLSTM, BitSerialGRU, BitSerialLSTMCell, BitSerialGRUCell)


def bits_of(model: torch.nn.Module) -> dict[str, tuple[int, int]]:
    """Returns (weight bits, activation bits) of each quantized module, matrices of one left out."""
    found: dict[str, tuple[int, int]] = {}
    inside: set[int] = set()
    for name, module in model.named_modules():
        if id(module) in inside:
            continue
        part = module
        if isinstance(module, _RECURRENT):
            inside |= {id(child) for child in module.children()}
            part = next(module.children())
        if isinstance(part, BitSerialLinear):
            found[name] = (part.weight_bits, part.activation_bits)
    return found


def without_weights(name: str, module: torch.nn.Module, bits: tuple[int, int]) -> torch.nn.Module:
    """Returns a quantized module of the size of a plain one, whose state is loaded later.

    Raises ArgumentError for a module that cannot be quantized, or not to these bits.
    """
    if isinstance(module, (BitSerialLinear, *_RECURRENT)):
        return module
    make = _MAKERS.get(type(module))
    if make is None:
        found = type(module).__name__
        raise ArgumentError(f"{shown(name)} is a {found}, expected a module that can be quantized")
    return make(module, {"weight_bits": bits[0], "activation_bits": bits[1]})


def _linear(module: Any, bits: dict[str, Any]) -> torch.nn.Module:  # noqa: ANN401
    sizes = (module.in_features, module.out_features, module.bias is not None)
    return BitSerialLinear(*sizes, **bits)


def _stack(module: Any, bits: dict[str, Any]) -> torch.nn.Module:  # noqa: ANN401
    kind = BitSerialLSTM if isinstance(module, torch.nn.LSTM) else BitSerialGRU
    sizes = (module.input_size, module.hidden_size, module.num_layers, module.bias)
    both = module.bidirectional
    return kind(*sizes, module.batch_first, bidirectional=both, **bits)


def _cell(module: Any, bits: dict[str, Any]) -> torch.nn.Module:  # noqa: ANN401
    kind = BitSerialLSTMCell if isinstance(module, torch.nn.LSTMCell) else BitSerialGRUCell
    return kind(module.input_size, module.hidden_size, module.bias, **bits)


_MAKERS: dict[type[torch.nn.Module], Callable[[Any, dict[str, Any]], torch.nn.Module]] = {
    torch.nn.Linear: _linear,
    **dict.fromkeys((torch.nn.LSTM, torch.nn.GRU), _stack),
    **dict.fromkeys((torch.nn.LSTMCell, torch.nn.GRUCell), _cell),
}
