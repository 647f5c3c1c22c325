r"""The file format of an operator's journal, and its only parser.

All little-endian:

    offset    bytes
    0         8       "NESCIOOJ"
    8         4       version of this format, 1
    12        4       length j of the JSON
    16        16      XXH3 of the JSON, 128 bits
    32        j       JSON: {"table": the table's name}
    32 + j    ...     records

    record    bytes
    0         8       "\xffrecord\n"
    8         1       kind: 1 change, 2 made, 3 dropped
    9         7       zeros
    16        8       time in nanoseconds since 1970
    24        8       length b of the body
    32        16      XXH3 of the 32 bytes before and of the body, 128 bits
    48        b       body

The body of a change is the change as the servers get it (`pir._change`). "Made" says that a server
has made it: the change's name, 16 bytes, and the id of the table after it, 16 bytes. "Dropped" says
that no server has made it and none will: the name. Nothing else is ever written but at the end.

A program that was stopped leaves an unfinished record at the end. Its change was not sent. The
reader takes bytes as an unfinished record, and cuts them off, if no complete record follows them.
Any other bytes that are not a record are damage.
"""

import json
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from xxhash import xxh3_128

from ..._arrays import shown
from ...errors import FileError

CHANGE, MADE, DROPPED = 1, 2, 3
HEAD_BYTES = 48
_LENGTHS = {MADE: 32, DROPPED: 16}
_MAGIC = b"NESCIOOJ"
_VERSION = 1
_FILE_HEAD = struct.Struct("<8sII16s")
_MARK = b"\xffrecord\n"
_RECORD = struct.Struct("<8sB7xQQ")
_MAX_JSON = 4096
_PIECE = 16 << 20


class Record(NamedTuple):
    """A record; `place` is the offset of its body in the file."""

    kind: int
    time: int
    body: bytes
    place: int

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self.place + len(self.body)


def file_head(table: str) -> bytes:
    """Encodes the head of the journal of a table."""
    text = json.dumps({"table": table}).encode()
    return _FILE_HEAD.pack(_MAGIC, _VERSION, len(text), xxh3_128(text).digest()) + text


def encode(kind: int, time: int, body: bytes) -> bytes:
    """Encodes a record."""
    head = _RECORD.pack(_MARK, kind, time, len(body))
    return head + _checksum(head, body) + body


def read_head(file: BinaryIO, path: object) -> tuple[str, int]:
    """Reads the head: the table's name, and the offset of the first record. Raises FileError."""
    head = file.read(_FILE_HEAD.size)
    if len(head) < _FILE_HEAD.size or head[:8] != _MAGIC:
        raise FileError(
            f"{path} is not an operator's journal: it begins with {head[:8]!r}, expected "
            f"{_MAGIC!r}; name another file"
        )
    _, version, length, checksum = _FILE_HEAD.unpack(head)
    if version != _VERSION:
        raise FileError(
            f"{path}: found a journal of format {version}, expected {_VERSION}: use the release "
            "that wrote it"
        )
    text = file.read(min(length, _MAX_JSON))
    if length > _MAX_JSON or xxh3_128(text).digest() != checksum:
        raise FileError(f"{path}: the head of the journal is damaged: {_ADVICE}")
    table = json.loads(text).get("table")
    if not isinstance(table, str):
        raise FileError(f"{path}: found the table {shown(table)}, expected a name")
    return table, _FILE_HEAD.size + length


def read_records(file: BinaryIO, first: int, size: int, path: object) -> Iterator[Record]:
    """Yields the records from an offset up to the end of the file, of `size` bytes.

    Ends before an unfinished record. Raises FileError for damage.
    """
    offset = first
    while offset < size:
        record = _read_record(file, offset, size)
        if record is None:
            later = _whole_record_after(file, offset, size)
            if later is not None:
                raise FileError(
                    f"{path}: damaged from byte {offset} to byte {later}, where whole records "
                    f"follow: {_ADVICE}"
                )
            return
        yield record
        offset = record.end


_ADVICE = (
    "restore the journal from a backup, or keep this file and begin another one when both parties "
    "agree"
)


def _checksum(head: bytes, body: bytes) -> bytes:
    checksum = xxh3_128(head)
    checksum.update(body)
    return checksum.digest()


def _read_record(file: BinaryIO, offset: int, size: int) -> Record | None:
    """Reads the record at an offset; returns None if it is incomplete."""
    if size - offset < HEAD_BYTES:
        return None
    file.seek(offset)
    head = file.read(HEAD_BYTES)
    mark, kind, time, length = _RECORD.unpack_from(head)
    if mark != _MARK or length > size - offset - HEAD_BYTES:
        return None
    if kind != CHANGE and length != _LENGTHS.get(kind):
        return None
    body = file.read(length)
    if _checksum(head[: _RECORD.size], body) != head[_RECORD.size :]:
        return None
    return Record(kind, time, body, offset + HEAD_BYTES)


def _whole_record_after(file: BinaryIO, offset: int, size: int) -> int | None:
    """Finds the first whole record after an offset."""
    start = offset + 1
    while start < size:
        file.seek(start)
        piece = file.read(_PIECE)
        found = piece.find(_MARK)
        if found < 0:
            start += max(1, len(piece) - len(_MARK) + 1)
        elif _read_record(file, start + found, size) is not None:
            return start + found
        else:
            start += found + 1
    return None
