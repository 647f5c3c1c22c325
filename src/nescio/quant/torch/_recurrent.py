"""`LSTM`, `GRU` and their cells with low-bit weights, computed by the NumPy layers."""

from typing import Any, ClassVar, Self, TypeAlias

import torch

from ..._arrays import as_count
from ...errors import ArgumentError
from .. import _recurrent as recurrent
from .._layers import Linear
from .._plan import check_bits
from .._weights import MAX_COLUMNS, quantize_weights
from ._linear import BitSerialLinear, as_numpy, floats, without_gradient

State: TypeAlias = "torch.Tensor | tuple[torch.Tensor, torch.Tensor] | None"


class _Recurrent(torch.nn.Module):
    """Base of recurrent modules: matrices as submodules, and a NumPy layer built from them."""

    FLOAT: ClassVar[type[torch.nn.Module]]
    GATES: ClassVar[int]

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = as_count(input_size, "input_size", 1, MAX_COLUMNS)
        self.hidden_size = as_count(hidden_size, "hidden_size", 1, MAX_COLUMNS)
        self._cached_layer: tuple[list[object], Any] = ([], None)

    def _layer(self) -> Any:  # noqa: ANN401 - one of four
        """Returns the NumPy layer; builds it again after a matrix has changed."""
        matrices = {
            name: module.matrix()
            for name, module in self.named_children()
            if isinstance(module, BitSerialLinear)
        }
        if len(self._cached_layer[0]) != len(matrices) or any(
            a is not b for a, b in zip(self._cached_layer[0], matrices.values(), strict=True)
        ):
            linear = {name: Linear(matrix) for name, matrix in matrices.items()}
            self._cached_layer = (list(matrices.values()), self._of(linear))
        return self._cached_layer[1]

    def _of(self, matrices: dict[str, Linear]) -> Any:  # noqa: ANN401
        raise NotImplementedError

    def _run(self, x: torch.Tensor, state: State) -> tuple[torch.Tensor, ...]:
        """Returns the layer's output arrays as a flat tuple of tensors."""
        if not isinstance(x, torch.Tensor):
            raise ArgumentError(
                f"x: found {type(x).__name__}, expected a tensor, not a packed sequence"
            )
        states = () if state is None else state if isinstance(state, tuple) else (state,)

        def run(x: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
            arrays = tuple(as_numpy(part) for part in states)
            begin = None if not arrays else arrays[0] if len(arrays) == 1 else arrays
            return tuple(
                torch.from_numpy(array) for array in _flat(self._layer()(as_numpy(x), begin))
            )

        tensors: tuple[torch.Tensor, ...] = without_gradient(run, x, *states)
        return tensors

    def extra_repr(self) -> str:
        """Returns the text in parentheses of the layer's `repr`."""
        return f"{self.input_size}, {self.hidden_size}"

    def __getstate__(self) -> dict[str, Any]:
        """Returns all attributes but the NumPy layer, which is built again when needed."""
        return {**self.__dict__, "_cached_layer": ([], None)}


class _Cell(_Recurrent):
    LAYER: ClassVar[type[recurrent.LSTMCell | recurrent.GRUCell]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        weight_bits: int = 4,
        activation_bits: int = 8,
    ) -> None:
        super().__init__(input_size, hidden_size)
        rows = self.GATES * hidden_size
        bits = {"weight_bits": weight_bits, "activation_bits": activation_bits}
        self.ih = BitSerialLinear(input_size, rows, bias, **bits)
        self.hh = BitSerialLinear(hidden_size, rows, bias, **bits)

    @classmethod
    def from_cell(
        cls,
        cell: torch.nn.Module,
        weight_bits: int = 4,
        activation_bits: int = 8,
        per_row: bool = False,
        *,
        group: int = 0,
        clip: bool = True,
    ) -> Self:
        """Quantizes a cell, both matrices with the same bits.

        Raises ArgumentError for invalid bits, another module, NaN and infinite weights.
        """
        _check_type(cell, cls.FLOAT)
        made = cls.__new__(cls)
        _Recurrent.__init__(made, cell.input_size, cell.hidden_size)
        bits = check_bits((weight_bits, activation_bits))
        for part in ("ih", "hh"):
            made.add_module(
                part, _matrix(cell, part, bits, per_row=per_row, group=group, clip=clip)
            )
        return made

    def _of(self, matrices: dict[str, Linear]) -> recurrent.LSTMCell | recurrent.GRUCell:
        return self.LAYER(**matrices)


class BitSerialLSTMCell(_Cell):
    """`torch.nn.LSTMCell` with low-bit weights in `ih` and `hh`, both BitSerialLinear."""

    FLOAT = torch.nn.LSTMCell
    LAYER = recurrent.LSTMCell
    GATES = 4

    def forward(self, x: torch.Tensor, state: State = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the next (h, c). Raises ArgumentError for another shape, dtype or device."""
        h, c = self._run(x, state)
        return h, c


class BitSerialGRUCell(_Cell):
    """`torch.nn.GRUCell` with low-bit weights in `ih` and `hh`, both BitSerialLinear."""

    FLOAT = torch.nn.GRUCell
    LAYER = recurrent.GRUCell
    GATES = 3

    def forward(self, x: torch.Tensor, state: State = None) -> torch.Tensor:
        """Returns the next h. Raises ArgumentError for another shape, dtype or device."""
        return self._run(x, state)[0]


class _Stack(_Recurrent):
    """Base of recurrent layers over sequences; dropout, which only training uses, is not kept."""

    LAYER: ClassVar[type[recurrent.LSTM | recurrent.GRU]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        *,
        bidirectional: bool = False,
        weight_bits: int = 4,
        activation_bits: int = 8,
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.num_layers = as_count(num_layers, "num_layers", 1, recurrent.MAX_LAYERS)
        self.batch_first, self.bidirectional = bool(batch_first), bool(bidirectional)
        bits = {"weight_bits": weight_bits, "activation_bits": activation_bits}
        for name in self._names():
            columns = (
                hidden_size * (1 + self.bidirectional) if name.startswith("ih") else hidden_size
            )
            if name.startswith("ih_l0"):
                columns = input_size
            self.add_module(name, BitSerialLinear(columns, self.GATES * hidden_size, bias, **bits))

    @classmethod
    def from_layer(
        cls,
        layer: torch.nn.Module,
        weight_bits: int = 4,
        activation_bits: int = 8,
        per_row: bool = False,
        *,
        group: int = 0,
        clip: bool = True,
    ) -> Self:
        """Quantizes a layer, all matrices with the same bits.

        Raises ArgumentError for invalid bits, another module, projections (`proj_size`), NaN and
        infinite weights.
        """
        _check_type(layer, cls.FLOAT)
        if layer.proj_size:
            raise ArgumentError(
                f"proj_size: found {layer.proj_size}, expected 0; projections are not supported"
            )
        made = cls.__new__(cls)
        _Recurrent.__init__(made, layer.input_size, layer.hidden_size)
        made.num_layers, made.batch_first = layer.num_layers, layer.batch_first
        made.bidirectional = layer.bidirectional
        bits = check_bits((weight_bits, activation_bits))
        for name in made._names():
            made.add_module(
                name, _matrix(layer, name, bits, per_row=per_row, group=group, clip=clip)
            )
        return made

    def _names(self) -> list[str]:
        return recurrent.stack_names(self.num_layers, bidirectional=self.bidirectional)

    def _of(self, matrices: dict[str, Linear]) -> recurrent.LSTM | recurrent.GRU:
        return self.LAYER(
            matrices,
            layers=self.num_layers,
            bidirectional=self.bidirectional,
            batch_first=self.batch_first,
        )

    def extra_repr(self) -> str:
        """Returns the text in parentheses of the layer's `repr`."""
        flags = ("batch_first", "bidirectional")
        return ", ".join(
            [super().extra_repr(), f"num_layers={self.num_layers}"]
            + [f"{flag}=True" for flag in flags if getattr(self, flag)]
        )


class BitSerialLSTM(_Stack):
    """`torch.nn.LSTM` with low-bit weights in the BitSerialLinear `ih_l0`, `hh_l0` and so on."""

    FLOAT = torch.nn.LSTM
    LAYER = recurrent.LSTM
    GATES = 4

    def forward(
        self, x: torch.Tensor, state: State = None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Returns outputs and the last (h, c).

        Raises ArgumentError for another shape, dtype or device.
        """
        outputs, h, c = self._run(x, state)
        return outputs, (h, c)


class BitSerialGRU(_Stack):
    """`torch.nn.GRU` with low-bit weights in the BitSerialLinear `ih_l0`, `hh_l0` and so on."""

    FLOAT = torch.nn.GRU
    LAYER = recurrent.GRU
    GATES = 3

    def forward(self, x: torch.Tensor, state: State = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns outputs and the last h.

        Raises ArgumentError for another shape, dtype or device.
        """
        outputs, h = self._run(x, state)
        return outputs, h


def matrix_parts(layer: torch.nn.Module, name: str) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Returns weight and bias of a matrix (`ih`, `hh_l0` and so on) of a PyTorch layer or cell."""
    bias: torch.Tensor | None = getattr(layer, f"bias_{name}", None)
    return getattr(layer, f"weight_{name}"), bias


def _matrix(
    layer: torch.nn.Module,
    name: str,
    bits: tuple[int, int],
    *,
    per_row: bool,
    group: int,
    clip: bool,
) -> BitSerialLinear:
    weight, bias = matrix_parts(layer, name)
    weights = quantize_weights(floats(weight), bits[0], per_row=per_row, group=group, clip=clip)
    return BitSerialLinear.from_weights(weights, bits[1], bias)


def _check_type(layer: object, expected: type[torch.nn.Module]) -> None:
    if type(layer) is not expected:
        raise ArgumentError(
            f"layer: found {type(layer).__name__}, expected a torch.nn.{expected.__name__}"
        )


def _flat(result: Any) -> tuple[Any, ...]:  # noqa: ANN401 - nested arrays
    if not isinstance(result, tuple):
        return (result,)
    return tuple(array for part in result for array in _flat(part))
