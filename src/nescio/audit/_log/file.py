"""Log files: an .npz of plain arrays, no pickles; sizes are checked before memory is allocated.

aggregates     float32 or float64, (rounds, dimensions)
users          int64, ()
windows        int64, (windows, 2)        optional
counts         int64, (users, windows)    optional, with windows
participants   int64, (rounds,)           optional
count_error    int64, ()                  optional, 0
"""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import FileError

__all__ = ["read_log", "write_log"]

Arrays = dict[str, npt.NDArray[Any]]

MAX_BYTES = 1 << 36
_REQUIRED = {"aggregates", "users"}
_OPTIONAL = {"windows", "counts", "participants", "count_error"}
_SCALARS = ("users", "count_error")


def write_log(arrays: dict[str, Any], path: Path) -> None:
    """Writes the arrays of a log. Raises FileError if the file cannot be written."""
    try:
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise FileError(f"the log cannot be written to {path}: {error.strerror}") from error


def read_log(path: Path) -> Arrays:
    """Reads the arrays of a log. Raises FileError if the file is not a log."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except OSError as error:
        raise FileError(f"the log {path} cannot be read: {error.strerror or error}") from error
    except (
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
    ) as error:
        if isinstance(error, FileError):
            raise
        raise _not_a_log(path, str(error)[:200]) from error
    for name in _SCALARS:
        if name in arrays and (arrays[name].shape != () or arrays[name].dtype.kind not in "iu"):
            raise _not_a_log(path, f"{name} is not an integer")
    return arrays


def _check_archive(archive: zipfile.ZipFile, path: Path) -> None:
    """Checks the names, and the bytes that reading would allocate, before any array is read."""
    names = {entry.filename.removesuffix(".npy") for entry in archive.infolist()}
    if not names >= _REQUIRED or names - _REQUIRED - _OPTIONAL:
        raise _not_a_log(path, f"it contains {sorted(names)[:8]}")
    total = 0
    for entry in archive.infolist():
        with archive.open(entry) as file:
            total += _declared_bytes(file, entry, path)
    if total > MAX_BYTES:
        raise _not_a_log(path, f"it has {total} bytes, expected at most {MAX_BYTES}")


def _declared_bytes(file: Any, entry: zipfile.ZipInfo, path: Path) -> int:  # noqa: ANN401
    """Returns the bytes that an array's header declares; they must equal those of the entry."""
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise _not_a_log(path, f"{entry.filename} has format version {version}, expected (1, 0)")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    size = dtype.itemsize
    for length in shape:
        size *= length
    if dtype.hasobject or size + file.tell() != entry.file_size:
        raise _not_a_log(path, f"{entry.filename} does not have the length that its header states")
    return int(size)


def _not_a_log(path: Path, why: str) -> FileError:
    return FileError(
        f"{path} is not a log of nescio audit: {why}; expected an .npz file with aggregates, users "
        "and optionally windows, counts, participants and count_error (nescio.audit.Log.save)"
    )
