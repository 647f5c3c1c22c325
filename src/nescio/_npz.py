"""Files of plain arrays: .npz without pickles; sizes are checked before memory is allocated."""

import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import Array
from .errors import FileError

__all__ = ["Arrays", "read_arrays", "write_arrays"]

Arrays = dict[str, Array]

MAX_BYTES = 1 << 36
_SHOWN = 200
_DAMAGED = (
    zipfile.BadZipFile,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,
    OverflowError,
    NotImplementedError,
    MemoryError,
    SyntaxError,
    TypeError,
    zlib.error,
)

Refusal = Callable[[str], FileError]
"""Makes the error of a file that is not of the expected kind, from the reason."""


def write_arrays(arrays: Mapping[str, Any], path: Path, what: str) -> None:
    """Writes named arrays; `what` names the content in an error. Raises FileError."""
    try:
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise FileError(f"{what} cannot be written to {path}: {error.strerror}") from error


def read_arrays(
    path: Path, what: str, required: set[str], optional: set[str], refusal: Refusal
) -> Arrays:
    """Reads named arrays: all that are `required`, and those of the others that are `optional`.

    `what` names the content in an error. Raises FileError, or `refusal(reason)` if the file is not
    of the expected kind.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, required, optional, refusal)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise FileError(f"{what} {path} cannot be read: {error.strerror or error}") from error
    except _DAMAGED as error:
        if isinstance(error, FileError):
            raise
        raise refusal(str(error)[:_SHOWN]) from error


def _check_archive(
    archive: zipfile.ZipFile, required: set[str], optional: set[str], refusal: Refusal
) -> None:
    """Checks the names, and the bytes that reading would allocate, before any array is read."""
    names = {entry.filename.removesuffix(".npy") for entry in archive.infolist()}
    if not names >= required or names - required - optional:
        raise refusal(f"it contains {sorted(names)[:8]}")
    total = 0
    for entry in archive.infolist():
        with archive.open(entry) as file:
            total += _declared_bytes(file, entry, refusal)
    if total > MAX_BYTES:
        raise refusal(f"it has {total} bytes, expected at most {MAX_BYTES}")


def _declared_bytes(file: Any, entry: zipfile.ZipInfo, refusal: Refusal) -> int:  # noqa: ANN401
    """Returns the bytes that an array's header declares; they must equal those of the entry."""
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise refusal(f"{entry.filename} has format version {version}, expected (1, 0)")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    size = dtype.itemsize
    for length in shape:
        size *= length
    if dtype.hasobject or size + file.tell() != entry.file_size:
        raise refusal(f"{entry.filename} does not have the length that its header states")
    return int(size)
