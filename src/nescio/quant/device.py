"""Low-bit matrices in the memory of a GPU or of the emulated device.

    matrix = DeviceMatrix(quantize_weights(w, bits=1), device="cuda:0")
    y = matrix(x)             # host array in, NumPy array out; GPU array in, same library out

    out = torch.empty((1, matrix.rows), device="cuda:0")
    matrix.queue(x, out, torch.cuda.current_stream().cuda_stream)  # can be captured in a graph

Results have the same bits as those of `BitSerialMatrix`. Source: thesis, section 3.3.4. Guide:
docs/quant-gpu.md.
"""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt

from .._arrays import as_array, as_count
from .._device import Device
from ..errors import ArgumentError
from ._activations import as_vectors, check_activation_bits
from ._engine import DeviceArray, EngineProduct, QuantEngine
from ._weights import FloatArray, QuantizedWeights

_DLPACK_CUDA = 2
_DLPACK_NO_STREAM = -1
_MAX_BATCH = 1024
"""Vectors per product; larger batches are split."""

_MAX_PREPARED = 1 << 31
"""Largest batch size that `prepare` accepts."""

_MAX_CACHED_PRODUCTS = 16
"""Products, each with its scratch buffers, in the cache of least recently used ones."""


class DeviceMatrix:
    """Low-bit weights on a device, and an optional float32 bias (rows,) added to products.

    Activations are rounded to 8, 16 or 32 bits. `device` is "cuda", "cuda:1" or "emulated".
    `kernel` overrides the choice of kernel: "count", "matrix", "count-fused" or "matrix-fused".

    Thread-safe. Products can be queued on several streams; each stream has its own scratch buffers.
    Raises ArgumentError for unknown names and invalid activation bits, ResourceError for a device
    that does not exist or is out of memory.
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
            weights.scale.astype(np.float32).reshape(-1),
            bias,
            weights.group,
        )
        self._kernel = kernel
        self._products: OrderedDict[tuple[int, int | None], EngineProduct] = OrderedDict()
        self._captured: dict[tuple[int, int], EngineProduct] = {}
        self._spares: OrderedDict[int, EngineProduct] = OrderedDict()
        self._lock = threading.Lock()
        self._product(1)  # so that an unknown kernel raises here

    @property
    def rows(self) -> int:
        """Number of rows: outputs."""
        return self.weights.rows

    @property
    def columns(self) -> int:
        """Number of columns: inputs."""
        return self.weights.columns

    @property
    def packed_bytes(self) -> int:
        """Bytes of device memory that a product reads."""
        return self._matrix.packed_bytes

    def kernel(self, batch: int = 1) -> str:
        """Returns the name of the kernel for a batch size."""
        return self._product(batch).kernel

    def __call__(self, x: DeviceArray, /, *, stream: int | None = None) -> DeviceArray:
        """Multiplies with float vectors (..., columns) and adds the bias: float32 (..., rows).

        For an array in GPU memory (C-contiguous float32, at most 65,535 vectors), the result stays
        there. The product is queued on `stream`, a cudaStream_t as an integer; without a stream, it
        is complete on return. A CUDA graph cannot capture this call, which allocates the result;
        it can capture `queue`. A vector on the GPU that is not finite gives NaN. Raises
        ArgumentError for another shape or dtype, and for NaN or infinity in host arrays.
        """
        if not _is_on_gpu(x):
            return self._of_host(as_vectors(x, self.columns))
        if tuple(x.shape[-1:]) != (self.columns,):
            raise ArgumentError(f"x: found shape {tuple(x.shape)}, expected (..., {self.columns})")
        flat = x.reshape(-1, self.columns)
        out = _from_dlpack(x)(self._product(flat.shape[0]).empty())
        self.queue(flat, out, stream)
        return out.reshape((*x.shape[:-1], self.rows))

    def _of_host(self, vectors: FloatArray) -> FloatArray:
        flat = vectors.reshape(-1, self.columns)
        y = np.zeros((len(flat), self.rows), np.float32)
        for part in _slices(len(flat)):
            own = flat[part]
            if part.start and not np.isfinite(own).all():
                at = part.start + int(np.isfinite(own).all(axis=1).argmin())
                raise ArgumentError(f"activations: found NaN or infinity in vector {at}")
            y[part] = self._product(len(own)).apply(own)
        return y.reshape((*vectors.shape[:-1], self.rows))

    def queue(self, x: DeviceArray, out: DeviceArray, stream: int | None = None) -> None:
        """Queues products of x (batch, columns) into out (batch, rows), C-contiguous GPU float32.

        With a stream, only the first call for a batch size on that stream allocates memory; nothing
        is copied or waited for. A CUDA graph can capture a call after `prepare(batch)` or after a
        call for that batch size outside a capture. The graph uses scratch buffers that no other
        work uses, except graphs captured from the same stream, which must not run at the same time.
        Keep the matrix as long as the graph.

        Raises ArgumentError for other arrays, and in a capture without scratch buffers.
        """
        batch = _batch_of(x)
        if batch != _batch_of(out):
            raise ArgumentError(f"out: found shape {out.shape}, expected ({batch}, {self.rows})")
        if batch <= _MAX_BATCH:
            if batch:
                _queue(self._product_on(batch, stream), x, out, stream)
            return
        for part in _slices(batch):
            own = x[part]
            _queue(self._product_on(own.shape[0], stream), own, out[part], stream)

    def prepare(self, batch: int = 1) -> None:
        """Allocates the scratch buffers with which a CUDA graph can capture `queue` for a batch.

        Only `queue` can be captured. Calls of it outside a capture allocate the same buffers for
        their batch size. Raises ArgumentError for an invalid batch size.
        """
        count = as_count(batch, "batch", 1, _MAX_PREPARED)
        for size in {min(count, _MAX_BATCH), count % _MAX_BATCH} - {0}:  # the sizes of all slices
            self._add_spare(size, run=True)

    def multiply(self, x: object) -> npt.NDArray[np.int64]:
        """Multiplies exactly with integer host vectors (batch, columns): int64 (batch, rows).

        Raises ArgumentError unless x holds integers of `activation_bits` bits.
        """
        array = as_array(x, "x")
        limits = np.iinfo(np.int32)
        fits = array.dtype.kind in "iu" and array.ndim == 2
        if fits and array.size:
            fits = limits.min <= int(array.min()) <= int(array.max()) <= limits.max
        if not fits:
            raise ArgumentError(
                f"x: found {array.dtype} of shape {array.shape}, expected integers (batch, "
                f"{self.columns}) of {self.activation_bits} bits"
            )
        y = np.zeros((len(array), self.rows), np.int64)
        for part in _slices(len(array)):
            own = np.ascontiguousarray(array[part], np.int32)
            y[part] = self._product(len(own)).multiply(own)
        return y

    def seconds_each(self, batch: int = 1, count: int = 100) -> float:
        """Measures the seconds per product in a graph of `count` consecutive products."""
        return self._product(batch).seconds_each(count)

    def _product_on(self, batch: int, stream: int | None) -> EngineProduct:
        """Returns the product for a call of `queue`; allocates nothing in a capture."""
        if stream is None:
            return self._product(batch)
        if self._matrix.capturing(stream):
            return self._captured_product(batch, stream)
        self._add_spare(batch)
        return self._product(batch, stream)

    def _add_spare(self, batch: int, *, run: bool = False) -> None:
        """Allocates a product for the next capture; `run` also loads its kernels."""
        with self._lock:
            if batch not in self._spares:
                spare = self._new_product(batch)
                if run:
                    spare.apply(np.zeros((batch, self.columns), np.float32))
                self._spares[batch] = spare
            self._spares.move_to_end(batch)
            while len(self._spares) > _MAX_CACHED_PRODUCTS:
                self._spares.popitem(last=False)

    def _captured_product(self, batch: int, stream: int) -> EngineProduct:
        with self._lock:
            product = self._captured.get((batch, stream)) or self._spares.pop(batch, None)
            if product is None:
                raise ArgumentError(
                    f"x: found a batch of {batch} in a graph capture, expected one for which "
                    f"scratch buffers exist; call prepare({batch}) before the capture"
                )
            self._captured[batch, stream] = product
            return product

    def _new_product(self, batch: int) -> EngineProduct:
        return self._matrix.product(self.activation_bits, batch, self._kernel)

    def _product(self, batch: int, stream: int | None = None) -> EngineProduct:
        with self._lock:
            product = self._products.pop((batch, stream), None) or self._new_product(batch)
            self._products[batch, stream] = product
            while len(self._products) > _MAX_CACHED_PRODUCTS:
                self._products.popitem(last=False)
            return product


def _slices(batch: int) -> list[slice]:
    starts = range(0, batch, _MAX_BATCH)
    return [slice(first, min(first + _MAX_BATCH, batch)) for first in starts]


def _queue(product: EngineProduct, x: DeviceArray, out: DeviceArray, stream: int | None) -> None:
    try:
        product.queue(_exported(x), _exported(out), stream)
    except (TypeError, BufferError) as error:  # from the binding, for other arrays
        raise ArgumentError(
            f"x and out: found {type(x).__name__} and {type(out).__name__} ({error}), expected "
            "C-contiguous float32 of two dimensions in the device's memory"
        ) from error


def _batch_of(x: DeviceArray) -> int:
    shape: tuple[int, ...] = getattr(x, "shape", ())
    if len(shape) != 2:
        raise ArgumentError(f"x: found {type(x).__name__}, expected an array (batch, columns)")
    return int(shape[0])


def _is_on_gpu(x: DeviceArray) -> bool:
    device = getattr(x, "__dlpack_device__", None)
    return device is not None and int(device()[0]) == _DLPACK_CUDA


def _exported(x: DeviceArray) -> DeviceArray:
    """Exports a PyTorch tensor by DLPack without an order of streams, which `queue` takes care of.

    Before 2.9, PyTorch otherwise makes the default stream wait for the current one, which is an
    error while a graph is captured.
    """
    if type(x).__module__.partition(".")[0] == "torch" and _is_on_gpu(x):
        return cast(DeviceArray, x.__dlpack__(stream=_DLPACK_NO_STREAM))
    return x


def _from_dlpack(x: DeviceArray) -> Callable[[DeviceArray], DeviceArray]:
    """Returns the `from_dlpack` function of an array's library."""
    name = type(x).__module__.partition(".")[0]
    for module in ("jax.numpy", name) if name.startswith("jax") else (name,):
        function = getattr(sys.modules.get(module), "from_dlpack", None)
        if function is not None:
            return cast(Callable[[DeviceArray], DeviceArray], function)
    raise ArgumentError(
        f"x: found {type(x).__name__}, expected an array of a library with from_dlpack"
    )
