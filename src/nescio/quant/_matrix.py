"""Matrix-vector products: low-bit weights in the engine, float weights in NumPy.

    matrix = BitSerialMatrix(quantize_weights(w, bits=4), activation_bits=8)
    y = matrix(x)                                       # (n,) or (batch, n) float32

The engine rounds each vector x to k-bit integers with its own step, a / (2^(k-1) - 1) for
a = max |x|, multiplies the integers exactly, and scales once. The result does not depend on the
processor, the number of threads, or the other vectors of the batch.
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
from ._weights import FloatArray, PlaneArray, QuantizedWeights, ScaleArray, as_weights
from .device import DeviceMatrix


class Matrix(Protocol):
    """Matrix that a layer multiplies with."""

    @property
    def rows(self) -> int:
        """Number of rows: outputs."""

    @property
    def columns(self) -> int:
        """Number of columns: inputs."""

    def __call__(self, x: object, /) -> FloatArray:
        """Multiplies with vectors (..., columns); returns float32 (..., rows)."""


class BitSerialMatrix:
    """Low-bit matrix that multiplies float vectors, rounded to 8, 16 or 32 bits.

    `bias` is added to the products. `device` is "cpu" ("auto" means the same) or a GPU ("cuda",
    "cuda:1"; "emulated" for tests). With a GPU, arrays in its memory are multiplied there and the
    results stay there, see `nescio.quant.device`. `threads` is the number of threads per product on
    the CPU; 0 means one per processor. Thread-safe.

    Raises ArgumentError for invalid activation bits, a bias that is not one finite float per row,
    and an unknown device name; ResourceError for a device that does not exist.
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
                "(from quantize_weights or from_integers)"
            )
        self.weights = weights
        self.activation_bits = check_activation_bits(activation_bits)
        self.bias = None if bias is None else _as_bias(bias, weights.rows)
        self.threads = threads
        self.device = "cpu" if device == "auto" else device
        self._device_matrix = None if self.device == "cpu" else self._on_device()
        self._scale: ScaleArray = np.ascontiguousarray(weights.scale)
        if self._device_matrix is None:
            planes = np.ascontiguousarray(weights.planes)
            self._engine = _engine(planes, weights.columns, self._scale, weights.group)

    def __copy__(self) -> "BitSerialMatrix":
        """Returns a matrix that shares this one's memory."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __getstate__(self) -> dict[str, object]:
        """Returns the constructor's arguments; unpickling packs the weights again."""
        return {
            "weights": self.weights,
            "activation_bits": self.activation_bits,
            "bias": self.bias,
            "threads": self.threads,
            "device": self.device,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores a pickled matrix. Raises what the constructor raises."""
        self.__init__(**state)  # type: ignore[misc]

    def _on_device(self) -> DeviceMatrix:
        return DeviceMatrix(self.weights, self.activation_bits, bias=self.bias, device=self.device)

    @property
    def rows(self) -> int:
        """Number of rows: outputs."""
        return self.weights.rows

    @property
    def columns(self) -> int:
        """Number of columns: inputs."""
        return self.weights.columns

    def with_activation_bits(self, activation_bits: int) -> "BitSerialMatrix":
        """Returns the same matrix with other activation bits; on the CPU it shares memory.

        Raises ArgumentError for invalid bits.
        """
        other = copy(self)
        other.activation_bits = check_activation_bits(activation_bits)
        if self._device_matrix is not None:
            other._device_matrix = other._on_device()
        return other

    @property
    def packed_bytes(self) -> int:
        """Bytes of weights that a product reads."""
        if self._device_matrix is not None:
            return self._device_matrix.packed_bytes
        return self._engine.packed_bytes

    @property
    def kernel(self) -> str:
        """Name of the engine's kernel for one vector."""
        if self._device_matrix is not None:
            return self._device_matrix.kernel(1)
        if isinstance(self._engine, _core.GroupMatrix):
            return "group"
        return self._engine.kernel(self.activation_bits, 1)

    @property
    def threads(self) -> int:
        """Threads per product; 0 means one per processor."""
        return self._threads

    @threads.setter
    def threads(self, threads: int) -> None:
        self._threads = as_threads(threads)
        self._pool = _pool(self._threads)

    def __call__(self, x: object, /) -> FloatArray:
        """Multiplies with float vectors (..., columns) and adds the bias: float32 (..., rows).

        Raises ArgumentError for another shape or dtype, NaN and infinity.
        """
        if self._device_matrix is not None:
            result: FloatArray = self._device_matrix(x)
            return result
        vectors = as_vectors(x, self.columns)
        flat = vectors.reshape(-1, self.columns)
        if not len(flat):
            return np.zeros((*vectors.shape[:-1], self.rows), np.float32)
        if isinstance(self._engine, _core.GroupMatrix):
            y = self._engine.apply(flat, self.activation_bits, self.bias, self._pool)
        else:
            y = self._engine.apply(flat, self.activation_bits, self._scale, self.bias, self._pool)
        return y.reshape(*vectors.shape[:-1], self.rows)

    def multiply(self, x: object, /) -> npt.NDArray[np.int64]:
        """Multiplies exactly with integer vectors (..., columns): int64 (..., rows), not scaled.

        Raises ArgumentError unless x holds integers of `activation_bits` bits, and for weights with
        groups, whose products are scaled before they are added.
        """
        if self.weights.group:
            raise ArgumentError(
                f"multiply: found weights with groups of {self.weights.group} columns, expected "
                "a step per row: call the matrix with floats"
            )
        array = as_array(x, "x")
        if array.dtype.kind not in "iu" or array.shape[-1:] != (self.columns,):
            raise ArgumentError(
                f"x: found {array.dtype} of shape {array.shape}, expected integers (..., "
                f"{self.columns})"
            )
        if array.size and not -(1 << 31) <= int(array.min()) <= int(array.max()) < 1 << 31:
            bits = self.activation_bits
            raise ArgumentError(
                f"x: found integers of more than {bits} bits, expected at most {bits}"
            )
        flat = np.ascontiguousarray(array, np.int32).reshape(-1, self.columns)
        if not len(flat):
            return np.zeros((*array.shape[:-1], self.rows), np.int64)
        if self._device_matrix is not None:
            return self._device_matrix.multiply(flat).reshape(*array.shape[:-1], self.rows)
        assert isinstance(self._engine, _core.BitMatrix)
        y = self._engine.multiply(flat, self.activation_bits, self._pool)
        return y.reshape(*array.shape[:-1], self.rows)


class FloatMatrix:
    """Float32 matrix that NumPy multiplies, for layers that are not quantized.

    Raises ArgumentError unless weights (rows, columns) and bias (rows,) are finite floats.
    """

    def __init__(self, weight: object, bias: object = None) -> None:
        self.weight = as_weights(weight)
        self.bias = None if bias is None else _as_bias(bias, self.rows)

    @property
    def rows(self) -> int:
        """Number of rows: outputs."""
        return int(self.weight.shape[0])

    @property
    def columns(self) -> int:
        """Number of columns: inputs."""
        return int(self.weight.shape[1])

    def __call__(self, x: object, /) -> FloatArray:
        """Multiplies with float vectors (..., columns) and adds the bias: float32 (..., rows)."""
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


def _engine(
    planes: PlaneArray, columns: int, scale: ScaleArray, group: int
) -> _core.BitMatrix | _core.GroupMatrix:
    if group:
        return _core.GroupMatrix(planes, columns, scale.view(np.uint16), group)
    return _core.BitMatrix(planes, columns)


@lru_cache(maxsize=8)
def _pool(threads: int) -> _core.ThreadPool:
    """Returns the pool that all matrices with this number of threads share."""
    return _core.ThreadPool(threads)
