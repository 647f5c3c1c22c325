"""Log files: an .npz of plain arrays.

aggregates     float32 or float64, (rounds, dimensions)
users          int64, ()
windows        int64, (windows, 2)        optional
counts         int64, (users, windows)    optional, with windows
participants   int64, (rounds,)           optional
count_error    int64, ()                  optional, 0
"""

from functools import partial
from pathlib import Path
from typing import Any

from ..._npz import Arrays, read_arrays, write_arrays
from ...errors import FileError

__all__ = ["read_log", "write_log"]

_REQUIRED = {"aggregates", "users"}
_OPTIONAL = {"windows", "counts", "participants", "count_error"}
_SCALARS = ("users", "count_error")


def write_log(arrays: dict[str, Any], path: Path) -> None:
    """Writes the arrays of a log. Raises FileError if the file cannot be written."""
    write_arrays(arrays, path, "the log")


def read_log(path: Path) -> Arrays:
    """Reads the arrays of a log. Raises FileError if the file is not a log."""
    arrays = read_arrays(path, "the log", _REQUIRED, _OPTIONAL, partial(_not_a_log, path))
    for name in _SCALARS:
        if name in arrays and (arrays[name].shape != () or arrays[name].dtype.kind not in "iu"):
            raise _not_a_log(path, f"{name} is not an integer")
    return arrays


def _not_a_log(path: Path, why: str) -> FileError:
    return FileError(
        f"{path} is not a log of nescio audit: {why}; expected an .npz file with aggregates, users "
        "and optionally windows, counts, participants and count_error (nescio.audit.Log.save)"
    )
