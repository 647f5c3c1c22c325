"""Layers without weights of few bits: activations, normalisation, and what changes shapes only.

ReLU, LeakyReLU, Flatten and Identity give the same bits as PyTorch's. The others round their last
bit in their own way.
"""

import math
from abc import abstractmethod
from typing import Self

import numpy as np

from .._arrays import Array, as_array
from ..errors import ArgumentError
from .layers import MOST_ROWS, Layer, Options, Stored
from .matrix import as_vectors
from .weights import FloatArray


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
    """max(x, 0)."""

    KIND = "ReLU"

    def _values(self, x: FloatArray) -> FloatArray:
        return np.maximum(x, np.float32(0))


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
    """x where it is positive, slope * x elsewhere."""

    KIND = "LeakyReLU"
    OPTIONS = ("slope",)

    def __init__(self, slope: float = 0.01) -> None:
        self.slope = slope

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
        """The function's values, of the same shape. Raises ArgumentError unless x are floats."""
        floats = _floats(x)
        shifted = floats - floats.max(axis=-1, keepdims=True)
        total: FloatArray = np.exp(shifted).sum(axis=-1, keepdims=True)
        values: FloatArray = shifted - np.log(total) if self.log else np.exp(shifted) / total
        return values


class LayerNorm(Layer):
    """(x - mean) / sqrt(variance + eps) * weight + bias, over the last axis."""

    KIND = "LayerNorm"
    OPTIONS = ("size", "eps")

    def __init__(self, weight: Array, bias: Array, eps: float = 1e-5) -> None:
        self.weight, self.bias, self.eps = weight, bias, eps

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


def _floats(x: object) -> FloatArray:
    array = as_array(x, "x")
    if array.dtype.kind != "f":
        raise ArgumentError(f"x: found {array.dtype}, expected floats")
    return array.astype(np.float32, copy=False)
