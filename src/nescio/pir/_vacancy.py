"""The set of a table's vacant rows: a bit for each row, made when there is a vacant one.

Two parties compare their sets by `check`, a sum over the vacant rows that every change keeps up to
date, so that no set is read as a whole or sent.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import Array, ByteArray, IndexArray
from ..errors import MalformedMessageError

_HEAD = struct.Struct("<4sIQQ")
_MAGIC = b"NVAC"
_VERSION = 1
_CHUNK = 1 << 20  # bytes of the bits that are read at a time

NO_ROWS = np.zeros(0, np.uint64)


class VacancyInfo(NamedTuple):
    """The number of vacant rows, a sum over them, and the rows that the last change appended."""

    total: int
    check: int
    appended: IndexArray


class Vacancy:
    """The vacant rows of a table with `rows` rows. Every change is made by one thread at a time."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.count = 0
        self.check = 0
        self.appended = NO_ROWS  # by the last change
        self._bits: ByteArray | None = None
        self._low = 0  # no vacant row has its bit in a byte before this one

    @property
    def info(self) -> VacancyInfo:
        """The number of vacant rows, a sum over them, and the rows just appended."""
        return VacancyInfo(self.count, self.check, self.appended)

    def lowest(self, count: int) -> IndexArray:
        """Returns the `count` lowest vacant rows in order, or all if there are fewer."""
        found: list[IndexArray] = []
        missing = min(count, self.count)
        for rows in self._parts() if missing else ():
            if not found:
                self._low = int(rows[0]) // 8
            found.append(rows[:missing])
            missing -= len(found[-1])
            if not missing:
                break
        return np.concatenate(found) if found else NO_ROWS

    def has(self, rows: IndexArray) -> npt.NDArray[np.bool_]:
        """Tests which of some rows are vacant."""
        if self._bits is None:
            return np.zeros(len(rows), np.bool_)
        at = rows.astype(np.int64)
        marks: npt.NDArray[np.bool_] = self._bits[at >> 3] & _bit(at) != 0
        return marks

    def add(self, rows: IndexArray) -> None:
        """Makes rows vacant, also such that are."""
        rows = np.unique(rows)
        self._flip(rows[~self.has(rows)], 1)

    def remove(self, rows: IndexArray) -> None:
        """Makes rows occupied, also such that are."""
        if self.count:
            rows = np.unique(rows)
            self._flip(rows[self.has(rows)], -1)

    def fill(self, rows: IndexArray) -> None:
        """Makes vacant rows occupied, and remembers them until the next change."""
        self.remove(rows)
        self.appended = rows

    def grow(self, rows: int) -> None:
        """Adds vacant rows at the end, up to `rows`."""
        first, self.rows = self.rows, rows
        if self._bits is not None:
            missing = -(-rows // 8) - len(self._bits)
            self._bits = np.concatenate([self._bits, np.zeros(missing, np.uint8)])
        for begin in range(first, rows, 8 * _CHUNK):
            self._flip(np.arange(begin, min(rows, begin + 8 * _CHUNK), dtype=np.uint64), 1)

    def reordered(self, order: Array) -> "Vacancy":
        """Returns the set of a table whose row i is row order[i], or a new one if negative."""
        made = Vacancy(len(order))
        if self._bits is not None:
            marks = np.unpackbits(self._bits, count=self.rows, bitorder="little")
            marks = marks[np.maximum(order, 0)]
            marks[order < 0] = 0
            made._take(np.packbits(marks, bitorder="little"))
        return made

    def to_bytes(self) -> bytes:
        """Encodes the set and the rows that the last change appended; empty if there are none."""
        if not self.count and not len(self.appended):
            return b""
        bits = np.zeros(0, np.uint8) if self._bits is None or not self.count else self._bits
        head = _HEAD.pack(_MAGIC, _VERSION, self.rows, len(self.appended))
        return zlib.compress(head + self.appended.tobytes() + bits.tobytes(), 1)

    @classmethod
    def from_bytes(cls, data: bytes, rows: int) -> "Vacancy":
        """Decodes the set of a table with `rows` rows. Raises MalformedMessageError."""
        made = cls(rows)
        if data == b"":
            return made
        raw = _inflated(data, _HEAD.size + 9 * rows + 8)
        if len(raw) < _HEAD.size:
            raise _malformed(f"found {len(raw)} bytes")
        magic, version, own, appended = _HEAD.unpack_from(raw)
        if (magic, version, own) != (_MAGIC, _VERSION, rows) or appended > rows:
            raise _malformed(f"it begins with {raw[: _HEAD.size].hex()}, for {rows} rows")
        rest = np.frombuffer(raw, np.uint8, offset=_HEAD.size)
        if len(rest) not in (8 * appended, 8 * appended + -(-rows // 8)):
            raise _malformed(f"found {len(rest)} bytes for {rows} rows")
        made.appended = rest[: 8 * appended].copy().view(np.uint64)
        bits = rest[8 * appended :]
        if len(bits) and bits[-1] >> (rows - 1) % 8 + 1:
            raise _malformed(f"it has rows after the last of {rows}")
        if (made.appended >= rows).any():
            raise _malformed("it names rows that do not exist")
        made._take(bits.copy())
        return made

    def _take(self, bits: ByteArray) -> None:
        """Sets the bits of a set that is empty."""
        self._bits = bits if len(bits) else None
        for rows in self._parts():
            self.count += len(rows)
            self.check = (self.check + _sum(rows)) % (1 << 64)

    def _parts(self) -> Iterator[IndexArray]:
        """Yields the vacant rows in order, in parts that are not empty."""
        bits = self._bits
        for first in range(self._low, 0 if bits is None else len(bits), _CHUNK):
            assert bits is not None
            part = bits[first : first + _CHUNK]
            if not part.any():
                continue
            used = np.flatnonzero(part)
            marks = np.unpackbits(part[used, None], axis=1, bitorder="little")
            at, bit = np.nonzero(marks)
            yield (8 * (first + used[at]) + bit).astype(np.uint64)

    def _flip(self, rows: IndexArray, sign: int) -> None:
        """Makes different rows vacant (1) or occupied (-1), which all are not yet."""
        if not len(rows):
            return
        if self._bits is None:
            self._bits = np.zeros(-(-self.rows // 8), np.uint8)
        at = rows.astype(np.int64)
        np.bitwise_xor.at(self._bits, at >> 3, _bit(at))
        self.count += sign * len(rows)
        self.check = (self.check + sign * _sum(rows)) % (1 << 64)
        if sign > 0:
            self._low = min(self._low, int(at.min()) >> 3)


def _bit(rows: npt.NDArray[np.int64]) -> ByteArray:
    return np.uint8(1) << (rows & 7).astype(np.uint8)


def _sum(rows: IndexArray) -> int:
    """Adds hashes of rows (the mixing of SplitMix64) mod 2^64, so that sets can be compared."""
    mixed = (rows + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return int((mixed ^ (mixed >> np.uint64(31))).sum(dtype=np.uint64))


def _inflated(data: bytes, most: int) -> bytes:
    """Decompresses at most `most` bytes. Raises MalformedMessageError for more, or other bytes."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(data, most)
    except zlib.error as error:
        raise _malformed(str(error)) from error
    if not stream.eof or stream.unused_data:
        raise _malformed("it is cut short, or too long")
    return raw


def _malformed(why: str) -> MalformedMessageError:
    return MalformedMessageError(
        f"the state of a table's vacant rows is not valid ({why}): expected what "
        "Table.extra_state returned for this version of the table"
    )
