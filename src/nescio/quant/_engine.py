"""What the engine's modules for devices offer for products of bits."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ._weights import FloatArray, PlaneArray

DeviceArray = Any
"""float32 in a device's memory, of any library with DLPack: PyTorch, CuPy, JAX."""


class EngineProduct(Protocol):
    """Products of one matrix with batches of one size, as the engine's modules have them."""

    batch: int
    kernel: str

    def apply(self, x: FloatArray) -> FloatArray: ...
    def multiply(self, x: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]: ...
    def queue(self, x: DeviceArray, out: DeviceArray, stream: int | None) -> None: ...
    def empty(self) -> DeviceArray: ...
    def seconds_each(self, count: int) -> float: ...


class EngineMatrix(Protocol):
    """Weights in one device's memory."""

    packed_bytes: int

    def product(
        self, activation_bits: int, batch: int, kernel: str | None = None
    ) -> EngineProduct: ...


class EngineDevice(Protocol):
    """One device."""

    def upload(
        self, planes: PlaneArray, columns: int, scale: FloatArray, bias: FloatArray | None
    ) -> EngineMatrix: ...


class QuantEngine(Protocol):
    """A module of the engine for one kind of device."""

    BITSERIAL_KERNELS: tuple[str, ...]

    def BitSerialDevice(self, device: int) -> EngineDevice: ...  # noqa: N802 - a class
