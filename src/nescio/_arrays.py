"""Converts arguments to NumPy: arrays of NumPy, PyTorch, CuPy and JAX, buffers, integers."""

import contextlib
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError, FileError, IndexRangeError

Array = npt.NDArray[Any]
ByteArray = npt.NDArray[np.uint8]
IndexArray = npt.NDArray[np.uint64]

MAX_THREADS = 4096
_DLPACK_CPU = 1

MAX_DIMENSIONS = 16
"""Maximum dimensions of indices and of a row; NumPy 1 allows 32 for both together."""


def as_array(value: object, what: str) -> Array:
    """Converts a value to a NumPy array, without a copy if possible.

    Accepts NumPy arrays, arrays with DLPack (PyTorch, JAX, ...), buffers and sequences. An array in
    GPU memory is copied to the host by its own library. `what` names the value in error messages.
    Raises ArgumentError for any other value.
    """
    if _is_masked(value):
        raise ArgumentError(f"{what} has masked elements: fill them first (.filled())")
    if isinstance(value, np.ndarray):
        return value
    device = getattr(value, "__dlpack_device__", None)
    try:
        if device is None:
            return np.asarray(value)
        if device()[0] != _DLPACK_CPU:
            return _copied_to_host(value, what)
        return np.from_dlpack(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, BufferError, OverflowError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{what} cannot be read as an array: {error}") from error


def check_file(path: Path, expected: str) -> None:
    """Raises FileError, which names the kind of file that is `expected`, unless a file exists.

    A pipe is refused, because opening one waits for a program that writes to it.
    """
    if path.is_file():
        return
    if path.is_fifo():
        raise FileError(
            f"{path} is a pipe, expected a regular file: {expected}; write the content of the pipe "
            "to a file"
        )
    found = "does not exist"
    if path.is_dir():
        found = "is a directory"
    elif path.exists():
        found = "is not a regular file"
    raise FileError(f"{path} {found}, expected {expected}")


def load_array(path: Path) -> Array:
    """Maps a NumPy array file into memory. Raises FileError if it is not one."""
    check_file(path, "a NumPy array file")
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header can make numpy.load raise nearly any error
        raise FileError(
            f"{path} is not a NumPy array file of numbers; write one with numpy.save"
        ) from error
    if not isinstance(array, np.ndarray):
        raise FileError(f"{path} holds several arrays: save one of them with numpy.save")
    return array


def _copied_to_host(value: object, what: str) -> Array:
    """Copies an array to the host by its own library."""
    array: Any = value
    ways: list[Callable[[], Array]] = [
        lambda: np.from_dlpack(array, device="cpu", copy=True),  # NumPy 2.1 and a recent library
        lambda: np.asarray(array.cpu()),  # PyTorch
        lambda: np.asarray(array.get()),  # CuPy
        lambda: np.asarray(array.__array__()),  # JAX
    ]
    for way in ways:
        with contextlib.suppress(AttributeError, TypeError, ValueError, RuntimeError, BufferError):
            return way()
    raise ArgumentError(f"{what} is on a GPU: move it to the CPU first (.cpu())")


def _is_masked(value: object) -> bool:
    """Tests for a masked array by the class name, which does not import numpy.ma."""
    return any(base.__name__ == "MaskedArray" for base in type(value).__mro__)


def as_indices(value: object, limit: int, what: str) -> IndexArray:
    """Converts a value to a C-contiguous array of uint64 below `limit`.

    Raises ArgumentError for values that are not integers, IndexRangeError for one out of range.
    The running time does not depend on the indices unless one is invalid.
    """
    array = as_array(value, what)
    if array.ndim > MAX_DIMENSIONS:
        raise ArgumentError(
            f"{what}: found {array.ndim} dimensions, expected at most {MAX_DIMENSIONS}"
        )
    if array.size == 0:
        return np.zeros(array.shape, np.uint64)
    if array.dtype.kind not in "iu" and not _all_integers(array):
        raise ArgumentError(f"{what} must be integers, not {array.dtype}")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= limit:
        found = shown(low if low < 0 else high)
        raise IndexRangeError(f"{what} out of range: found {found}, expected 0 to {limit - 1}")
    return np.ascontiguousarray(array, np.uint64).reshape(array.shape)


def _all_integers(array: Array) -> bool:
    """Tests an array of objects for Python integers, which NumPy makes of very large ones."""
    return array.dtype == object and all(
        isinstance(item, int) and not isinstance(item, bool) for item in array.flat
    )


def shown(value: object) -> str:
    """Formats a value for an error message, and shortens long ones."""
    if isinstance(value, int) and abs(value) >= 1 << 128:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def as_count(value: object, what: str, minimum: int, maximum: int) -> int:
    """Converts a value to an integer from `minimum` to `maximum`. Raises ArgumentError.

    Accepts scalars of NumPy, PyTorch and other libraries, but no truth values.
    """
    kind = str(getattr(value, "dtype", type(value).__name__))
    shape: object = getattr(value, "shape", ())
    try:
        if "bool" in kind or shape:
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"{what}: found {shown(value)}, expected an integer") from None
    if not minimum <= number <= maximum:
        raise ArgumentError(f"{what}: found {shown(number)}, expected {minimum} to {maximum}")
    return number


def as_threads(value: object) -> int:
    """Checks a number of threads; 0 means one per processor. Raises ArgumentError."""
    return as_count(value, "threads", 0, MAX_THREADS)


def as_bytes(value: object, what: str) -> ByteArray:
    """Converts a bytes-like object or a 1-d array of uint8 to a NumPy array without a copy."""
    if isinstance(value, bytes | bytearray | memoryview):
        view = memoryview(value)
        return np.frombuffer(view if view.contiguous else view.tobytes(), np.uint8)
    if isinstance(value, str):
        raise ArgumentError(f"{what}: found a string, expected bytes; encode it first")
    array = as_array(value, what)
    if array.dtype != np.uint8 or array.ndim != 1:
        found = type(value).__name__
        if hasattr(value, "dtype"):
            found = f"an array of {array.ndim} dimensions and dtype {array.dtype}"
        raise ArgumentError(f"{what}: found {found}, expected bytes or a flat array of uint8")
    return np.ascontiguousarray(array)


def byte_rows(value: object, what: str) -> tuple[ByteArray, bool]:
    """Converts byte strings of one length to an array's rows; the flag says if it was a single one.

    Accepts one bytes-like object or 1-d array of uint8, a sequence of them, or a 2-d array of
    uint8. Raises ArgumentError for any other value.
    """
    if isinstance(value, list | tuple):
        return _stack([as_bytes(item, what) for item in value], what), False
    if hasattr(value, "__dlpack__"):
        array = as_array(value, what)
        if array.ndim == 2 and array.dtype == np.uint8:
            return np.ascontiguousarray(array), False
        value = array
    return as_bytes(value, what).reshape(1, -1), True


def _stack(rows: list[ByteArray], what: str) -> ByteArray:
    if not rows:
        return np.zeros((0, 0), np.uint8)
    for row in rows:
        if len(row) != len(rows[0]):
            raise ArgumentError(
                f"{what}: found lengths {len(row)} and {len(rows[0])} bytes, expected one length"
            )
    return np.stack(rows)
