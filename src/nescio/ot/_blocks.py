"""Conversions between blocks, their bytes, and their lowest bits."""

import numpy as np

from .._arrays import ByteArray, IndexArray


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
