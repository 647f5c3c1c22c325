"""Layers without weights of few bits: activations, normalisation, and what changes shapes only.

ReLU, LeakyReLU, Flatten and Identity give the same bits as PyTorch's. The others round their last
bit in their own way.
"""

import math
from abc import abstractmethod
from typing import Self

import numpy as np

from .._arrays import Array, as_array, shown
from ..errors import ArgumentError
from ._activations import as_vectors
from ._layers import MOST_ROWS, Layer, Options, Stored
from ._weights import FloatArray, as_float32


class _Plain(Layer):
    """A function of an array of floats, without options."""

    @classmethod
    def restore(cls, stored: Stored) -> Self:  # noqa: ARG003 - there is nothing to read
        """The layer of a file."""
        return cls()

    def __call__(self, x: object, /) -> FloatArray:
        """The function's values, of the same shape. Raises ArgumentError unless x are floats."""
        return self._values(_floats(x))

    @abstractmethod
    def _values(self, x: FloatArray) -> FloatArray: ...


class ReLU(_Plain):
    """max(x, 0), where -0 stays -0 and NaN NaN."""

    KIND = "ReLU"

    def _values(self, x: FloatArray) -> FloatArray:
        values: FloatArray = np.where(x < 0, np.float32(0), x)
        return values


class Tanh(_Plain):
    """The hyperbolic tangent."""

    KIND = "Tanh"

    def _values(self, x: FloatArray) -> FloatArray:
        return np.tanh(x)


class Sigmoid(_Plain):
    """1 / (1 + exp(-x))."""

    KIND = "Sigmoid"

    def _values(self, x: FloatArray) -> FloatArray:
        return sigmoid(x)


class Identity(_Plain):
    """What it is given: dropout, where nothing is trained."""

    KIND = "Identity"

    def _values(self, x: FloatArray) -> FloatArray:
        return x


class LeakyReLU(Layer):
    """x where it is positive, slope * x elsewhere. Raises ArgumentError unless it is finite."""

    KIND = "LeakyReLU"
    OPTIONS = ("slope",)

    def __init__(self, slope: float = 0.01) -> None:
        self.slope = _number(slope, "slope")

    def options(self) -> Options:
        """The slope."""
        return {"slope": self.slope}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """The layer of a file."""
        return cls(stored.number("slope"))

    def __call__(self, x: object, /) -> FloatArray:
        """The function's values, of the same shape. Raises ArgumentError unless x are floats."""
        floats = _floats(x)
        values: FloatArray = np.where(floats > 0, floats, floats * np.float32(self.slope))
        return values


class Softmax(Layer):
    """exp(x) / sum(exp(x)) over the last axis, or the logarithm of that."""

    KIND = "Softmax"
    OPTIONS = ("log",)

    def __init__(self, *, log: bool = False) -> None:
        self.log = log

    def options(self) -> Options:
        """Whether it is the logarithm."""
        return {"log": self.log}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """The layer of a file."""
        return cls(log=stored.flag("log"))

    def __call__(self, x: object, /) -> FloatArray:
        """The function's values, of the same shape.

        Raises ArgumentError unless x are floats, at least one a vector.
        """
        floats = _floats(x)
        if floats.shape[-1:] == (0,):
            raise ArgumentError(f"x: found shape {floats.shape}, expected a last axis of 1 or more")
        shifted = floats - floats.max(axis=-1, keepdims=True)
        total: FloatArray = np.exp(shifted).sum(axis=-1, keepdims=True)
        values: FloatArray = shifted - np.log(total) if self.log else np.exp(shifted) / total
        return values


class LayerNorm(Layer):
    """(x - mean) / sqrt(variance + eps) * weight + bias, over the last axis, in float32.

    Raises ArgumentError unless weight and bias are floats of one shape (size,) and eps is finite
    and not negative.
    """

    KIND = "LayerNorm"
    OPTIONS = ("size", "eps")

    def __init__(self, weight: object, bias: object, eps: float = 1e-5) -> None:
        self.weight, self.bias = _floats(weight, "weight"), _floats(bias, "bias")
        if self.weight.ndim != 1 or not self.weight.size or self.bias.shape != self.weight.shape:
            raise ArgumentError(
                f"weight and bias: found shapes {self.weight.shape} and {self.bias.shape}, "
                "expected (size,) twice"
            )
        self.eps = _number(eps, "eps")
        if self.eps < 0:
            raise ArgumentError(f"eps: found {self.eps}, expected no less than 0")

    def options(self) -> Options:
        """The axis' length, and eps."""
        return {"size": len(self.weight), "eps": self.eps}

    def arrays(self) -> dict[str, Array]:
        """Weight and bias."""
        return {"weight": self.weight, "bias": self.bias}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """The layer of a file."""
        shape = (stored.count("size", 1, MOST_ROWS),)
        weight, bias = (stored.array(name, "float32", shape) for name in ("weight", "bias"))
        return cls(weight, bias, stored.number("eps"))

    def __call__(self, x: object, /) -> FloatArray:
        """The normalised floats, of the same shape. Raises ArgumentError for another last axis."""
        vectors = as_vectors(x, len(self.weight))
        centred = vectors - vectors.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        values: FloatArray = centred / np.sqrt(variance + np.float32(self.eps))
        return values * self.weight + self.bias


class Flatten(Layer):
    """All axes but the first made one."""

    KIND = "Flatten"

    @classmethod
    def restore(cls, stored: Stored) -> Self:  # noqa: ARG003
        """The layer of a file."""
        return cls()

    def __call__(self, x: object, /) -> Array:
        """The array as (batch, values). Raises ArgumentError without axes."""
        array = as_array(x, "x")
        if not array.ndim:
            raise ArgumentError("x: found a number, expected an array of shape (batch, ...)")
        return array.reshape(len(array), math.prod(array.shape[1:]))


def sigmoid(x: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), written so that nothing overflows."""
    half = np.float32(0.5)
    values: FloatArray = np.tanh(x * half) * half + half
    return values


def _floats(x: object, what: str = "x") -> FloatArray:
    array = as_array(x, what)
    if array.dtype.kind != "f":
        raise ArgumentError(f"{what}: found {array.dtype}, expected floats")
    return as_float32(array)


def _number(value: object, what: str) -> float:
    """The value as a float. Raises ArgumentError unless it is a finite number."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        number = float(value) if real else math.nan  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ArgumentError(f"{what}: found {shown(value)}, expected a finite number")
    return number
