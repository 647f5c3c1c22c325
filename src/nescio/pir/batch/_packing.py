"""Lists of row numbers as bits: short, the same on every machine, and decoded in bounded memory."""

import numpy as np

from ..._arrays import ByteArray, IndexArray
from ...errors import MalformedMessageError

_WORD = 64
_STEP = 1 << 15  # numbers at a time, a multiple of 8: each takes 64 bytes while it is packed


def packed_bytes(count: int, width: int) -> int:
    """Returns the size of numbers that `pack` writes."""
    return -(-count * width // 8)


def pack(values: IndexArray, width: int) -> bytes:
    """Packs numbers of `width` bits, lowest bit first; zeros fill the last byte."""
    return b"".join(
        _packed(values[first : first + _STEP], width) for first in range(0, len(values), _STEP)
    )


def _packed(values: IndexArray, width: int) -> bytes:
    own = np.ascontiguousarray(values, "<u8").view(np.uint8).reshape(-1, 8)
    bits = np.unpackbits(own, axis=1, bitorder="little")[:, :width]
    return np.packbits(bits.reshape(-1), bitorder="little").tobytes()


def unpack(data: bytes, width: int, count: int) -> IndexArray:
    """Returns `count` numbers that `pack` wrote. Raises MalformedMessageError for other bytes."""
    if len(data) != packed_bytes(count, width):
        raise MalformedMessageError(
            f"{count} numbers of {width} bits: found {len(data)} bytes, expected "
            f"{packed_bytes(count, width)}"
        )
    values = np.zeros(count, np.uint64)
    raw, step = np.frombuffer(data, np.uint8), _STEP * width // 8
    for number, first in enumerate(range(0, count if width else 0, _STEP)):
        own = values[first : first + _STEP]
        own[:] = _unpacked(raw[number * step : (number + 1) * step], width, len(own))
    return values


def _unpacked(raw: ByteArray, width: int, count: int) -> IndexArray:
    bits = np.zeros((count, _WORD), np.uint8)
    bits[:, :width] = np.unpackbits(raw, count=count * width, bitorder="little").reshape(count, -1)
    return np.packbits(bits, axis=1, bitorder="little").view("<u8").reshape(-1).astype(np.uint64)


def pack_sorted(values: IndexArray, limit: int) -> bytes:
    """Encodes ascending numbers below `limit` as Elias and Fano do (1974, 1971).

    The low bits of all numbers are packed; then bit (high + i) is set for the high bits of number
    i. That takes at most two bits more for each than its low bits, within half a bit of the best.
    """
    low = _low_bits(len(values), limit)
    highs = (values >> np.uint64(low)).astype(np.int64)
    bits = np.zeros(_high_bits(len(values), limit), np.uint8)
    bits[highs + np.arange(len(values))] = 1
    mask = np.uint64((1 << low) - 1)
    return pack(values & mask, low) + np.packbits(bits, bitorder="little").tobytes()


def unpack_sorted(data: bytes, count: int, limit: int) -> IndexArray:
    """Returns `count` ascending numbers that `pack_sorted` wrote.

    Raises MalformedMessageError for other bytes.
    """
    if not 1 <= count <= limit:
        raise MalformedMessageError(f"found {count} rows, expected 1 to {limit}")
    low = _low_bits(count, limit)
    split, size = packed_bytes(count, low), _high_bits(count, limit)
    if len(data) != split + -(-size // 8):
        raise MalformedMessageError(
            f"{count} of {limit} rows: found {len(data)} bytes, expected {split + -(-size // 8)}"
        )
    bits = np.unpackbits(np.frombuffer(data, np.uint8, offset=split), bitorder="little")
    at = np.flatnonzero(bits)
    if len(at) != count or at[-1] >= size:
        raise MalformedMessageError(f"found {len(at)} rows, expected {count}")
    highs = (at - np.arange(count)).astype(np.uint64)
    values: IndexArray = highs << np.uint64(low) | unpack(data[:split], low, count)
    if values[-1] >= limit or (values[1:] <= values[:-1]).any():
        raise MalformedMessageError(f"rows: expected ascending numbers below {limit}")
    return values


def _low_bits(count: int, limit: int) -> int:
    return max(0, (limit // count).bit_length() - 1)


def _high_bits(count: int, limit: int) -> int:
    return count + (limit - 1 >> _low_bits(count, limit))
