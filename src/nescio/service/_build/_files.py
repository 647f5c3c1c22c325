"""Files and URLs by one interface. fsspec reads URLs, and is needed for them alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import ByteArray, check_file
from ...errors import ArgumentError, FileError, NescioError


def is_url(name: str) -> bool:
    """Tests for a URL, as s3://bucket/file."""
    return "://" in name


def filesystem(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system of a URL, and the path in it. Raises ArgumentError."""
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - of the extra `cluster`
    except ImportError as error:
        raise ArgumentError(f"{url} needs the package 'fsspec': install nescio[cluster]") from error
    try:
        found: tuple[Any, str] = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ArgumentError(
            f"{url}: found no file system for it ({error}): install the package that fsspec names, "
            "or give a path"
        ) from error
    return found


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Converts all errors of the block to FileError, because object stores have their own."""
    try:
        yield
    except (NescioError, MemoryError):
        raise
    except Exception as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise FileError(f"{name} cannot be read: {why}") from error


def expanded(name: str) -> list[str]:
    """Returns the URLs that a URL with wildcards stands for, in order. Raises FileError."""
    if not is_url(name) or "*" not in name:
        return [name]
    files, path = filesystem(name)
    with reading(name):
        found = [files.unstrip_protocol(one) for one in sorted(files.glob(path))]
    if not found:
        raise FileError(f"{name}: found no file, expected one at least")
    return found


def size_of(name: str) -> int:
    """Returns the length of a file. Raises FileError."""
    if is_url(name):
        files, path = filesystem(name)
        with reading(name):
            return int(files.size(path))
    check_file(Path(name), "a file of rows")
    with reading(name):
        return Path(name).stat().st_size


def read_range(name: str, first: int, size: int) -> ByteArray:
    """Reads `size` bytes from byte `first` on. Raises FileError, also for a file that ends before.

    A read fails with an error if a disk does, where a mapping of the file would end the process.
    """
    with reading(name):
        if is_url(name):
            files, path = filesystem(name)
            found = np.frombuffer(files.cat_file(path, first, first + size), np.uint8)
        else:
            with Path(name).open("rb", buffering=0) as file:
                found = np.fromfile(file, np.uint8, size, offset=first)
    if len(found) != size:
        raise FileError(
            f"{name}: found {len(found)} bytes from byte {first} on, expected {size}: the file has "
            "changed, or its server does not answer requests for ranges"
        )
    return found


def open_file(name: str) -> Any:  # noqa: ANN401 - a file of fsspec or of Python
    """Opens a file for a library that reads ranges of it. Raises FileError."""
    if is_url(name):
        files, path = filesystem(name)
        with reading(name):
            return files.open(path, "rb")
    check_file(Path(name), "a file of rows")
    with reading(name):
        return Path(name).open("rb")
