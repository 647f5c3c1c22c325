"""The message with a table's tops, or with those that changed since another version.

    offset  bytes
    0       2      "NT"
    2       1      version of this format, 2
    3       1      0 for all tops, 1 for those that differ from the version that was named
    4       4      number of records
    8       4      bytes of a record: 32 for all, 36 for a difference
    12      4      zero
    16      16     id of the table's parameters
    32      ...    hashes; for a difference each follows its number, 4 bytes

The tops are public, and checked against the digest in the parameters.
"""

import struct

import numpy as np

from .._arrays import ByteArray, as_bytes
from ..errors import MalformedMessageError, MismatchError
from ._hash_shape import HASH_BYTES
from ._params import TableParams
from ._state import TableState
from ._wire import HEADER_BYTES, VERSION, wrong_table

_HEADER = struct.Struct("<2sBBII4s16s")
_NUMBER_BYTES = 4
_ALL, _DIFFERENCE = 0, 1
_RECORD_BYTES = (HASH_BYTES, _NUMBER_BYTES + HASH_BYTES)


def max_message_bytes(params: TableParams) -> int:
    """Returns the length of the longest message with tops."""
    return HEADER_BYTES + params.hashes.tops * _RECORD_BYTES[_DIFFERENCE]


def encode_tops(state: TableState, since: bytes | None = None) -> bytes:
    """Encodes the tops of a version; or what differs from the version with the id `since`.

    All of them where the table does not remember that version, or the difference is longer.
    """
    tops = state.tree.tops
    numbers = None if since is None else state.tops_since(since)
    if numbers is not None and len(numbers) * _RECORD_BYTES[_DIFFERENCE] < tops.nbytes:
        at = numbers.astype("<u4").view(np.uint8).reshape(-1, _NUMBER_BYTES)
        records = np.concatenate([at, tops[numbers.astype(np.int64)]], axis=1)
        return _encode(state.params, _DIFFERENCE, records)
    return _encode(state.params, _ALL, tops)


def encode_all_tops(params: TableParams, tops: ByteArray) -> bytes:
    """Encodes all tops of a version."""
    return _encode(params, _ALL, tops)


def parse_tops(params: TableParams, data: object, old: ByteArray | None = None) -> ByteArray:
    """Parses tops, and checks them against the digest: (n, 32).

    `old` are the tops of the version that the request named. Raises MalformedMessageError; or
    MismatchError for another table or version, and for tops that do not hash to the digest.
    """
    kind, records = _parse(params, data)
    tops = records
    if kind == _DIFFERENCE:
        if old is None or len(old) != params.hashes.tops:
            raise MalformedMessageError("tops: found a difference, expected all of them")
        numbers = records[:, :_NUMBER_BYTES].copy().view("<u4").reshape(-1)
        if len(numbers) and int(numbers.max()) >= len(old):
            raise MalformedMessageError(
                f"tops: found number {int(numbers.max())}, expected 0 to {len(old) - 1}"
            )
        tops = old.copy()
        tops[numbers] = records[:, _NUMBER_BYTES:]
    return check_tops(params, tops)


def check_tops(params: TableParams, tops: ByteArray) -> ByteArray:
    """Returns tops that hash to the table's digest. Raises MismatchError for any others."""
    found = "none" if tops.shape != (params.hashes.tops, HASH_BYTES) else None
    found = found or params.digest_of(tops)
    if found != params.digest:
        raise MismatchError(
            f"tops of another table: they hash to {found[:12]}, expected the digest "
            f"{params.digest[:12]}; fetch the tops again, from the other server if need be",
            found=found,
            expected=params.digest,
        )
    return np.ascontiguousarray(tops)


def _encode(params: TableParams, kind: int, records: ByteArray) -> bytes:
    sizes = len(records), _RECORD_BYTES[kind]
    header = _HEADER.pack(b"NT", VERSION, kind, *sizes, bytes(4), params.id)
    return header + records.tobytes()


def _parse(params: TableParams, data: object) -> tuple[int, ByteArray]:
    """Parses the kind and the records."""
    raw = as_bytes(data, "tops")
    if len(raw) < HEADER_BYTES:
        raise MalformedMessageError(
            f"not tops: found {len(raw)} bytes, expected a header of {HEADER_BYTES} bytes"
        )
    magic, version, kind, count, record_bytes, zero, table = _HEADER.unpack_from(raw.data)
    if magic != b"NT" or version != VERSION or kind not in (_ALL, _DIFFERENCE):
        raise MalformedMessageError(
            f"not tops of format {VERSION}: found {raw[:4].tobytes()!r} at the beginning, expected "
            f"{bytes((*b'NT', VERSION))!r}, and 0 or 1"
        )
    if any(zero):
        raise MalformedMessageError(f"tops: found {zero!r} at byte 12, expected zeros")
    if table != params.id:
        raise wrong_table("tops", table, params)
    tops = params.hashes.tops
    fits = count == tops if kind == _ALL else count <= tops
    expected = HEADER_BYTES + count * _RECORD_BYTES[kind]
    if not fits or record_bytes != _RECORD_BYTES[kind] or len(raw) != expected:
        raise MalformedMessageError(
            f"tops: found {count} records of {record_bytes} bytes in {len(raw)} bytes, expected "
            f"{tops} of {HASH_BYTES}, or a difference of at most as many"
        )
    return kind, raw[HEADER_BYTES:].reshape(count, record_bytes)
