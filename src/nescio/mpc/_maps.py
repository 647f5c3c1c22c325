"""Linear maps with integer weights, exact modulo 2^32: matrix products and convolutions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._arrays import Array, as_count, shown
from ..errors import ArgumentError

Ring = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Shape = tuple[int, ...]

_RING_BITS = 32
_EXACT = 1 << 53  # integers up to this are exact in float64
MAX_WEIGHT = (1 << 15) - 1


class Map(Protocol):
    """A linear map of arrays of shape `inputs` to arrays of shape `outputs`."""

    @property
    def inputs(self) -> Shape:
        """The shape of an input, without the batch."""

    @property
    def outputs(self) -> Shape:
        """The shape of an output."""

    def __call__(self, values: Ring) -> Ring:
        """Maps a batch of inputs (n, *inputs) to (n, *outputs), modulo 2^32."""


@dataclass(frozen=True, eq=False)
class Dense:
    """A matrix product: `weights` (outputs, inputs) are integers of up to 16 bits."""

    weights: Array
    inputs: Shape = ()
    _matrix: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = _checked(self.weights, 2)
        if not self.inputs:
            object.__setattr__(self, "inputs", weights.shape[1:])
        if np.prod(self.inputs) != weights.shape[1]:
            raise ArgumentError(f"inputs: found {self.inputs}, expected {weights.shape[1]} numbers")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "_matrix", weights.T.astype(np.float64))

    @property
    def outputs(self) -> Shape:
        """The shape of an output."""
        return (len(self.weights),)

    def __call__(self, values: Ring) -> Ring:
        """Multiplies a batch of inputs, each flattened."""
        return _product(values.reshape(len(values), -1), self._matrix)

    def floats(self, values: Floats, weights: Floats) -> Floats:
        """The same with other values and weights."""
        return values.reshape(len(values), -1) @ weights.T


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution of `inputs` (channels, height, width), with zeros around them.

    `weights` (outputs, channels / groups, height, width) are integers of up to 16 bits. `stride`,
    `padding` and `dilation` are pairs for height and width.
    """

    weights: Array
    inputs: Shape
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    _matrices: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = _checked(self.weights, 4)
        for name, low in (("stride", 1), ("padding", 0), ("dilation", 1)):
            for number in getattr(self, name):
                as_count(number, name, low, 1 << 16)
        groups = as_count(self.groups, "groups", 1, len(weights))
        if (
            len(self.inputs) != 3
            or len(weights) % groups
            or weights.shape[1] * groups != self.inputs[0]
        ):
            raise ArgumentError(
                f"inputs: found {shown(self.inputs)}, expected height, width and "
                f"{weights.shape[1] * groups} channels in {groups} groups, for weights of shape "
                f"{weights.shape}"
            )
        object.__setattr__(self, "weights", weights)
        if min(self.outputs) < 1:
            raise ArgumentError(
                f"inputs: found {shown(self.inputs)}, which is smaller than the kernel of "
                f"{weights.shape[2:]}"
            )
        object.__setattr__(self, "_matrices", _matrices(weights, groups).astype(np.float64))

    @property
    def outputs(self) -> Shape:
        """The shape of an output: channels, height, width."""
        kernel = self.weights.shape[2:]
        found = places(self.inputs, kernel, self.stride, self.padding, self.dilation)
        return (len(self.weights), *found)

    def __call__(self, values: Ring) -> Ring:
        """Convolves a batch of inputs."""
        return self._convolved(values, self._matrices, _product)

    def floats(self, values: Floats, weights: Floats) -> Floats:
        """The same with other values and weights."""
        return self._convolved(values, _matrices(weights, self.groups), np.matmul)

    def _convolved(
        self, values: Array, matrices: Floats, product: Callable[[Array, Floats], Array]
    ) -> Array:
        count, (_, height, width) = len(values), self.outputs
        parts = np.split(self._patches(values), self.groups, axis=1)
        found = [
            product(part.reshape(count, -1, height * width).transpose(0, 2, 1), matrix)
            for part, matrix in zip(parts, matrices, strict=True)
        ]
        joined = np.concatenate(found, axis=2).transpose(0, 2, 1)
        return np.ascontiguousarray(joined).reshape(count, -1, height, width)

    def _patches(self, values: Array) -> Array:
        """Returns the inputs under the kernel: (n, channels, kernel, kernel, height, width)."""
        (top, side), (_, height, width) = self.padding, self.outputs
        padded = np.pad(values, ((0, 0), (0, 0), (top, top), (side, side)))
        kernel = self.weights.shape[2:]
        spans = [apart * (size - 1) + 1 for size, apart in zip(kernel, self.dilation, strict=True)]
        windows = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=(2, 3))
        (down, right), (below, beside) = self.stride, self.dilation
        chosen = windows[:, :, ::down, ::right, ::below, ::beside][:, :, :height, :width]
        return np.ascontiguousarray(chosen.transpose(0, 1, 4, 5, 2, 3))


def places(
    inputs: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape
) -> tuple[int, ...]:
    """Returns the height and the width of the outputs of a convolution; below 1: none."""
    sizes = zip(inputs[1:], kernel, stride, padding, dilation, strict=True)
    return tuple(
        (size + 2 * around - apart * (taps - 1) - 1) // step + 1
        for size, taps, step, around, apart in sizes
    )


def _matrices(weights: Array, groups: int) -> Array:
    """Returns the matrix of each group, (groups, inputs, outputs)."""
    return weights.reshape(groups, len(weights) // groups, -1).transpose(0, 2, 1)


def _checked(weights: Any, dimensions: int) -> Array:  # noqa: ANN401 - anything a caller has
    array = np.asarray(weights)
    if array.ndim != dimensions or array.dtype.kind not in "iu" or not array.size:
        raise ArgumentError(
            f"weights: found {array.dtype} of shape {array.shape}, expected integers of "
            f"{dimensions} dimensions"
        )
    largest = int(np.abs(array.astype(np.int64)).max())
    if largest > MAX_WEIGHT:
        raise ArgumentError(f"weights: found {largest}, expected at most {MAX_WEIGHT}")
    return array.astype(np.int64)


def _product(values: Ring, matrix: Floats) -> Ring:
    """Multiplies numbers below 2^32 by integers, exactly, modulo 2^32.

    Products of halves of the numbers are exact in float64 where those of the numbers are not.
    """
    bound = np.abs(matrix).sum(0).max() * (1 << _RING_BITS)
    if bound <= _EXACT:
        return _as_ring(values.astype(np.float64) @ matrix)
    low = (values & np.uint32(0xFFFF)).astype(np.float64) @ matrix
    high = (values >> np.uint32(16)).astype(np.float64) @ matrix
    return _as_ring(low) + (_as_ring(high) << np.uint32(16))


def _as_ring(values: Floats) -> Ring:
    return values.astype(np.int64).astype(np.uint32)
