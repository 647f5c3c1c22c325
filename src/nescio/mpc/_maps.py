"""Linear maps with integer weights, exact modulo 2^32: matrix products and convolutions."""

import itertools
import math
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
_CACHED = 1 << 17  # numbers
MAX_WEIGHT = (1 << 15) - 1


class Map(Protocol):
    """A linear map of arrays of shape `inputs` to arrays of shape `outputs`."""

    @property
    def weights(self) -> Array:
        """The weights, integers."""

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
    """A matrix product: `weights` (outputs, inputs) are integers from -32767 to 32767.

    An input of the shape `inputs` is flattened first; without it, an input has one dimension.
    Raises ArgumentError for weights out of range, and for shapes that do not fit.
    """

    weights: Array
    inputs: Shape = ()
    _matrix: Floats = field(init=False, repr=False)
    _largest: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = _checked(self.weights, 2)
        inputs = weights.shape[1:] if self.inputs == () else as_shape(self.inputs, "inputs")
        if np.prod(inputs) != weights.shape[1]:
            raise ArgumentError(f"inputs: found {inputs}, expected {weights.shape[1]} numbers")
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "_matrix", weights.T.astype(np.float64))
        object.__setattr__(self, "_largest", _largest(weights))

    @property
    def outputs(self) -> Shape:
        """The shape of an output."""
        return (len(self.weights),)

    def __call__(self, values: Ring) -> Ring:
        """Maps a batch of inputs (n, *inputs), uint32, to (n, outputs), modulo 2^32."""
        flat = values.reshape(len(values), self.weights.shape[1])
        return _exactly(lambda part: part @ self._matrix, flat, self._largest)

    def floats(self, values: Floats, weights: Floats) -> Floats:
        """Multiplies floats (n, *inputs) by floats of the weights' shape, in float64."""
        return values.reshape(len(values), -1) @ weights.T


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution of `inputs` (channels, height, width), with zeros around them.

    `weights` (outputs, channels / groups, height, width) are integers from -32767 to 32767.
    `stride`, `padding` and `dilation` are pairs for height and width. Raises ArgumentError for
    weights out of range, and for shapes that do not fit.
    """

    weights: Array
    inputs: Shape
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    _matrices: Floats = field(init=False, repr=False)
    _largest: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = _checked(self.weights, 4)
        object.__setattr__(self, "inputs", as_shape(self.inputs, "inputs"))
        for name, low in (("stride", 1), ("padding", 0), ("dilation", 1)):
            object.__setattr__(self, name, _as_pair(getattr(self, name), name, low))
        groups = as_count(self.groups, "groups", 1, len(weights))
        object.__setattr__(self, "groups", groups)
        if (
            len(self.inputs) != 3
            or len(weights) % groups
            or weights.shape[1] * groups != self.inputs[0]
        ):
            raise ArgumentError(
                f"inputs: found {shown(self.inputs)}, expected ({weights.shape[1] * groups}, "
                f"height, width), for weights of shape {weights.shape} in {groups} groups"
            )
        object.__setattr__(self, "weights", weights)
        if min(self.outputs) < 1:
            raise ArgumentError(
                f"inputs: found {shown(self.inputs)}, which is smaller than the kernel of "
                f"{weights.shape[2:]}"
            )
        object.__setattr__(self, "_matrices", _matrices(weights, groups).astype(np.float64))
        object.__setattr__(self, "_largest", _largest(weights))

    @property
    def outputs(self) -> Shape:
        """The shape of an output: channels, height, width."""
        kernel = self.weights.shape[2:]
        found = places(self.inputs, kernel, self.stride, self.padding, self.dilation)
        return (len(self.weights), *found)

    def __call__(self, values: Ring) -> Ring:
        """Convolves a batch of inputs (n, *inputs), uint32, modulo 2^32."""
        found = np.empty((len(values), *self.outputs), np.uint32)
        patch = self.inputs[0] * math.prod((*self.weights.shape[2:], *self.outputs[1:]))
        step = max(1, _CACHED // patch)  # inputs whose patches stay in the cache
        for first in range(0, len(values), step):
            part = slice(first, first + step)
            found[part] = _exactly(self._product, values[part], self._largest)
        return found

    def _product(self, values: Floats) -> Floats:
        return self._convolved(self._patches(values), self._matrices)

    def floats(self, values: Floats, weights: Floats) -> Floats:
        """Convolves floats (n, *inputs) with floats of the weights' shape, in float64."""
        return self._convolved(self._patches(values), _matrices(weights, self.groups))

    def _convolved(self, patches: Floats, matrices: Floats) -> Floats:
        """Multiplies the inputs under the kernel by the matrix of each group."""
        count, (_, height, width) = len(patches), self.outputs
        split = patches.reshape(count, self.groups, matrices.shape[2], height * width)
        found: Floats = (matrices @ split).reshape(count, len(self.weights), height, width)
        return found

    def _patches(self, values: Floats) -> Floats:
        """Returns the inputs under the kernel: (n, channels, kernel, kernel, height, width)."""
        (top, side), (_, height, width) = self.padding, self.outputs
        count, channels, rows, columns = values.shape
        padded = np.zeros((count, channels, rows + 2 * top, columns + 2 * side))
        padded[:, :, top : top + rows, side : side + columns] = values
        (down, right), (below, beside) = self.stride, self.dilation
        kernel = self.weights.shape[2:]
        found = np.empty((count, channels, *kernel, height, width))
        for row, column in itertools.product(*map(range, kernel)):
            lines = padded[:, :, row * below :: down, column * beside :: right]
            found[:, :, row, column] = lines[:, :, :height, :width]
        return found


def as_shape(value: object, what: str) -> Shape:
    """Converts a shape to a tuple of integers. Raises ArgumentError for anything else."""
    if not isinstance(value, tuple | list):
        raise ArgumentError(
            f"{what}: found {shown(value)}, expected a tuple of integers, such as (3, 32, 32)"
        )
    return tuple(as_count(length, what, 1, 1 << _RING_BITS) for length in value)


def check_ring(values: object, what: str, shape: tuple[int | str, ...]) -> None:
    """Raises ArgumentError unless values are an array of uint32; a text allows any length."""
    found = type(values).__name__
    if isinstance(values, np.ndarray):
        found = f"{values.dtype} of shape {values.shape}"
        same = len(values.shape) == len(shape) and all(
            isinstance(expected, str) or length == expected
            for length, expected in zip(values.shape, shape, strict=True)
        )
        if same and values.dtype == np.uint32:
            return
    expected = ", ".join(map(str, shape)) + "," * (len(shape) == 1)
    raise ArgumentError(
        f"{what}: found {found}, expected uint32 of shape ({expected}); convert integers by "
        ".astype(np.uint32)"
    )


def places(
    inputs: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape
) -> tuple[int, ...]:
    """Returns the height and the width of the outputs of a convolution; below 1: none."""
    sizes = zip(inputs[1:], kernel, stride, padding, dilation, strict=True)
    return tuple(
        (size + 2 * around - apart * (taps - 1) - 1) // step + 1
        for size, taps, step, around, apart in sizes
    )


def _as_pair(value: object, what: str, low: int) -> tuple[int, int]:
    """Converts numbers for height and width. Raises ArgumentError for anything else."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ArgumentError(
            f"{what}: found {shown(value)}, expected a pair for height and width, such as (1, 1)"
        )
    height, width = (as_count(number, what, low, 1 << 16) for number in value)
    return height, width


def _matrices(weights: Array, groups: int) -> Array:
    """Returns the matrix of each group, (groups, outputs, inputs)."""
    return weights.reshape(groups, len(weights) // groups, -1)


def _largest(weights: Array) -> int:
    """Returns the largest sum of absolute weights of an output."""
    return int(np.abs(weights).reshape(len(weights), -1).sum(1).max())


def _checked(weights: Any, dimensions: int) -> Array:  # noqa: ANN401 - anything a caller has
    array = np.asarray(weights)
    if array.ndim != dimensions or array.dtype.kind not in "iu" or not array.size:
        raise ArgumentError(
            f"weights: found {array.dtype} of shape {array.shape}, expected integers of "
            f"{dimensions} dimensions"
        )
    largest = max(int(array.max()), -int(array.min()))
    if largest > MAX_WEIGHT:
        raise ArgumentError(f"weights: found {largest}, expected at most {MAX_WEIGHT}")
    return array.astype(np.int64)


def _exactly(product: Callable[[Floats], Floats], values: Ring, largest: int) -> Ring:
    """Computes a product of numbers below 2^32 with integers, exactly, modulo 2^32.

    Products of halves of the numbers are exact in float64 where those of the numbers are not.
    """
    if largest << _RING_BITS <= _EXACT:
        return _as_ring(product(values.astype(np.float64)))
    low = product((values & np.uint32(0xFFFF)).astype(np.float64))
    high = product((values >> np.uint32(16)).astype(np.float64))
    return _as_ring(low) + (_as_ring(high) << np.uint32(16))


def _as_ring(values: Floats) -> Ring:
    return values.astype(np.int64).astype(np.uint32)
