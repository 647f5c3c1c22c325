"""The rows that a change is about: indices of the command line or a file, keys of a file."""

import re
from pathlib import Path

import numpy as np

from .._arrays import Array, load_array, shown
from ..errors import ArgumentError
from ._tables import read_keys

_PART = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_MAX_INDICES = 1 << 28


def row_names(indices: str | None, keys: Path | None) -> Array | list[str]:
    """Returns the indices, or the keys of a file if there are no indices.

    Raises ArgumentError and FileError.
    """
    if indices is None:
        assert keys is not None
        return read_keys(keys)
    if indices.endswith(".npy"):
        return load_array(Path(indices))
    return parse_indices(indices)


def parse_indices(text: str) -> Array:
    """Parses numbers and ranges, whose ends both count: 1,2,5-9. Raises ArgumentError."""
    parts = [_part(part.strip()) for part in text.split(",")]
    total = sum(last - first + 1 for first, last in parts)
    if total > _MAX_INDICES:
        raise ArgumentError(f"--indices: found {total} rows, expected at most {_MAX_INDICES}")
    return np.concatenate([np.arange(first, last + 1, dtype=np.int64) for first, last in parts])


def _part(text: str) -> tuple[int, int]:
    found = _PART.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
    if last < first:
        raise ArgumentError(
            f"--indices: found {shown(text)}, expected a number, or a range such as 5-9, or the "
            "name of a .npy file"
        )
    return first, last
