"""Files that are on the disk as a whole, or not at all."""

import mmap
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ._arrays import ByteArray

OWNER_ONLY = 0o600

# Not in Python's module before 3.13. Elsewhere a private mapping reserves nothing.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


@contextmanager
def replacing(path: Path, mode: int = OWNER_ONLY) -> Iterator[BinaryIO]:
    """Gives a new file that gets the path when the block ends; `mode` is subject to the umask.

    The file is synchronized first. An exception removes it, and leaves what the path named before.
    The caller synchronizes the folder if the name must be durable too. Raises OSError.
    """
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with open(new, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def write_at(descriptor: int, parts: Sequence[bytes | memoryview], offset: int) -> None:
    """Writes all of some parts, one after the other, from an offset on. Raises OSError."""
    for part in parts:
        rest = memoryview(part)
        while rest:
            written = os.pwrite(descriptor, rest, offset)
            rest, offset = rest[written:], offset + written


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def mapped_copy(file: BinaryIO) -> ByteArray:
    """Maps a file, which may be larger than the memory; changes do not reach it.

    Memory is not reserved for a copy of the whole file: only pages that change are copied. Raises
    OSError, and ValueError for an empty file.
    """
    memory = mmap.mmap(
        file.fileno(),
        0,
        flags=mmap.MAP_PRIVATE | _NO_RESERVE,
        prot=mmap.PROT_READ | mmap.PROT_WRITE,
    )
    return np.frombuffer(memory, np.uint8)
