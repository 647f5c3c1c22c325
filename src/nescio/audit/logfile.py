"""A record as an .npz file: arrays only, no pickles, sizes known before anything is allocated.

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

from ..errors import ArgumentError
from .problem import Log

__all__ = ["load_log", "save_log"]

MOST_BYTES = 1 << 36
_REQUIRED = {"aggregates", "users"}
_OPTIONAL = {"windows", "counts", "participants", "count_error"}


def save_log(log: Log, path: Path) -> None:
    """Writes a record. Raises ArgumentError if the file cannot be written."""
    arrays: dict[str, npt.NDArray[Any]] = {
        "aggregates": log.aggregates,
        "users": np.int64(log.users),  # type: ignore[dict-item]
        "windows": np.array(log.windows, np.int64).reshape(-1, 2),
        "count_error": np.int64(log.count_error),  # type: ignore[dict-item]
    }
    if log.counts is not None:
        arrays["counts"] = log.counts
    if log.participants is not None:
        arrays["participants"] = log.participants
    try:
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise ArgumentError(f"the log cannot be written to {path}: {error.strerror}") from error


def load_log(path: Path) -> Log:
    """Reads a record. Raises ArgumentError for a file that is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except OSError as error:
        raise ArgumentError(f"the log {path} cannot be read: {error.strerror or error}") from error
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
        if isinstance(error, ArgumentError):
            raise
        raise _not_a_log(path, str(error)[:200]) from error
    return Log(
        arrays["aggregates"],
        _scalar(arrays["users"], "users", path),
        tuple(map(tuple, arrays.get("windows", np.zeros((0, 2), np.int64)).tolist())),
        arrays.get("counts"),
        arrays.get("participants"),
        _scalar(arrays.get("count_error", np.int64(0)), "count_error", path),
    )


def _check_archive(archive: zipfile.ZipFile, path: Path) -> None:
    """Names, and the bytes that reading would allocate, before any is read."""
    names = {entry.filename.removesuffix(".npy") for entry in archive.infolist()}
    if not names >= _REQUIRED or names - _REQUIRED - _OPTIONAL:
        raise _not_a_log(path, f"it holds {sorted(names)[:8]}")
    total = 0
    for entry in archive.infolist():
        with archive.open(entry) as file:
            total += _declared_bytes(file, entry, path)
    if total > MOST_BYTES:
        raise _not_a_log(path, f"it has {total} bytes, expected at most {MOST_BYTES}")


def _declared_bytes(file: Any, entry: zipfile.ZipInfo, path: Path) -> int:  # noqa: ANN401
    """The bytes of an array by its header, which have to be those of the entry."""
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise _not_a_log(path, f"{entry.filename} has version {version}")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    size = dtype.itemsize
    for length in shape:
        size *= length
    if dtype.hasobject or size + file.tell() != entry.file_size:
        raise _not_a_log(path, f"{entry.filename} is not as long as it says")
    return int(size)


def _scalar(array: npt.NDArray[Any], what: str, path: Path) -> int:
    value = np.asarray(array)
    if value.shape != () or value.dtype.kind not in "iu":
        raise _not_a_log(path, f"{what} is no integer")
    return int(value)


def _not_a_log(path: Path, why: str) -> ArgumentError:
    return ArgumentError(
        f"{path} is no log of nescio audit: {why}; expected an .npz file with aggregates, users "
        "and optionally windows, counts, participants and count_error (nescio.audit.Log.save)"
    )
