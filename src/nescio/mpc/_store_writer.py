"""Writing a store of prepared inferences; `_store` has its format."""

import errno
import hashlib
import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import xxhash

from .._disk import sync_folder
from ..errors import FileError
from ._store import HEAD, MAGIC, VERSION, Contents, reporting


class StoreWriter:
    """Writes a new store, part by part; the file has its name only when all parts are on the disk.

    A context manager: an exception removes what was written. Raises FileError if the file exists,
    or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], contents: Contents) -> None:
        self._path, self._contents = Path(path), contents
        self._temporary = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}.part")
        if self._path.exists():
            raise FileError(f"{self._path} exists: use it, or choose another name")
        self._digests: list[bytes] = []
        with reporting(self._path):
            number = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            self._file: BinaryIO = os.fdopen(number, "wb")
            try:
                self._reserve()
            except BaseException:
                self._close()
                raise
            self._file.seek(contents.parts_at)

    def _reserve(self) -> None:
        """Takes the space of the whole file, so that a full disk is found before the work."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._file.fileno(), 0, self._contents.file_bytes)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise

    def _close(self) -> None:
        """Closes the file and removes its temporary name."""
        with suppress(OSError):  # of bytes that a full disk did not take
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    def add(self, part: bytes | bytearray | memoryview) -> None:
        """Writes the next part. Raises FileError for more or longer parts than were announced."""
        contents = self._contents
        if len(part) != contents.size or len(self._digests) == contents.count:
            raise FileError(
                f"{self._path}: found part {len(self._digests) + 1} of {len(part)} bytes, expected "
                f"{contents.count} of {contents.size}"
            )
        with reporting(self._path):
            self._file.write(part)
        self._digests.append(xxhash.xxh3_128_digest(part))

    def __enter__(self) -> Self:
        """Returns the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finishes the file, or removes it after an exception or if parts are missing."""
        try:
            if kind is None:
                self._finish()
        finally:
            self._close()

    def _finish(self) -> None:
        contents, digests = self._contents, b"".join(self._digests)
        if len(self._digests) != contents.count:
            raise FileError(
                f"{self._path}: found {len(self._digests)} parts, expected {contents.count}"
            )
        text = json.dumps(asdict(contents), sort_keys=True).encode()
        checked = hashlib.sha256(text + digests).digest()
        head = HEAD.pack(MAGIC, VERSION, len(text), checked) + text
        with reporting(self._path):
            for offset, data in (
                (0, head),
                (contents.flags_at, bytes(contents.count)),
                (contents.digests_at, digests),
            ):
                self._file.seek(offset)
                self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
            os.link(self._temporary, self._path)  # fails if the name was taken meanwhile
            sync_folder(self._path.parent)
