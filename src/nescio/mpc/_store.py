"""Stores: one party's material for many inferences, in a file. Each part is used once at most.

    offset    bytes
    0         8       "NESCIOMT"
    8         4       version of this format, 1
    12        4       length of the JSON
    16        32      SHA-256 of the JSON and of the digests
    48        ...     JSON: {"count", "plan", "role", "session", "size", "weights"}
    4096 a            a mark for each part: 0, 1 once it is used, 2 once it is overwritten
    4096 b            the XXH3 of each part, 16 bytes: a check against accidents
    4096 c            the parts, `size` bytes each

Each section begins at the next multiple of 4,096. `session` is the same at both parties, and `plan`
is the digest of what they compute. `weights` is that of the server's weights, and empty at the
client.

Parts are marked as used, with all parts before them, and the marks are on the disk before `use_all`
reads the parts. A crash in between loses them; none is ever used twice, unless somebody puts back
an old copy of the file. Their bytes in the file are overwritten with zeros behind the inference,
or, after a crash, when the store is opened and used or closed.
"""

import fcntl
import hashlib
import json
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, Self

import xxhash

from .._arrays import check_file
from .._disk import write_at
from ..errors import FileError, ResourceError

Role = Literal["server", "client"]

MAGIC = b"NESCIOMT"
VERSION = 1
HEAD = struct.Struct("<8sII32s")
_ALIGNMENT = 4096
_DIGEST_BYTES = 32
_SUM_BYTES = 16
_MAX_JSON = 2048
_USED, _WIPED = b"\1", b"\2"  # marks
_PIECES = 512  # of a read; the least limit of systems is 1,024
MAX_COUNT = 1 << 20
MAX_SIZE = 1 << 40


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a store: `count` parts of `size` bytes.

    `plan` and `session` are digests in hexadecimal; both parties' stores have the same ones.
    `weights` is that of the weights for which the server's parts were made; empty at the client.
    """

    role: Role
    plan: str
    session: str
    count: int
    size: int
    weights: str = ""

    @property
    def flags_at(self) -> int:
        """The offset of the marks."""
        return _ALIGNMENT

    @property
    def digests_at(self) -> int:
        """The offset of the digests of the parts."""
        return _aligned(self.flags_at + self.count)

    @property
    def parts_at(self) -> int:
        """The offset of the first part."""
        return _aligned(self.digests_at + _SUM_BYTES * self.count)

    @property
    def file_bytes(self) -> int:
        """The bytes of the whole file."""
        return self.parts_at + self.count * self.size

    def problem(self) -> str | None:
        """Returns what is wrong with values from a file; None if nothing is."""
        if self.role not in ("server", "client"):
            return f"role {self.role!r}"
        for name in ("plan", "session"):
            text = getattr(self, name)
            if not isinstance(text, str) or len(text) != 2 * _DIGEST_BYTES:
                return f"{name} {text!r}"
        if not isinstance(self.weights, str) or len(self.weights) not in (0, 2 * _DIGEST_BYTES):
            return f"weights {self.weights!r}"
        for name, high in (("count", MAX_COUNT), ("size", MAX_SIZE)):
            number = getattr(self, name)
            if type(number) is not int or not 1 <= number <= high:
                return f"{name} {number!r}"
        return None


class Store:
    """One party's store, open for use by this process alone. A context manager.

    Threads may share it: each part is given to one of them. A process that was forked off must not
    use it. Raises FileError for a file that is no store, is damaged, is not readable and writable,
    or is in use by another process.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        check_file(self._path, "a store of prepared inferences: prepare makes one")
        self._process, self._turn = os.getpid(), threading.Lock()
        with reporting(self._path):
            self._file = self._path.open("r+b", buffering=0)
        try:
            self._lock()
            self.contents, self._digests = self._read()
            with reporting(self._path):
                marks = self._pread(self.contents.flags_at, self.contents.count)
        except BaseException:
            self._file.close()
            raise
        self.next = len(marks.rstrip(b"\0"))
        self._used = marks.rfind(_WIPED) + 1, self.next  # a crash may have come before the zeros

    @property
    def left(self) -> int:
        """The number of parts that were never used."""
        return self.contents.count - self.next

    def check(self, number: int, count: int = 1) -> None:
        """Raises ResourceError if fewer than `count` parts are left, from `number` on."""
        left = self.contents.count - number
        if count > left <= 0:
            raise ResourceError(
                f"{self._path}: all {self.contents.count} prepared inferences were used; prepare "
                "more"
            )
        if count > left:
            raise ResourceError(
                f"{self._path}: found {count:,} inputs, expected at most {left:,}: so many "
                "prepared inferences are left; prepare more"
            )

    def use(self, number: int) -> bytearray:
        """Marks parts up to `number` as used, on the disk, and returns this one.

        Raises as `use_all` does.
        """
        part = bytearray(self.contents.size)
        self.use_all(number, [[memoryview(part)]])
        return part

    def use_all(self, number: int, parts: Sequence[Sequence[memoryview]]) -> None:
        """Marks parts up to `number` and those for `parts` as used, on the disk, and reads these.

        `parts[i]` is the memory for part `number` + i, in pieces. Raises ResourceError if fewer
        parts are left, FileError for a part that was used, is damaged, or cannot be marked, and in
        another process than the one that opened the store.
        """
        if os.getpid() != self._process:  # a fork has the lock of the file too
            raise FileError(f"{self._path} was opened before a fork: open it in one process only")
        with self._turn:
            self._mark(number, len(parts))
            for own, pieces in enumerate(parts, number):
                self._read_part(own, pieces)

    def skip_to(self, number: int) -> None:
        """Marks parts before `number` as used, on the disk: those that the other party has used.

        Raises FileError if they cannot be marked.
        """
        with self._turn:
            if number > self.next:
                self._mark(number, 0)

    def _mark(self, number: int, count: int) -> None:
        """Marks `count` parts from `number` on as used, and all before them."""
        contents, end = self.contents, number + count
        self.check(number, count)
        if number < self.next:
            raise FileError(f"{self._path}: prepared inference {number} was used before")
        with reporting(self._path):
            self._wipe()
            self._pwrite(contents.flags_at + self.next, _USED * (end - self.next))
            os.fsync(self._file.fileno())
        self._used = self.next, end
        self.next = end

    def _read_part(self, number: int, pieces: Sequence[memoryview]) -> None:
        """Reads a part in pieces, and checks it."""
        contents, digest = self.contents, xxhash.xxh3_128()
        with reporting(self._path):
            self._read_into(pieces, contents.parts_at + number * contents.size)
        for piece in pieces:
            digest.update(piece)
        if digest.digest() != self._digests[number * _SUM_BYTES : (number + 1) * _SUM_BYTES]:
            raise FileError(
                f"{self._path}: prepared inference {number} is damaged; use the next one: connect "
                "again"
            )

    def wipe_behind(self) -> None:
        """Overwrites the parts that were used last, in a thread: nobody waits for the disk."""
        with suppress(RuntimeError):  # no more threads: the next use wipes
            threading.Thread(target=self._try_to_wipe).start()

    def _try_to_wipe(self) -> None:
        """Wipes now; if that fails, the next use tries again, and reports the error."""
        with self._turn, suppress(OSError, ValueError):  # ValueError: the file was closed
            self._wipe()

    def _wipe(self) -> None:
        """Overwrites parts with zeros; their marks are on the disk already."""
        first, end = self._used
        if first == end:
            return
        zeros = memoryview(bytes(1 << 20))
        begin, stop = (self.contents.parts_at + k * self.contents.size for k in (first, end))
        for offset in range(begin, stop, len(zeros)):
            self._pwrite(offset, zeros[: stop - offset])
        os.fsync(self._file.fileno())
        self._pwrite(self.contents.flags_at + first, _WIPED * (end - first))
        self._used = end, end

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FileError(
                f"{self._path} is in use by another process, Client or Server: close that first"
            ) from error
        with reporting(self._path):
            same = os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        if not same:
            raise FileError(f"{self._path} was replaced by another process: open it again")

    def _read(self) -> tuple[Contents, bytes]:
        """Reads and checks the head and the digests."""
        with reporting(self._path):
            head = self._pread(0, HEAD.size)
            size = self._path.stat().st_size
        magic, version, length, checked = HEAD.unpack(head)
        if magic != MAGIC:
            raise self._invalid("found another kind of file")
        if version != VERSION:
            raise self._invalid(f"found version {version} of the format, which is not {VERSION}")
        if not 0 < length <= _MAX_JSON:
            raise self._invalid(f"found a head of {length} bytes")
        with reporting(self._path):
            text = bytes(self._pread(HEAD.size, length))
        contents = self._contents(text)
        if size != contents.file_bytes:
            raise self._invalid(f"found {size} bytes, expected {contents.file_bytes}")
        with reporting(self._path):
            digests = bytes(self._pread(contents.digests_at, contents.count * _SUM_BYTES))
        if hashlib.sha256(text + digests).digest() != checked:
            raise self._invalid("found a head that is damaged")
        return contents, digests

    def _contents(self, text: bytes) -> Contents:
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            raise self._invalid("found a head that is no JSON") from None
        if not isinstance(values, dict) or set(values) != {one.name for one in fields(Contents)}:
            raise self._invalid("found a head with other fields")
        contents = Contents(**values)
        problem = contents.problem()
        if problem is not None:
            raise self._invalid(f"found {problem}")
        return contents

    def _invalid(self, found: str) -> FileError:
        return FileError(f"{self._path}: {found}; expected a store of prepared inferences")

    def _pread(self, offset: int, count: int) -> bytearray:
        data = bytearray(count)
        self._read_into([memoryview(data)], offset)
        return data

    def _read_into(self, pieces: Sequence[memoryview], offset: int) -> None:
        """Reads successive bytes of the file into pieces of memory, with few calls."""
        left = list(pieces[::-1])  # the next one is the last
        while left:
            some = left[: -_PIECES - 1 : -1]
            read = os.preadv(self._file.fileno(), some, offset)
            if not read and any(map(len, some)):
                raise self._invalid(f"found the end of the file at {offset}")
            offset += read
            while left and read >= len(left[-1]):
                read -= len(left.pop())
            if read:
                left[-1] = left[-1][read:]

    def _pwrite(self, offset: int, data: bytes | memoryview) -> None:
        write_at(self._file.fileno(), [data], offset)

    def close(self) -> None:
        """Closes the file, which another process may then use."""
        if os.getpid() != self._process:
            self._file.close()
            return
        with self._turn:  # no thread writes to another file of the same number
            if not self._file.closed:
                with suppress(OSError):
                    self._wipe()
            self._file.close()

    def __enter__(self) -> Self:
        """Returns the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the store."""
        self.close()


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Raises FileError, which names the file, for an OSError."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
