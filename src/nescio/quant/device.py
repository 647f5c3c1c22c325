"""Matrices of few bits in the memory of a GPU, or of the emulated device.

    matrix = DeviceMatrix(quantize_weights(w, bits=1), device="cuda:0")
    y = matrix(x)             # an array of the host: NumPy's; one on the GPU: there, x's library's

    out = torch.empty((1, matrix.rows), device="cuda:0")
    matrix.queue(x, out, torch.cuda.current_stream().cuda_stream)  # a graph may record it

The bits are those of `BitSerialMatrix`. Source: thesis, section 3.3.4; docs/quant-gpu.md.
"""

import sys
import threading
from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt

from .._arrays import as_array
from .._devices import Device
from ..errors import ArgumentError
from ._engine import DeviceArray, EngineProduct, QuantEngine
from .matrix import as_vectors, check_activation_bits
from .weights import FloatArray, QuantizedWeights

_DLPACK_CUDA = 2
_KEPT = 16
"""Batches up to this keep their memory from one product to the next, as do those of streams."""


class DeviceMatrix:
    """Weights of few bits on a device, and a bias (rows,) of float32, which is added to products.

    Activations are kept at 8, 16 or 32 bits. `device` is "cuda", "cuda:1", "emulated". `kernel` is
    "count" or "matrix", or either with "-fused", instead of the one that is thought best.

    Arrays of the host may come from several threads. Products of one batch size share memory, so
    those that are queued on streams go to one stream at a time. Raises ArgumentError for names that
    are none and for activation bits, ResourceError for a device that is not there or out of memory.
    """

    def __init__(
        self,
        weights: QuantizedWeights,
        activation_bits: int = 8,
        *,
        bias: FloatArray | None = None,
        device: str = "cuda",
        kernel: str | None = None,
    ) -> None:
        self.weights = weights
        self.activation_bits = check_activation_bits(activation_bits)
        self.device = Device.parse(device)
        engine = cast(QuantEngine, self.device.engine())
        self._matrix = engine.BitSerialDevice(self.device.number).upload(
            np.ascontiguousarray(weights.planes),
            weights.columns,
            np.ascontiguousarray(weights.scale),
            bias,
        )
        self._kernel = kernel
        self._products: dict[int, EngineProduct] = {}
        self._lock = threading.Lock()
        self._product(1)  # so that a kernel that cannot be is refused here

    @property
    def rows(self) -> int:
        """Outputs."""
        return self.weights.rows

    @property
    def columns(self) -> int:
        """Inputs."""
        return self.weights.columns

    @property
    def packed_bytes(self) -> int:
        """Bytes of the device's memory that a product reads."""
        return self._matrix.packed_bytes

    def kernel(self, batch: int = 1) -> str:
        """The name of the kernel for a batch."""
        return self._product(batch).kernel

    def __call__(self, x: DeviceArray, /, *, stream: int | None = None) -> DeviceArray:
        """Products with float vectors (..., columns), plus the bias: float32 (..., rows).

        What lies on the device stays there: C-contiguous float32, whose products are queued on
        `stream`, a cudaStream_t as a number, or without one are done on return. Products of a
        vector of the device that is not finite are NaN. Raises ArgumentError for another shape or
        dtype, and for NaN and infinity of the host.
        """
        if not _is_on_gpu(x):
            return self._of_host(as_vectors(x, self.columns))
        if tuple(x.shape[-1:]) != (self.columns,):
            raise ArgumentError(f"x: found shape {tuple(x.shape)}, expected (..., {self.columns})")
        flat = x.reshape(-1, self.columns)
        product = self._product(flat.shape[0], keep=stream is not None)
        out = product.empty()
        _queue(product, flat, out, stream)
        return _taker(x)(out).reshape((*x.shape[:-1], self.rows))

    def _of_host(self, vectors: FloatArray) -> FloatArray:
        flat = vectors.reshape(-1, self.columns)
        if not len(flat):
            return np.zeros((*vectors.shape[:-1], self.rows), np.float32)
        return self._product(len(flat)).apply(flat).reshape((*vectors.shape[:-1], self.rows))

    def queue(self, x: DeviceArray, out: DeviceArray, stream: int | None = None) -> None:
        """Products of x (batch, columns) to out (batch, rows), both C-contiguous float32 there.

        With a stream nothing is allocated, copied or waited for (but by the first call of a batch
        size), so that a CUDA graph can record it. Raises ArgumentError for other arrays.
        """
        _queue(self._product(_batch_of(x), keep=stream is not None), x, out, stream)

    def multiply(self, x: object) -> npt.NDArray[np.int64]:
        """Exact products with integer vectors (batch, columns) of the host: int64 (batch, rows).

        Raises ArgumentError for what are no integers of `activation_bits` bits.
        """
        array = as_array(x, "x")
        limits = np.iinfo(np.int32)
        fits = array.dtype.kind in "iu" and array.ndim == 2 and array.size > 0
        if not fits or array.min() < limits.min or array.max() > limits.max:
            raise ArgumentError(
                f"x: found {array.dtype} of shape {array.shape}, expected integers (batch, "
                f"{self.columns}) of {self.activation_bits} bits"
            )
        return self._product(len(array)).multiply(np.ascontiguousarray(array, np.int32))

    def seconds_each(self, batch: int = 1, count: int = 100) -> float:
        """Time of a product in a graph of `count` of them, one after the other, measured."""
        return self._product(batch).seconds_each(count)

    def _product(self, batch: int, *, keep: bool = False) -> EngineProduct:
        with self._lock:
            product = self._products.get(batch)
            if product is None:
                product = self._matrix.product(self.activation_bits, batch, self._kernel)
                if keep or batch <= _KEPT:
                    self._products[batch] = product
            return product


def _queue(product: EngineProduct, x: DeviceArray, out: DeviceArray, stream: int | None) -> None:
    try:
        product.queue(x, out, stream)
    except (TypeError, BufferError) as error:  # what the binding makes of no such array
        raise ArgumentError(
            "x and out: expected C-contiguous float32 of two dimensions in the device's memory, "
            f"found {type(x).__name__} and {type(out).__name__} ({error})"
        ) from error


def _batch_of(x: DeviceArray) -> int:
    shape: tuple[int, ...] = getattr(x, "shape", ())
    if len(shape) != 2:
        raise ArgumentError(f"x: found {type(x).__name__}, expected an array (batch, columns)")
    return int(shape[0])


def _is_on_gpu(x: DeviceArray) -> bool:
    device = getattr(x, "__dlpack_device__", None)
    return device is not None and int(device()[0]) == _DLPACK_CUDA


def _taker(x: DeviceArray) -> Callable[[DeviceArray], DeviceArray]:
    """The `from_dlpack` of an array's library."""
    name = type(x).__module__.partition(".")[0]
    for module in ("jax.numpy", name) if name.startswith("jax") else (name,):
        taker = getattr(sys.modules.get(module), "from_dlpack", None)
        if taker is not None:
            return cast(Callable[[DeviceArray], DeviceArray], taker)
    raise ArgumentError(f"x: found {type(x).__name__}, whose library takes no arrays by DLPack")
