"""Bit-serial PyTorch modules, which replace `Linear`, `LSTM`, `GRU` and their cells.

    small = quantize(model, {"encoder.*": (4, 8), "decoder": (2, 16)})
    layer = BitSerialLinear.from_linear(linear, weight_bits=4, activation_bits=8)

The modules compute on the CPU, `BitSerialLinear` also on a GPU. They are forward only: a backward
pass raises ArgumentError. `training` trains models for low bit widths. Needs PyTorch: pip install
'nescio[quant-torch]'.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nescio.quant.torch needs PyTorch: pip install 'nescio[quant-torch]'", name=error.name
    ) from error

from . import training
from ._convert import load, to_layers
from ._linear import BitSerialLinear
from ._models import quantize
from ._recurrent import BitSerialGRU, BitSerialGRUCell, BitSerialLSTM, BitSerialLSTMCell

__all__ = [
    "BitSerialGRU",
    "BitSerialGRUCell",
    "BitSerialLSTM",
    "BitSerialLSTMCell",
    "BitSerialLinear",
    "load",
    "quantize",
    "to_layers",
    "training",
]
