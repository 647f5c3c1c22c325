"""Matrices that multiply vectors: of few bits, by the engine, and of floats, by NumPy.

    matrix = BitSerialMatrix(quantize_weights(w, bits=4), activation_bits=8)
    y = matrix(x)                                       # (n,) or (batch, n) float32

The engine rounds each vector x to k-bit integers with a step of its own, a / (2^(k-1) - 1) for
a = max |x|, multiplies the integers exactly, and scales once. The result does not depend on the
processor, on threads, or on what else is in the batch.
"""

from copy import copy
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from .._arrays import Array, as_array, as_threads
from ..errors import ArgumentError
from ._activations import as_vectors, check_activation_bits
from ._weights import FloatArray, QuantizedWeights, as_weights
from .device import DeviceMatrix


class Matrix(Protocol):
    """What layers multiply with."""

    @property
    def rows(self) -> int:
        """Outputs."""

    @property
    def columns(self) -> int:
        """Inputs."""

    def __call__(self, x: object, /) -> FloatArray:
        """Products of vectors (..., columns), float32 (..., rows)."""


class BitSerialMatrix:
    """Weights of few bits, ready to multiply vectors whose elements are kept at 8, 16 or 32 bits.

    `bias` is added to the products. `device` is "cpu", which "auto" is too, or a GPU ("cuda",
    "cuda:1"; "emulated" for tests): arrays that lie there are then taken and given there, see
    `nescio.quant.device`. `threads` share a product of the processor, 0 is one for every processor.
    May be used from several threads.

    Raises ArgumentError for other activation bits, for a bias that is not one finite float for each
    row, and for a device of no such name; ResourceError for one that is not there.
    """

    def __init__(
        self,
        weights: QuantizedWeights,
        activation_bits: int = 8,
        *,
        bias: object = None,
        threads: int = 0,
        device: str = "auto",
    ) -> None:
        if not isinstance(weights, QuantizedWeights):
            raise ArgumentError(
                f"weights: found {type(weights).__name__}, expected QuantizedWeights "
                "(quantize_weights or from_integers make them)"
            )
        self.weights = weights
        self.activation_bits = check_activation_bits(activation_bits)
        self.bias = None if bias is None else _as_bias(bias, weights.rows)
        self.threads = threads
        self.device = "cpu" if device == "auto" else device
        self._placed = None if self.device == "cpu" else self._on_device()
        self._scale = np.ascontiguousarray(weights.scale)
        if self._placed is None:
            self._engine = _core.BitMatrix(np.ascontiguousarray(weights.planes), weights.columns)

    def __copy__(self) -> "BitSerialMatrix":
        """The same matrix in the same memory."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __getstate__(self) -> dict[str, object]:
        """What it was made of: the engine's own memory is made again."""
        return {
            "weights": self.weights,
            "activation_bits": self.activation_bits,
            "bias": self.bias,
            "threads": self.threads,
            "device": self.device,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The matrix of a copy or a pickle. Raises what the constructor raises."""
        self.__init__(**state)  # type: ignore[misc]

    def _on_device(self) -> DeviceMatrix:
        return DeviceMatrix(self.weights, self.activation_bits, bias=self.bias, device=self.device)

    @property
    def rows(self) -> int:
        """Outputs."""
        return self.weights.rows

    @property
    def columns(self) -> int:
        """Inputs."""
        return self.weights.columns

    def with_activation_bits(self, activation_bits: int) -> "BitSerialMatrix":
        """The same matrix for activations of other bits, on the processor in the same memory.

        Raises ArgumentError.
        """
        other = copy(self)
        other.activation_bits = check_activation_bits(activation_bits)
        if self._placed is not None:
            other._placed = other._on_device()
        return other

    @property
    def packed_bytes(self) -> int:
        """Bytes that a product reads."""
        return self._engine.packed_bytes if self._placed is None else self._placed.packed_bytes

    @property
    def kernel(self) -> str:
        """The engine's kernel for one vector."""
        if self._placed is not None:
            return self._placed.kernel(1)
        return self._engine.kernel(self.activation_bits, 1)

    @property
    def threads(self) -> int:
        """Threads that share a product; 0 is one for every processor."""
        return self._threads

    @threads.setter
    def threads(self, threads: int) -> None:
        self._threads = as_threads(threads)
        self._pool = _pool(self._threads)

    def __call__(self, x: object, /) -> FloatArray:
        """Products with float vectors (..., columns), plus the bias: float32 (..., rows).

        Raises ArgumentError for another shape or dtype, NaN and infinity.
        """
        if self._placed is not None:
            placed: FloatArray = self._placed(x)
            return placed
        vectors = as_vectors(x, self.columns)
        flat = vectors.reshape(-1, self.columns)
        if not len(flat):
            return np.zeros((*vectors.shape[:-1], self.rows), np.float32)
        y = self._engine.apply(flat, self.activation_bits, self._scale, self.bias, self._pool)
        return y.reshape(*vectors.shape[:-1], self.rows)

    def multiply(self, x: object, /) -> npt.NDArray[np.int64]:
        """Exact products with integer vectors (..., columns): int64 (..., rows), not scaled.

        Raises ArgumentError for what are no integers of `activation_bits` bits.
        """
        array = as_array(x, "x")
        if array.dtype.kind not in "iu" or array.shape[-1:] != (self.columns,):
            raise ArgumentError(
                f"x: found {array.dtype} of shape {array.shape}, expected integers (..., "
                f"{self.columns})"
            )
        if array.size and not -(1 << 31) <= int(array.min()) <= int(array.max()) < 1 << 31:
            raise ArgumentError(f"x: found integers of more than {self.activation_bits} bits")
        flat = np.ascontiguousarray(array, np.int32).reshape(-1, self.columns)
        if not len(flat):
            return np.zeros((*array.shape[:-1], self.rows), np.int64)
        if self._placed is not None:
            return self._placed.multiply(flat).reshape(*array.shape[:-1], self.rows)
        y = self._engine.multiply(flat, self.activation_bits, self._pool)
        return y.reshape(*array.shape[:-1], self.rows)


class FloatMatrix:
    """Weights of float32 (rows, columns), multiplied by NumPy: for layers that are not quantised.

    Raises ArgumentError for weights or a bias that are no finite floats.
    """

    def __init__(self, weight: object, bias: object = None) -> None:
        self.weight = as_weights(weight)
        self.bias = None if bias is None else _as_bias(bias, self.rows)

    @property
    def rows(self) -> int:
        """Outputs."""
        return int(self.weight.shape[0])

    @property
    def columns(self) -> int:
        """Inputs."""
        return int(self.weight.shape[1])

    def __call__(self, x: object, /) -> FloatArray:
        """Products with float vectors (..., columns), plus the bias: float32 (..., rows)."""
        y: FloatArray = as_vectors(x, self.columns) @ self.weight.T
        return y if self.bias is None else y + self.bias


def _as_bias(bias: object, rows: int) -> FloatArray:
    array: Array = as_array(bias, "bias")
    if array.dtype.kind != "f" or array.shape != (rows,):
        raise ArgumentError(
            f"bias: found {array.dtype} of shape {array.shape}, expected floats of shape ({rows},)"
        )
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(narrow).all():
        at = int(np.isfinite(narrow).argmin())
        raise ArgumentError(f"bias: found {array[at]} for row {at}, expected a finite number")
    return narrow


@lru_cache(maxsize=8)
def _pool(threads: int) -> _core.ThreadPool:
    """One pool for all matrices with as many threads."""
    return _core.ThreadPool(threads)
