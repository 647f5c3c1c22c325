"""`torch.nn.Linear` with weights of few bits."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch

from ..._arrays import Array, as_count
from ...errors import ArgumentError, MismatchError
from .._activations import check_activation_bits
from .._matrix import BitSerialMatrix
from .._plan import check_bits
from .._weights import (
    MOST_COLUMNS,
    MOST_WEIGHT_BITS,
    WORD_BITS,
    QuantizedWeights,
    quantize_weights,
)
from ..device import DeviceMatrix

MOST_ROWS = 1 << 40

_Buffer = tuple[torch.Tensor, int, int]
"""A tensor, its address and its version."""


class BitSerialLinear(torch.nn.Module):
    """y = W x + b with W of 1 to 8 bits; x is rounded to 8, 16 or 32 bits, vector by vector.

    Buffers: `planes` int64 (bits, out, words), `scale` (out,) and `bias` float32 (None without),
    `sizes` int64 (weight bits, activation bits, in). W is zero until a state is loaded (with one
    bit, -1 times a scale of zero); `from_linear` is the usual way to make one. Floats are float32,
    on the processor, where PyTorch's number of threads is used, or on a GPU after `.to("cuda")`.

    Raises ArgumentError for sizes or bits that cannot be.
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
    ) -> None:
        super().__init__()
        self.in_features = as_count(in_features, "in_features", 1, MOST_COLUMNS)
        self.out_features = as_count(out_features, "out_features", 1, MOST_ROWS)
        self.weight_bits = as_count(weight_bits, "weight bits", 1, MOST_WEIGHT_BITS)
        self.activation_bits = check_activation_bits(activation_bits)
        shape = (self.weight_bits, self.out_features, -(-self.in_features // WORD_BITS))
        self.register_buffer("planes", torch.zeros(shape, dtype=torch.int64))
        self.register_buffer("scale", torch.zeros(self.out_features))
        self.register_buffer("bias", torch.zeros(self.out_features) if bias else None)
        self.register_buffer("sizes", self._sizes())
        self._matrix: BitSerialMatrix | None = None
        self._matrix_of: list[_Buffer] = []
        self._placed: DeviceMatrix | None = None

    @classmethod
    def from_linear(
        cls,
        layer: torch.nn.Linear,
        weight_bits: int = 4,
        activation_bits: int = 8,
        per_row: bool = False,
        *,
        clip: bool = True,
    ) -> Self:
        """A `Linear` quantised: `per_row` and `clip` are those of `quantize_weights`.

        Raises ArgumentError for bits that cannot be, another module, NaN and infinite weights.
        """
        if type(layer) is not torch.nn.Linear:
            raise ArgumentError(f"layer: found {type(layer).__name__}, expected a torch.nn.Linear")
        check_bits((weight_bits, activation_bits))
        weights = quantize_weights(floats(layer.weight), weight_bits, per_row=per_row, clip=clip)
        return cls.from_weights(weights, activation_bits, layer.bias)

    @classmethod
    def from_weights(
        cls,
        weights: QuantizedWeights,
        activation_bits: int = 8,
        bias: torch.Tensor | None = None,
    ) -> Self:
        """A layer of weights that are quantised already. Raises ArgumentError."""
        made = cls(
            weights.columns,
            weights.rows,
            bias is not None,
            weight_bits=weights.bits,
            activation_bits=activation_bits,
        )
        made.planes = torch.from_numpy(np.array(weights.planes).view(np.int64))
        made.scale = torch.from_numpy(np.array(weights.scale))
        if bias is not None:
            made.bias = torch.from_numpy(np.array(floats(bias)))
        made.matrix()  # which refuses what cannot be multiplied with
        return made

    @property
    def weights(self) -> QuantizedWeights:
        """Planes and steps, in the buffers' own memory."""
        planes = self.planes.cpu().contiguous().numpy().view(np.uint64)
        return QuantizedWeights(planes, self.in_features, self.scale.cpu().numpy())

    def matrix(self) -> BitSerialMatrix:
        """The engine's matrix, made anew when a buffer was changed or replaced.

        What is written to a buffer past PyTorch (`.data`, NumPy) is not seen. Raises ArgumentError
        for a state that is none, or not on the CPU.
        """
        buffers = self._buffers_now()
        if self._matrix is None or not _same_buffers(buffers, self._matrix_of):
            if self.planes.device.type != "cpu":
                raise ArgumentError(
                    f"a bit-serial layer is on {self.planes.device}: expected the processor "
                    "(.cpu())"
                )
            bias = None if self.bias is None else self.bias.numpy()
            self._matrix = BitSerialMatrix(self.weights, self.activation_bits, bias=bias)
            self._matrix_of = buffers
        threads: int = torch.get_num_threads()
        if self._matrix.threads != threads:
            self._matrix.threads = threads
        return self._matrix

    def with_activation_bits(self, activation_bits: int) -> Self:
        """The same layer, in the same memory, for activations of other bits. ArgumentError."""
        matrix = self.matrix().with_activation_bits(activation_bits)
        other = type(self).__new__(type(self))
        torch.nn.Module.__init__(other)
        other.in_features, other.out_features = self.in_features, self.out_features
        other.weight_bits, other.activation_bits = self.weight_bits, matrix.activation_bits
        for name, tensor in self.named_buffers():
            other.register_buffer(name, tensor)
        if self.bias is None:
            other.register_buffer("bias", None)
        other.sizes = other._sizes()
        other._matrix, other._matrix_of, other._placed = matrix, other._buffers_now(), None
        return other

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The products, (..., out). Raises ArgumentError for another shape, dtype or device."""
        return without_gradient(self._product, x)

    def _product(self, x: torch.Tensor) -> torch.Tensor:
        if self.planes.device.type == "cuda":
            return self._product_on_gpu(x)
        return torch.from_numpy(self.matrix()(as_numpy(x)))

    def _product_on_gpu(self, x: torch.Tensor) -> torch.Tensor:
        """The products, queued on PyTorch's stream of the layer's GPU.

        All memory is PyTorch's but for a work area, which the first product of a batch size on a
        stream makes: graphs can record the later ones.
        """
        place = self.planes.device
        if x.dtype != torch.float32 or x.device != place:
            raise ArgumentError(f"x: found {x.dtype} on {x.device}, expected float32 on {place}")
        buffers = self._buffers_now()
        if self._placed is None or not _same_buffers(buffers, self._matrix_of):
            bias = None if self.bias is None else self.bias.cpu().numpy()
            self._matrix_of = buffers
            self._placed = DeviceMatrix(
                self.weights, self.activation_bits, bias=bias, device=str(place)
            )
        if x.shape[-1:] != (self.in_features,):
            raise ArgumentError(
                f"x: found shape {tuple(x.shape)}, expected (..., {self.in_features})"
            )
        flat = x.detach().reshape(-1, self.in_features).contiguous()
        y = torch.empty(len(flat), self.out_features, device=place)
        self._placed.queue(flat, y, torch.cuda.current_stream(place).cuda_stream)
        return y.reshape(*x.shape[:-1], self.out_features)

    def _buffers_now(self) -> "list[_Buffer]":
        """The buffers that a matrix is made of, where they lie and how often they were changed."""
        given = (self.planes, self.scale, self.bias)
        return [
            (tensor, tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version)
            for tensor in given
            if tensor is not None
        ]

    def _sizes(self) -> torch.Tensor:
        return torch.tensor([self.weight_bits, self.activation_bits, self.in_features])

    def extra_repr(self) -> str:
        """What stands in the parentheses when the layer is printed."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, weight_bits={self.weight_bits}, "
            f"activation_bits={self.activation_bits}"
        )

    def _apply(self, *arguments: Any, **options: Any) -> Self:  # noqa: ANN401 - torch's own
        """What moves and converts modules. Raises ArgumentError for another dtype than float32."""
        self._matrix = self._placed = None
        kept = self.scale, self.bias
        super()._apply(*arguments, **options)
        if self.scale.dtype != torch.float32:
            found, (self.scale, self.bias) = self.scale.dtype, kept
            raise ArgumentError(f"a bit-serial layer: found {found}, expected to stay in float32")
        return self

    def _load_from_state_dict(
        self,
        state: dict[str, Any],
        prefix: str,
        *arguments: Any,  # noqa: ANN401
    ) -> None:
        """Raises MismatchError for a state of other sizes or bits."""
        self._matrix = self._placed = None
        for name, own in self.named_buffers(recurse=False):
            given = state.get(prefix + name)
            if isinstance(given, torch.Tensor):
                _check_same(prefix + name, given, own)
        super()._load_from_state_dict(state, prefix, *arguments)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the engine's matrix, which is made again."""
        return {**self.__dict__, "_matrix": None, "_matrix_of": [], "_placed": None}


def _same_buffers(found: list[_Buffer], before: list[_Buffer]) -> bool:
    return len(found) == len(before) and all(
        a[0] is b[0] and a[1:] == b[1:] for a, b in zip(found, before, strict=True)
    )


class _Forward(torch.autograd.Function):
    """A function that has no gradient, and says so when it is asked for."""

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
            "a bit-serial layer has no gradient: train with nescio.quant.torch.training, or "
            "compute what comes before it without gradient (torch.no_grad())"
        )


def without_gradient(run: Callable[..., Any], *tensors: torch.Tensor) -> Any:  # noqa: ANN401
    """`run(*tensors)`, whose results refuse to be differentiated."""
    wanted = torch.is_grad_enabled() and any(
        isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in tensors
    )
    return _Forward.apply(run, *tensors) if wanted else run(*tensors)


def as_numpy(x: object) -> Array:
    """A tensor's memory. Raises ArgumentError unless it is float32 on the processor."""
    if not isinstance(x, torch.Tensor):
        raise ArgumentError(f"x: found {type(x).__name__}, expected a tensor")
    if x.dtype != torch.float32 or x.device.type != "cpu":
        raise ArgumentError(
            f"x: found {x.dtype} on {x.device}, expected float32 on the processor (.float().cpu())"
        )
    array: Array = x.detach().numpy()
    return array


def floats(tensor: torch.Tensor) -> Array:
    """A parameter as NumPy's float32, from any device and float dtype."""
    array: Array = tensor.detach().cpu().float().numpy()
    return array


def _check_same(name: str, given: torch.Tensor, own: torch.Tensor) -> None:
    found, expected = _named(given), _named(own)
    if name.rpartition(".")[2] == "sizes" and found == expected:
        found, expected = (str(tuple(sizes.tolist())) for sizes in (given, own))
    if found != expected:
        raise MismatchError(
            f"{name}: found {found}, expected {expected}: a state of a layer of another size, or "
            "of other bits",
            found=found,
            expected=expected,
        )


def _named(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype} of shape {tuple(tensor.shape)}"
