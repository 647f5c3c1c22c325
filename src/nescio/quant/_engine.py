"""Types of the engine's device modules for bit-serial products."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ._weights import FloatArray, PlaneArray

DeviceArray = Any
"""A float32 array in device memory, of any library with DLPack (PyTorch, CuPy, JAX)."""


class EngineProduct(Protocol):
    """Multiplies one matrix with batches of one size."""

    batch: int
    kernel: str

    def apply(self, x: FloatArray) -> FloatArray: ...
    def multiply(self, x: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]: ...
    def queue(self, x: DeviceArray, out: DeviceArray, stream: int | None) -> None: ...
    def empty(self) -> DeviceArray: ...
    def seconds_each(self, count: int) -> float: ...


class EngineMatrix(Protocol):
    """Holds weights in the memory of one device."""

    packed_bytes: int

    def capturing(self, stream: int) -> bool: ...
    def product(
        self, activation_bits: int, batch: int, kernel: str | None = None
    ) -> EngineProduct: ...


class EngineDevice(Protocol):
    """Opens one device."""

    def upload(
        self,
        planes: PlaneArray,
        columns: int,
        scale: FloatArray,
        bias: FloatArray | None,
        group: int = 0,
    ) -> EngineMatrix: ...


class QuantEngine(Protocol):
    """Module of the engine for one kind of device."""

    BITSERIAL_KERNELS: tuple[str, ...]

    def BitSerialDevice(self, device: int) -> EngineDevice: ...  # noqa: N802 - a class
