"""The journal of a table's changes: the format of its file, and the only parser.

All little-endian. The file begins with a head:

    offset    bytes
    0         8       "NESCIOJR"
    8         4       version of this format, 2
    12        4       zero
    16        8       number of the journal
    24        16      origin: id of the first version of the table in this folder
    40        16      base: id of the table before the first change
    56        16      random name of this journal
    72        16      XXH3 with 128 bits of these 72 bytes

Records follow, one for each change:

    0         4       "NCRD"
    4         4       length m of the rows that the change moved, in bytes
    8         8       number of the record in this journal, from 0
    16        8       length n of the message
    24        16      id of the table after the change
    40        16      XXH3 with 128 bits of the message and the moved rows
    56        16      the same of the journal's name and these 56 bytes
    72        n       the message of the change, as it arrived
    72 + n    m       rows that a keyed table moved to other places

A record without a message and moved rows is a mark. It says that the snapshot of this journal was
complete: the snapshot has no change that follows the mark.

A record is synchronized before the next one is written, so that only the last one may be torn. What
follows the last valid record is torn if no valid head of a later record is in it; else the file is
damaged. The checksums are against accidents: an attacker who can write the file can also write
them.
"""

import os
import secrets
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from xxhash import xxh3_128, xxh3_128_digest

from ..._disk import replacing, write_at
from ...errors import FileError

VERSION = 2
MAX_MESSAGE_BYTES = 1 << 32
HEAD_BYTES = 88
RECORD_BYTES = 72
_MAGIC, _RECORD_MAGIC = b"NESCIOJR", b"NCRD"
_HEAD = struct.Struct("<8sIIQ16s16s16s")
_RECORD = struct.Struct("<4sIQQ16s16s")
_SUM_BYTES = 16
_SCANNED_BYTES = 1 << 20


class Head(NamedTuple):
    """The head of a journal."""

    number: int
    origin: bytes
    base: bytes
    name: bytes

    @classmethod
    def new(cls, number: int, origin: bytes, base: bytes) -> "Head":
        """Makes the head of a new journal."""
        return cls(number, origin, base, secrets.token_bytes(16))

    def encode(self) -> bytes:
        """Encodes the head."""
        fixed = _HEAD.pack(_MAGIC, VERSION, 0, *self)
        return fixed + xxh3_128_digest(fixed)

    @classmethod
    def parse(cls, data: bytes) -> "Head":
        """Parses a head. Raises FileError."""
        if len(data) < HEAD_BYTES or not data.startswith(_MAGIC):
            raise FileError("it does not begin like a journal of Nescio")
        _, version, zero, *fields = _HEAD.unpack_from(data)
        if version != VERSION or zero:
            raise FileError(
                f"it has version {version} of the format, this release reads version {VERSION}: "
                "start the release that wrote it"
            )
        if xxh3_128_digest(data[: _HEAD.size]) != data[_HEAD.size : HEAD_BYTES]:
            raise FileError("its head is damaged")
        return cls(*fields)


class Record(NamedTuple):
    """A change in a journal: the message, the rows that it moved, and the table's id after it."""

    message: bytes
    moved: bytes
    after: bytes

    @classmethod
    def mark(cls, ident: bytes) -> "Record":
        """Makes the mark of a complete snapshot, while the table has an id."""
        return cls(b"", b"", ident)

    @property
    def is_mark(self) -> bool:
        """True for a mark, False for a change."""
        return not self.message and not self.moved


class _RecordHead(NamedTuple):
    """The head of a record."""

    moved_bytes: int
    number: int
    message_bytes: int
    after: bytes
    checksum: bytes

    @property
    def total_bytes(self) -> int:
        """The length of the whole record."""
        return RECORD_BYTES + self.message_bytes + self.moved_bytes

    @classmethod
    def parse(cls, name: bytes, data: bytes) -> "_RecordHead | None":
        """Parses the head of a record; None if it is not one of the journal with a name."""
        if len(data) < RECORD_BYTES or not data.startswith(_RECORD_MAGIC):
            return None
        fixed, own = data[: _RECORD.size], data[_RECORD.size : RECORD_BYTES]
        if xxh3_128_digest(name + fixed) != own:
            return None
        head = cls(*_RECORD.unpack(fixed)[1:])
        return head if head.message_bytes <= MAX_MESSAGE_BYTES else None


def encode_record(name: bytes, number: int, record: Record) -> list[bytes]:
    """Encodes the record with a number of the journal with a name, in parts that follow."""
    message, moved, after = record
    body = xxh3_128(message)
    body.update(moved)
    fixed = _RECORD.pack(_RECORD_MAGIC, len(moved), number, len(message), after, body.digest())
    return [fixed + xxh3_128_digest(name + fixed), message, moved]


class JournalReader:
    """Reads the records of a journal, one at a time.

    After all of them, `end` is the end of the last record, and `torn_bytes` what follows it: a
    record whose writing was cut short. Raises FileError for bytes that are not a journal.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        file.seek(0)
        self.head = Head.parse(file.read(HEAD_BYTES))
        self.end = HEAD_BYTES
        self.count = 0

    @property
    def torn_bytes(self) -> int:
        """The length of what follows the last record."""
        return self._size - self.end

    def __iter__(self) -> Iterator[Record]:
        """Yields the records. Raises FileError if one is damaged that is not the last one."""
        while self.end < self._size:
            record = self._read()
            if record is None:
                self._check_torn()
                return
            yield record

    def _read(self) -> Record | None:
        """Reads the next record; None if it is invalid."""
        self._file.seek(self.end)
        head = _RecordHead.parse(self.head.name, self._file.read(RECORD_BYTES))
        if head is None or head.number != self.count or self.end + head.total_bytes > self._size:
            return None
        message, moved = self._file.read(head.message_bytes), self._file.read(head.moved_bytes)
        body = xxh3_128(message)
        body.update(moved)
        if body.digest() != head.checksum:
            return None
        self.end += head.total_bytes
        self.count += 1
        return Record(message, moved, head.after)

    def _check_torn(self) -> None:
        """Raises FileError if a later record follows the invalid one."""
        at, before = self.end, b""
        self._file.seek(at)
        while part := self._file.read(_SCANNED_BYTES):
            data = before + part
            found = data.find(_RECORD_MAGIC)
            while found >= 0:
                head = _RecordHead.parse(self.head.name, data[found : found + RECORD_BYTES])
                if head is not None and head.number > self.count:
                    raise FileError(
                        f"record {self.count} at byte {self.end} is damaged, and record "
                        f"{head.number} follows it"
                    )
                found = data.find(_RECORD_MAGIC, found + 1)
            before = data[-RECORD_BYTES + 1 :]


class JournalWriter:
    """Appends records to a journal, each of which is synchronized before `append` returns.

    A failure leaves the journal as it was. If it cannot be left so, if the file cannot be opened
    for writing, or if it is no longer at its path, where a start would read it, `failure` says why,
    and all later records are refused.
    """

    def __init__(self, path: Path, head: Head, end: int, count: int) -> None:
        self.head = head
        self.end = end
        self.count = count
        self.failure: str | None = None
        self._path = path.absolute()
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            self.failure = _unwritable(error)
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    @classmethod
    def create(cls, path: Path, head: Head) -> "JournalWriter":
        """Creates a file that has no records yet. Raises OSError.

        The caller synchronizes the folder.
        """
        with replacing(path) as file:
            file.write(head.encode())
        return cls(path, head, HEAD_BYTES, 0)

    def check(self) -> None:
        """Raises FileError if no record can be appended."""
        if self.failure is None and not self._is_at_its_path():
            self.failure = (
                f"the journal {self._path.name} is no longer at its path: its folder was moved, "
                "replaced or removed; stop the service, put the folder back, and start it again"
            )
        if self.failure is not None:
            raise FileError(self.failure)

    def _is_at_its_path(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except OSError:
            return False

    def append(self, record: Record) -> None:
        """Appends a record. Raises FileError, and leaves the journal as it was, if that fails."""
        self.check()
        parts = encode_record(self.head.name, self.count, record)
        try:
            write_at(self._descriptor, parts, self.end)
        except OSError as error:
            self.cut()
            raise FileError(_unwritable(error)) from error
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:  # the system may have dropped what it could not write
            self.cut()
            self.failure = f"the journal could not be synchronized: {error.strerror}"
            raise FileError(self.failure) from error
        self.end += sum(map(len, parts))
        self.count += 1

    def retract(self, end: int) -> None:
        """Removes the last record, which began at `end`; no further one may follow."""
        self.end, self.count = end, self.count - 1
        self.failure = "a change failed after it was in the journal"
        self.cut()

    def cut(self) -> None:
        """Removes what follows the last record; `failure` says so if that fails."""
        try:
            os.ftruncate(self._descriptor, self.end)
            os.fsync(self._descriptor)
        except OSError as error:
            self.failure = f"the journal has a part of a change: {error.strerror}"

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)


def _unwritable(error: OSError) -> str:
    return f"the journal cannot be written: {error.strerror}"
