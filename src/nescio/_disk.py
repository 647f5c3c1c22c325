"""Files that are on the disk as a whole, or not at all."""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

OWNER_ONLY = 0o600


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
