"""`torch.nn.Linear` with low-bit weights."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch

from ..._arrays import Array, as_count
from ...errors import ArgumentError
from .._activations import check_activation_bits
from .._groups import check_group, groups_of
from .._matrix import BitSerialMatrix
from .._plan import check_bits
from .._weights import (
    MAX_COLUMNS,
    MAX_WEIGHT_BITS,
    WORD_BITS,
    QuantizedWeights,
    quantize_weights,
)
from ..device import DeviceMatrix

MAX_ROWS = 1 << 40

_Buffer = tuple[torch.Tensor, int, int]
"""A tensor, its address and its version counter."""


class BitSerialLinear(torch.nn.Module):
    """Computes y = W x + b with W of 1 to 8 bits; rounds each vector x to 8, 16 or 32 bits.

    Buffers: `planes` int64 (bits, out, words), `scale` (out,) and `bias` (out,) float32 (`bias` may
    be None), `sizes` int64 (weight bits, activation bits, in). With a `group` of 32, 64 or 128
    columns, `scale` is float16 (out, groups), and `sizes` ends with the group. W is zero until a
    state is loaded (with one bit, -1 times a scale of zero). Usually constructed with
    `from_linear`. Inputs and outputs are float32, on the CPU with PyTorch's number of threads, or
    on a GPU after `.to("cuda")`.

    Raises ArgumentError for invalid sizes or bits.
    """

    planes: torch.Tensor
    scale: torch.Tensor
    bias: torch.Tensor | None
    sizes: torch.Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        weight_bits: int = 4,
        activation_bits: int = 8,
        group: int = 0,
    ) -> None:
        super().__init__()
        self.in_features = as_count(in_features, "in_features", 1, MAX_COLUMNS)
        self.out_features = as_count(out_features, "out_features", 1, MAX_ROWS)
        self.weight_bits = as_count(weight_bits, "weight bits", 1, MAX_WEIGHT_BITS)
        self.activation_bits = check_activation_bits(activation_bits)
        self.group = check_group(group)
        shape = (self.weight_bits, self.out_features, -(-self.in_features // WORD_BITS))
        self.register_buffer("planes", torch.zeros(shape, dtype=torch.int64))
        self.register_buffer("scale", self._no_scale())
        self.register_buffer("bias", torch.zeros(self.out_features) if bias else None)
        self.register_buffer("sizes", self._sizes())
        self._matrix: BitSerialMatrix | None = None
        self._matrix_of: list[_Buffer] = []
        self._device_matrix: DeviceMatrix | None = None

    @classmethod
    def from_linear(
        cls,
        layer: torch.nn.Linear,
        weight_bits: int = 4,
        activation_bits: int = 8,
        per_row: bool = False,
        *,
        group: int = 0,
        clip: bool = True,
    ) -> Self:
        """Quantizes a `Linear`; `per_row`, `group` and `clip` are passed to `quantize_weights`.

        Raises ArgumentError for invalid bits, another module, NaN and infinite weights.
        """
        if type(layer) is not torch.nn.Linear:
            raise ArgumentError(f"layer: found {type(layer).__name__}, expected a torch.nn.Linear")
        check_bits((weight_bits, activation_bits))
        weights = quantize_weights(
            floats(layer.weight), weight_bits, per_row=per_row, group=group, clip=clip
        )
        return cls.from_weights(weights, activation_bits, layer.bias)

    @classmethod
    def from_weights(
        cls,
        weights: QuantizedWeights,
        activation_bits: int = 8,
        bias: torch.Tensor | None = None,
    ) -> Self:
        """Returns a layer with weights that are already quantized. Raises ArgumentError."""
        made = cls(
            weights.columns,
            weights.rows,
            bias is not None,
            weight_bits=weights.bits,
            activation_bits=activation_bits,
            group=weights.group,
        )
        made.planes = torch.from_numpy(np.array(weights.planes).view(np.int64))
        made.scale = torch.from_numpy(np.array(weights.scale))
        if bias is not None:
            made.bias = torch.from_numpy(np.array(floats(bias)))
        made.matrix()  # raises for invalid weights
        return made

    @property
    def weights(self) -> QuantizedWeights:
        """Planes and steps, sharing the buffers' memory on the CPU."""
        planes = self.planes.cpu().contiguous().numpy().view(np.uint64)
        return QuantizedWeights(planes, self.in_features, self.scale.cpu().numpy(), self.group)

    def matrix(self) -> BitSerialMatrix:
        """Returns the engine's matrix; builds it again after a buffer has changed.

        Changes to a buffer that bypass PyTorch's version counter (`.data`, NumPy) are not detected.
        Raises ArgumentError for an invalid state and for buffers that are not on the CPU.
        """
        buffers = self._buffer_versions()
        if self._matrix is None or not _same_buffers(buffers, self._matrix_of):
            if self.planes.device.type != "cpu":
                raise ArgumentError(
                    f"bit-serial layer: found it on {self.planes.device}, expected the CPU (.cpu())"
                )
            bias = None if self.bias is None else self.bias.numpy()
            self._matrix = BitSerialMatrix(self.weights, self.activation_bits, bias=bias)
            self._matrix_of = buffers
        threads: int = torch.get_num_threads()
        if self._matrix.threads != threads:
            self._matrix.threads = threads
        return self._matrix

    def with_activation_bits(self, activation_bits: int) -> Self:
        """Returns the same layer with other activation bits, sharing memory.

        Raises ArgumentError for invalid bits.
        """
        matrix = self.matrix().with_activation_bits(activation_bits)
        other = type(self).__new__(type(self))
        torch.nn.Module.__init__(other)
        other.in_features, other.out_features = self.in_features, self.out_features
        other.weight_bits, other.activation_bits = self.weight_bits, matrix.activation_bits
        other.group = self.group
        for name, tensor in self.named_buffers():
            other.register_buffer(name, tensor)
        if self.bias is None:
            other.register_buffer("bias", None)
        other.sizes = other._sizes()
        other._matrix, other._matrix_of, other._device_matrix = (
            matrix,
            other._buffer_versions(),
            None,
        )
        return other

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns products (..., out). Raises ArgumentError for another shape, dtype or device."""
        return without_gradient(self._product, x)

    def _product(self, x: torch.Tensor) -> torch.Tensor:
        if self.planes.device.type == "cuda":
            return self._product_on_gpu(x)
        return torch.from_numpy(self.matrix()(as_numpy(x)))

    def _product_on_gpu(self, x: torch.Tensor) -> torch.Tensor:
        """Queues the products on PyTorch's current stream of the layer's GPU.

        PyTorch owns all memory except the scratch buffers, which the first product of a batch size
        on a stream allocates. After it, a CUDA graph can capture products of that batch size.
        """
        device = self.planes.device
        if x.dtype != torch.float32 or x.device != device:
            raise ArgumentError(f"x: found {x.dtype} on {x.device}, expected float32 on {device}")
        buffers = self._buffer_versions()
        if self._device_matrix is None or not _same_buffers(buffers, self._matrix_of):
            bias = None if self.bias is None else self.bias.cpu().numpy()
            self._matrix_of = buffers
            self._device_matrix = DeviceMatrix(
                self.weights, self.activation_bits, bias=bias, device=str(device)
            )
        if x.shape[-1:] != (self.in_features,):
            raise ArgumentError(
                f"x: found shape {tuple(x.shape)}, expected (..., {self.in_features})"
            )
        flat = x.detach().reshape(-1, self.in_features).contiguous()
        y = torch.empty(len(flat), self.out_features, device=device)
        self._device_matrix.queue(flat, y, torch.cuda.current_stream(device).cuda_stream)
        return y.reshape(*x.shape[:-1], self.out_features)

    def _buffer_versions(self) -> "list[_Buffer]":
        """Returns the matrix's buffers with their addresses and version counters."""
        buffers = (self.planes, self.scale, self.bias)
        return [
            (tensor, tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version)
            for tensor in buffers
            if tensor is not None
        ]

    def _sizes(self) -> torch.Tensor:
        group = [self.group] if self.group else []
        return torch.tensor([self.weight_bits, self.activation_bits, self.in_features, *group])

    def _no_scale(self) -> torch.Tensor:
        if not self.group:
            return torch.zeros(self.out_features)
        groups = groups_of(self.in_features, self.group)
        return torch.zeros(self.out_features, groups, dtype=torch.float16)

    def extra_repr(self) -> str:
        """Returns the text in parentheses of the layer's `repr`."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, weight_bits={self.weight_bits}, "
            f"activation_bits={self.activation_bits}"
            + (f", group={self.group}" if self.group else "")
        )

    def _apply(self, *arguments: Any, **options: Any) -> Self:  # noqa: ANN401 - torch's own
        """Moves or converts the module. Raises ArgumentError for another dtype than float32.

        The float16 scale of groups keeps its dtype.
        """
        self._matrix = self._device_matrix = None
        scale, bias = self.scale, self.bias
        super()._apply(*arguments, **options)
        if self.group and self.scale.dtype != torch.float16:
            self.scale = scale.to(self.planes.device)
        floating = self.bias if self.group else self.scale
        if floating is not None and floating.dtype != torch.float32:
            found, self.scale, self.bias = floating.dtype, scale, bias
            raise ArgumentError(f"bit-serial layer: found {found}, expected to stay in float32")
        return self

    def _load_from_state_dict(
        self,
        state: dict[str, Any],
        prefix: str,
        *arguments: Any,  # noqa: ANN401
    ) -> None:
        """Loads a state. Raises ArgumentError for a state of other sizes or bits."""
        self._matrix = self._device_matrix = None
        for name, own in self.named_buffers(recurse=False):
            loaded = state.get(prefix + name)
            if isinstance(loaded, torch.Tensor):
                _check_same(prefix + name, loaded, own)
        super()._load_from_state_dict(state, prefix, *arguments)

    def __getstate__(self) -> dict[str, Any]:
        """Returns all attributes but the engine's matrix, which is built again when needed."""
        return {**self.__dict__, "_matrix": None, "_matrix_of": [], "_device_matrix": None}


def _same_buffers(found: list[_Buffer], before: list[_Buffer]) -> bool:
    return len(found) == len(before) and all(
        a[0] is b[0] and a[1:] == b[1:] for a, b in zip(found, before, strict=True)
    )


class _WithoutGradient(torch.autograd.Function):
    """Function whose backward pass raises an error."""

    @staticmethod
    def forward(
        _: Any,  # noqa: ANN401
        run: Callable[..., Any],
        *tensors: torch.Tensor,
    ) -> Any:  # noqa: ANN401 - a tensor or several
        return run(*tensors)

    @staticmethod
    def backward(*_: Any) -> None:  # noqa: ANN401
        raise ArgumentError(
            "a bit-serial layer has no gradient: train with nescio.quant.torch.training, or run "
            "the model under torch.no_grad()"
        )


def without_gradient(run: Callable[..., Any], *tensors: torch.Tensor) -> Any:  # noqa: ANN401
    """Calls `run(*tensors)`; a backward pass through its results raises ArgumentError."""
    tracked = torch.is_grad_enabled() and any(
        isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in tensors
    )
    return _WithoutGradient.apply(run, *tensors) if tracked else run(*tensors)


def as_numpy(x: object) -> Array:
    """Returns a tensor's memory as an array. Raises ArgumentError unless it is CPU float32."""
    if not isinstance(x, torch.Tensor):
        raise ArgumentError(f"x: found {type(x).__name__}, expected a tensor")
    if x.dtype != torch.float32 or x.device.type != "cpu":
        raise ArgumentError(
            f"x: found {x.dtype} on {x.device}, expected float32 on the CPU (.float().cpu())"
        )
    array: Array = x.detach().numpy()
    return array


def floats(tensor: torch.Tensor) -> Array:
    """Converts a tensor of any device and float dtype to a NumPy float32 array."""
    array: Array = tensor.detach().cpu().float().numpy()
    return array


def _check_same(name: str, loaded: torch.Tensor, own: torch.Tensor) -> None:
    found, expected = _dtype_and_shape(loaded), _dtype_and_shape(own)
    if name.rpartition(".")[2] == "sizes" and found == expected:
        found, expected = (str(tuple(sizes.tolist())) for sizes in (loaded, own))
    if found != expected:
        raise ArgumentError(
            f"{name}: found {found}, expected {expected}; load the state of a layer of the same "
            "size and bits"
        )


def _dtype_and_shape(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype} of shape {tuple(tensor.shape)}"
