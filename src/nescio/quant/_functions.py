"""Layers that are not quantized: activation functions, normalization and reshaping.

ReLU, LeakyReLU, Flatten and Identity return the same bits as PyTorch. The others may differ from
PyTorch in the last bit.
"""

import math
from abc import abstractmethod
from typing import Self

import numpy as np

from .._arrays import Array, as_array, shown
from ..errors import ArgumentError
from ._activations import as_vectors
from ._layers import MAX_ROWS, Layer, Options, Stored
from ._weights import FloatArray, as_float32


class _Plain(Layer):
    """Elementwise function without options."""

    @classmethod
    def restore(cls, stored: Stored) -> Self:  # noqa: ARG003 - nothing to read
        return cls()

    def __call__(self, x: object, /) -> FloatArray:
        """Returns values of the same shape. Raises ArgumentError unless x has a float dtype."""
        return self._values(_floats(x))

    @abstractmethod
    def _values(self, x: FloatArray) -> FloatArray: ...


class ReLU(_Plain):
    """Computes max(x, 0). Keeps -0 and NaN."""

    KIND = "ReLU"

    def _values(self, x: FloatArray) -> FloatArray:
        values: FloatArray = np.where(x < 0, np.float32(0), x)
        return values


class Tanh(_Plain):
    """Computes the hyperbolic tangent."""

    KIND = "Tanh"

    def _values(self, x: FloatArray) -> FloatArray:
        return np.tanh(x)


class Sigmoid(_Plain):
    """Computes 1 / (1 + exp(-x))."""

    KIND = "Sigmoid"

    def _values(self, x: FloatArray) -> FloatArray:
        return sigmoid(x)


class Identity(_Plain):
    """Returns its input. Also stands for dropout, which does nothing at inference."""

    KIND = "Identity"

    def _values(self, x: FloatArray) -> FloatArray:
        return x


class LeakyReLU(Layer):
    """Computes x where x > 0, slope * x elsewhere.

    Raises ArgumentError unless the slope is finite.
    """

    KIND = "LeakyReLU"
    OPTIONS = ("slope",)

    def __init__(self, slope: float = 0.01) -> None:
        self.slope = _number(slope, "slope")

    def options(self) -> Options:
        return {"slope": self.slope}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        return cls(stored.number("slope"))

    def __call__(self, x: object, /) -> FloatArray:
        """Returns values of the same shape. Raises ArgumentError unless x has a float dtype."""
        floats = _floats(x)
        values: FloatArray = np.where(floats > 0, floats, floats * np.float32(self.slope))
        return values


class Softmax(Layer):
    """Computes exp(x) / sum(exp(x)) over the last axis, or its logarithm."""

    KIND = "Softmax"
    OPTIONS = ("log",)

    def __init__(self, *, log: bool = False) -> None:
        self.log = log

    def options(self) -> Options:
        return {"log": self.log}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        return cls(log=stored.flag("log"))

    def __call__(self, x: object, /) -> FloatArray:
        """Returns values of the same shape.

        Raises ArgumentError unless x has a float dtype and a last axis that is not empty.
        """
        floats = _floats(x)
        if floats.shape[-1:] == (0,):
            raise ArgumentError(f"x: found shape {floats.shape}, expected a last axis of 1 or more")
        shifted = floats - floats.max(axis=-1, keepdims=True)
        total: FloatArray = np.exp(shifted).sum(axis=-1, keepdims=True)
        values: FloatArray = shifted - np.log(total) if self.log else np.exp(shifted) / total
        return values


class LayerNorm(Layer):
    """Computes (x - mean) / sqrt(variance + eps) * weight + bias over the last axis, in float32.

    Raises ArgumentError unless weight and bias are floats of the same shape (size,) and eps is
    finite and not negative.
    """

    KIND = "LayerNorm"
    OPTIONS = ("size", "eps")

    def __init__(self, weight: object, bias: object, eps: float = 1e-5) -> None:
        self.weight, self.bias = _floats(weight, "weight"), _floats(bias, "bias")
        if self.weight.ndim != 1 or not self.weight.size or self.bias.shape != self.weight.shape:
            raise ArgumentError(
                f"weight and bias: found shapes {self.weight.shape} and {self.bias.shape}, "
                "expected (size,) for both"
            )
        self.eps = _number(eps, "eps")
        if self.eps < 0:
            raise ArgumentError(f"eps: found {self.eps}, expected at least 0")

    def options(self) -> Options:
        return {"size": len(self.weight), "eps": self.eps}

    def arrays(self) -> dict[str, Array]:
        return {"weight": self.weight, "bias": self.bias}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        shape = (stored.count("size", 1, MAX_ROWS),)
        weight, bias = (stored.array(name, "float32", shape) for name in ("weight", "bias"))
        return cls(weight, bias, stored.number("eps"))

    def __call__(self, x: object, /) -> FloatArray:
        """Normalizes floats (..., size). Raises ArgumentError for another last axis."""
        vectors = as_vectors(x, len(self.weight))
        centered = vectors - vectors.mean(axis=-1, keepdims=True)
        variance = np.square(centered).mean(axis=-1, keepdims=True)
        values: FloatArray = centered / np.sqrt(variance + np.float32(self.eps))
        return values * self.weight + self.bias


class Flatten(Layer):
    """Joins all axes but the first."""

    KIND = "Flatten"

    @classmethod
    def restore(cls, stored: Stored) -> Self:  # noqa: ARG003
        return cls()

    def __call__(self, x: object, /) -> Array:
        """Reshapes an array to (batch, values). Raises ArgumentError for a scalar."""
        array = as_array(x, "x")
        if not array.ndim:
            raise ArgumentError("x: found a scalar, expected an array of shape (batch, ...)")
        return array.reshape(len(array), math.prod(array.shape[1:]))


def sigmoid(x: FloatArray) -> FloatArray:
    """Computes 1 / (1 + exp(-x)) without overflow."""
    half = np.float32(0.5)
    values: FloatArray = np.tanh(x * half) * half + half
    return values


def _floats(x: object, what: str = "x") -> FloatArray:
    array = as_array(x, what)
    if array.dtype.kind != "f":
        raise ArgumentError(f"{what}: found {array.dtype}, expected floats")
    return as_float32(array)


def _number(value: object, what: str) -> float:
    """Converts the value to a float. Raises ArgumentError unless it is a finite number."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        number = float(value) if real else math.nan  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ArgumentError(f"{what}: found {shown(value)}, expected a finite number")
    return number
