"""All input files as one sequence of rows."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np

from ..._arrays import Array
from ...errors import ArgumentError, FileError
from ._files import expanded, is_url
from ._parquet import parquet_rows
from ._raw import npy_rows, safetensors_rows


class Rows(Protocol):
    """Rows that can be read in ranges. A pickled one reads the same files elsewhere."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row as NumPy's."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""

    def read(self, first: int, count: int) -> Array:
        """Reads `count` rows from row `first` on. Raises FileError."""


_KINDS: dict[str, Callable[[str, Sequence[str]], Rows]] = {
    ".npy": npy_rows,
    ".parquet": parquet_rows,
    ".pq": parquet_rows,
    ".safetensors": safetensors_rows,
}


@dataclass(frozen=True, slots=True)
class Joined:
    """The rows of several files, one after the other; `ends` counts the rows up to each end."""

    files: tuple[Rows, ...]
    ends: tuple[int, ...]

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return self.ends[-1]

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row, the same in all files."""
        return self.files[0].row_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements, the same in all files."""
        return self.files[0].dtype

    def read(self, first: int, count: int) -> Array:
        """Reads `count` rows from row `first` on, of one file or several. Raises FileError."""
        parts, end = [], first + count
        while first < end:
            number = bisect_right(self.ends, first)
            begin = self.ends[number - 1] if number else 0
            until = min(end, self.ends[number])
            parts.append(self.files[number].read(first - begin, until - first))
            first = until
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros((0, *self.row_shape), self.dtype)


def open_rows(names: Sequence[str], columns: Sequence[str] = ()) -> Rows:
    """Opens input files: paths, or URLs, which may have wildcards. Some may have no rows.

    Raises FileError for files whose rows do not fit each other, and the errors of their readers.
    """
    names = [one for name in names for one in expanded(name)]
    opened = [(name, _opened(name, columns)) for name in names]
    found = [(name, file) for name, file in opened if file.rows]
    if not found:
        raise FileError(f"{names[0]}: found no rows, expected one at least")
    first, like = found[0]
    for name, file in found:
        if (file.row_shape, file.dtype) != (like.row_shape, like.dtype):
            raise FileError(
                f"{name}: found rows of shape {file.row_shape} and {file.dtype}, expected those of "
                f"{first}: {like.row_shape} and {like.dtype}"
            )
    files = tuple(file for _, file in found)
    return Joined(files, tuple(accumulate(file.rows for file in files)))


def _opened(name: str, columns: Sequence[str]) -> Rows:
    suffix = PurePosixPath(urlsplit(name).path if is_url(name) else name).suffix.lower()
    if suffix not in _KINDS:
        raise ArgumentError(
            f"{name}: found the ending {suffix!r}, expected one of {', '.join(_KINDS)}"
        )
    return _KINDS[suffix](name, columns)
