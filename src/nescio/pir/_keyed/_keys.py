"""Keys of a keyed table as bytes, and their hashes.

A key's bytes begin with a tag of its type, so that "1", b"1" and 1 are different keys:

    s   text, as UTF-8, as it is: no form of Unicode is preferred
    b   bytes
    i   an integer from -2^63 to 2^63 - 1, 8 bytes, little-endian, two's complement
    u   an integer from 2^63 to 2^64 - 1, 8 bytes, little-endian

The bytes are hashed under the table's public seed: see core/keyed/key_hash.h.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from ... import _core
from ..._arrays import Array, ByteArray, IndexArray, as_array, shown
from ...errors import ArgumentError

KeyKind = Literal["text", "bytes", "integer"]
KINDS: tuple[KeyKind, ...] = ("text", "bytes", "integer")
NAMES: dict[KeyKind, str] = {"text": "text", "bytes": "bytes", "integer": "integers"}
Words: TypeAlias = IndexArray
"""Hashed keys, (n, 4): three words for the places, and the fingerprint."""

WORDS = 4
MAX_KEY_BYTES = 4096
SEED_BYTES = 32
_SEED_TAG = b"NescioKeyedSeed"


class PackedKeys(NamedTuple):
    """Keys of one type, one after the other: their tags and bytes, and the end of each."""

    kind: KeyKind
    data: ByteArray
    ends: IndexArray
    shape: tuple[int, ...]

    def __len__(self) -> int:
        """The number of keys."""
        return len(self.ends)

    def hashed(self, seed: bytes, pool: _core.ThreadPool) -> Words:
        """Hashes the keys, in time that depends only on their lengths."""
        return _core.hash_keys(np.frombuffer(seed, np.uint8), self.data, self.ends, pool)

    def describe(self, number: int) -> str:
        """Describes one key for an error message."""
        begin = int(self.ends[number - 1]) if number else 0
        tag, key = (
            bytes(self.data[begin : begin + 1]),
            bytes(self.data[begin + 1 : self.ends[number]]),
        )
        if self.kind == "text":
            return shown(key.decode())
        if self.kind == "bytes":
            return shown(key)
        return str(int.from_bytes(key, "little", signed=tag == b"i"))

    def seed(self) -> bytes:
        """Returns the seed with which a table of these keys begins: a hash of all of them."""
        lengths = np.diff(self.ends, prepend=np.uint64(0)).astype("<u8")
        found = hashlib.sha256(_SEED_TAG + len(self).to_bytes(8, "little"))
        found.update(lengths.tobytes())
        found.update(self.data.data)
        return found.digest()


def next_seed(seed: bytes) -> bytes:
    """Returns the seed after one with which a table could not be built."""
    return hashlib.sha256(seed).digest()


def pack_keys(keys: object) -> PackedKeys:
    """Packs one key, a list of keys, or an array of keys of any shape.

    A key is a `str`, `bytes`, or an integer; all keys have one type. A uint8 array of several
    dimensions has a key of bytes on its last axis. NumPy drops zero bytes at the end of an element
    of an `S` array, and zero characters in a `U` array; so each element of an `S` array must have
    the length of the array's items, and text that ends with zero characters must be in a list.

    Raises ArgumentError for keys
    of another type or of several types, for an empty key, one of more than MAX_KEY_BYTES bytes,
    text that is not Unicode, or an integer out of range.
    """
    if isinstance(keys, str | bytes | bytearray | int | np.generic):
        return _pack([keys], ())
    if isinstance(keys, list | tuple):
        return _pack(keys, (len(keys),))
    array = as_array(keys, "keys")
    if array.dtype == np.uint8 and array.ndim > 1:
        return _pack_rows(array)
    if array.dtype.kind in "iu":
        return _pack_integers(array.reshape(-1), array.shape)
    if array.dtype.kind not in "OSU":
        raise ArgumentError(
            f"keys: found an array of {array.dtype}, expected text, bytes or integers"
        )
    if array.dtype.kind == "S":
        _check_whole(array.reshape(-1))
    return _pack(array.reshape(-1).tolist(), array.shape)


def _pack_rows(array: ByteArray) -> PackedKeys:
    """Packs keys of one length, the bytes on the last axis."""
    *shape, length = array.shape
    if not 1 <= length <= MAX_KEY_BYTES:
        raise ArgumentError(
            f"keys: found {length} bytes on the last axis, expected 1 to {MAX_KEY_BYTES}"
        )
    count = math.prod(shape)
    packed = np.empty((count, 1 + length), np.uint8)
    packed[:, 0] = ord("b")
    packed[:, 1:] = array.reshape(count, length)
    ends = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(1 + length)
    return PackedKeys("bytes", packed.reshape(-1), ends, tuple(shape))


def _check_whole(array: Array) -> None:
    """Raises ArgumentError for an element of an `S` array that may have lost zero bytes."""
    lengths, expected = np.char.str_len(array), array.itemsize
    for number in np.flatnonzero(lengths != expected)[:1]:
        raise ArgumentError(
            f"key {number}: found {lengths[number]} bytes in an array of S{expected}, which drops "
            f"zero bytes at the end, expected {expected}: pass a list of bytes, or a uint8 array "
            "(keys, bytes)"
        )


def _pack(keys: Sequence[Any], shape: tuple[int, ...]) -> PackedKeys:
    kinds = {_kind(found) for found in set(map(type, keys))}
    if len(kinds) > 1:
        raise ArgumentError(
            f"keys: found {' and '.join(sorted(kinds))} keys, expected keys of one type"
        )
    kind = kinds.pop() if kinds else "text"
    if kind == "integer":
        return _pack_integers(_as_integers(keys), shape)
    encoded = _encoded(keys) if kind == "text" else [b"b" + key for key in keys]
    lengths = np.fromiter(map(len, encoded), np.uint64, len(encoded))
    for number in np.flatnonzero((lengths < 2) | (lengths > MAX_KEY_BYTES + 1))[:1]:
        raise ArgumentError(
            f"key {number}: found {int(lengths[number]) - 1} bytes, expected 1 to {MAX_KEY_BYTES}"
        )
    data = np.frombuffer(b"".join(encoded), np.uint8)
    return PackedKeys(kind, data, np.cumsum(lengths, dtype=np.uint64), shape)


def _kind(found: type) -> KeyKind:
    if issubclass(found, str):
        return "text"
    if issubclass(found, bytes | bytearray):
        return "bytes"
    if issubclass(found, int | np.integer) and not issubclass(found, bool):
        return "integer"
    raise ArgumentError(f"keys: found one of type {found.__name__}, expected str, bytes or int")


def _encoded(keys: Sequence[str]) -> list[bytes]:
    try:
        return [b"s" + key.encode() for key in keys]
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"key {shown(error.object)}: found text with an unpaired surrogate, expected Unicode "
            "that UTF-8 can encode"
        ) from error


def _as_integers(keys: Sequence[int | np.integer[Any]]) -> Array:
    try:
        return np.array(keys, np.int64)
    except OverflowError:
        pass
    numbers = np.array([int(key) for key in keys], object)
    for number in np.flatnonzero((numbers < -(1 << 63)) | (numbers >= 1 << 64))[:1]:
        raise ArgumentError(
            f"key {number}: found {shown(numbers[number])}, expected -2^63 to 2^64 - 1"
        )
    if (numbers >= 0).all():
        return numbers.astype(np.uint64)
    return numbers


def _pack_integers(numbers: Array, shape: tuple[int, ...]) -> PackedKeys:
    packed = np.empty((len(numbers), 9), np.uint8)
    large = numbers >= 1 << 63 if numbers.dtype.kind != "i" else np.zeros(len(numbers), bool)
    packed[:, 0] = ord("i") + (ord("u") - ord("i")) * large.astype(np.uint8)
    if numbers.dtype == object:
        numbers = (numbers & ((1 << 64) - 1)).astype(np.uint64)
    wide = numbers.astype("<i8" if numbers.dtype.kind == "i" else "<u8")
    packed[:, 1:] = wide.view(np.uint8).reshape(-1, 8)
    ends = np.arange(9, 9 * len(numbers) + 1, 9, dtype=np.uint64)
    return PackedKeys("integer", packed.reshape(-1), ends, shape)


def places_of(words: Words, rows: int) -> IndexArray:
    """Returns the place of each key in each subtable of `rows` rows, (n, 3), in constant time."""
    high, low = words[:, :3] >> np.uint64(32), words[:, :3] & np.uint64(0xFFFFFFFF)
    count, half = np.uint64(rows), np.uint64(32)
    # The upper half of word * rows, in halves of the word; rows <= 2^32, so that nothing overflows.
    return cast(IndexArray, (high * count + (low * count >> half)) >> half)
