"""Blocks, their bytes and their lowest bits; checks of those of a caller; wiping."""

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_array
from ..errors import ArgumentError

_ALIGNMENT = 16


def as_blocks(raw: object) -> IndexArray:
    """Views bytes as blocks: uint64 of shape (n, 2)."""
    blocks: IndexArray = np.frombuffer(raw, np.uint64).reshape(-1, 2)  # type: ignore[call-overload]
    return blocks


def block_bytes(blocks: IndexArray) -> ByteArray:
    """Views blocks as bytes: uint8 of shape (16 n,)."""
    raw: ByteArray = np.ascontiguousarray(blocks).reshape(-1).view(np.uint8)
    return raw


def low_bits(blocks: IndexArray) -> ByteArray:
    """Extracts the lowest bit of each block: uint8 of shape (n,)."""
    bits: ByteArray = (blocks[:, 0] & np.uint64(1)).astype(np.uint8)
    return bits


def wipe(*secrets: Array) -> None:
    """Overwrites arrays with zeros. Copies that NumPy or Python made of them are not reached."""
    for secret in secrets:
        secret.fill(0)


def as_delta(value: object) -> IndexArray:
    """Returns a copy of a delta: uint64 of shape (2,), lowest bit 1. Raises ArgumentError."""
    array = as_array(value, "delta")
    if array.dtype != np.uint64 or array.shape != (2,):
        raise ArgumentError(
            f"delta: found {array.dtype} of shape {array.shape}, expected uint64 of shape (2,)"
        )
    if not int(array[0]) & 1:
        raise ArgumentError("delta: found an even low half, expected a lowest bit of one")
    return array.copy()


def as_output(value: object, shape: tuple[int, ...], kind: type = np.uint64) -> Array:
    """Checks an array that results are written to. Raises ArgumentError."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(f"out: found {type(value).__name__}, expected a NumPy array")
    if value.shape != shape or value.dtype != kind:
        raise ArgumentError(
            f"out: found {value.dtype} of shape {value.shape}, expected {np.dtype(kind)} of "
            f"shape {shape}"
        )
    if not (value.flags.c_contiguous and value.flags.writeable):
        raise ArgumentError("out: found an array with gaps or read-only, expected neither")
    if value.ctypes.data % _ALIGNMENT and value.size and kind is np.uint64:
        raise ArgumentError(
            f"out: found an array that is not aligned to {_ALIGNMENT} bytes, expected one as "
            "numpy.empty allocates it"
        )
    return value
