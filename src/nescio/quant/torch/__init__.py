"""Bit-serial layers for PyTorch: what `Linear`, `LSTM`, `GRU` and their cells become.

    small = quantize(model, {"encoder.*": (4, 8), "decoder": (2, 16)})
    layer = BitSerialLinear.from_linear(linear, weight_bits=4, activation_bits=8)

The modules compute on the processor, forward only: what asks them for a gradient gets an
ArgumentError. `training` trains models for few bits. Needs PyTorch: pip install
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
