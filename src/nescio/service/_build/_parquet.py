"""Rows of a Parquet file: a column of lists of one length, or several columns of numbers.

A reader goes through the file in batches, and keeps its place: a read that begins where the last
one ended continues. Another one begins with the row group of its first row. pyarrow reads a few
pages at a time, so that a row group may be larger than the memory.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..._arrays import Array, shown
from ...errors import ArgumentError, FileError
from ._files import open_file, reading

_BATCH_BYTES = 8 << 20
_BUFFER_BYTES = 1 << 20


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - of the extra `cluster`
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise ArgumentError(
            "Parquet files need the package 'pyarrow': install nescio[cluster]"
        ) from error
    return pa, pq


class ParquetRows:
    """The rows of some columns of a file; `groups` has the ends of the row groups."""

    def __init__(
        self,
        name: str,
        columns: tuple[str, ...],
        groups: tuple[int, ...],
        row_shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self.name = name
        self.rows = groups[-1] if groups else 0
        self.row_shape = row_shape
        self.dtype = dtype
        self._columns = columns
        self._groups = groups
        self._at = -1
        self._batches: Iterator[Array] = iter(())
        self._rest = np.zeros((0, *row_shape), dtype)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the description without the open file."""
        fields = (self.name, self._columns, self._groups, self.row_shape, self.dtype)
        return ParquetRows, fields

    def read(self, first: int, count: int) -> Array:
        """Reads `count` rows from row `first` on. Raises FileError."""
        with reading(self.name):
            if first != self._at:
                self._begin(first)
            return self._take(count)

    def _begin(self, first: int) -> None:
        """Goes to a row."""
        group = next(i for i, end in enumerate(self._groups) if first < end)
        self._at = self._groups[group - 1] if group else 0
        self._rest = self._rest[:0]
        self._batches = self._opened(range(group, len(self._groups)))
        while self._at < first:
            self._take(min(first - self._at, self._batch_rows))

    def _take(self, count: int) -> Array:
        """Returns the next rows."""
        parts, missing = [], count
        while missing:
            if not len(self._rest):
                self._rest = next(self._batches, self._rest)
                if not len(self._rest):
                    raise FileError(f"{self.name} has changed: found fewer rows than before")
            parts.append(self._rest[:missing])
            self._rest = self._rest[missing:]
            missing -= len(parts[-1])
        self._at += count
        return np.concatenate(parts) if parts else self._rest[:0]

    @property
    def _batch_rows(self) -> int:
        return max(1, _BATCH_BYTES // max(1, self.dtype.itemsize * int(np.prod(self.row_shape))))

    def _opened(self, groups: range) -> Iterator[Array]:
        """Yields the rows of some row groups, in batches."""
        _, pq = _pyarrow()
        with open_file(self.name) as raw, _parquet_file(pq, raw) as file:
            for batch in file.iter_batches(
                self._batch_rows, row_groups=list(groups), columns=list(self._columns)
            ):
                values = _values(self.name, batch, self._columns)
                if len(values) and (values.shape[1:], values.dtype) != (self.row_shape, self.dtype):
                    raise FileError(
                        f"{self.name}: found rows of shape {values.shape[1:]} and of "
                        f"{self.row_shape}, expected lists of one length"
                    )
                if len(values):
                    yield values


def parquet_rows(name: str, columns: Sequence[str]) -> ParquetRows:
    """Opens columns of a file: those named, or the only one. A file may have no rows.

    Raises FileError for another file, ArgumentError for columns that do not exist or fit.
    """
    pa, pq = _pyarrow()
    with reading(name), open_file(name) as raw, _parquet_file(pq, raw) as file:
        names = _named(name, columns, file.schema_arrow)
        metadata = file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        batches = file.iter_batches(1, columns=list(names))
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            kinds = [file.schema_arrow.field(one).type for one in names]
            first = pa.RecordBatch.from_arrays([pa.array([], kind) for kind in kinds], list(names))
        values = _values(name, first, names)
    return ParquetRows(name, names, tuple(accumulate(sizes)), values.shape[1:], values.dtype)


def _parquet_file(pq: Any, raw: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    return pq.ParquetFile(raw, buffer_size=_BUFFER_BYTES, pre_buffer=False)


def _named(name: str, columns: Sequence[str], schema: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Returns the columns to read. Raises ArgumentError if one does not exist, or is not clear."""
    names = list(schema.names)
    missing = [column for column in columns if column not in names]
    if missing or (not columns and len(names) != 1):
        found = repr(missing[0]) if missing else f"no column for {name}"
        raise ArgumentError(f"--column: found {found}, expected some of {shown(', '.join(names))}")
    return tuple(columns or names)


def _values(name: str, batch: Any, columns: Sequence[str]) -> Array:  # noqa: ANN401
    """Converts a batch to rows. Raises FileError for nulls, ragged lists and other types."""
    arrays = [_dense(name, column, batch.column(column)) for column in columns]
    if len(arrays) == 1:
        return arrays[0]
    kinds = [f"{array.dtype}{list(array.shape[1:]) or ''}" for array in arrays]
    if len(set(kinds)) > 1 or arrays[0].ndim > 1:
        raise FileError(
            f"{name}: found columns of {', '.join(kinds)}, expected numbers of one type"
        )
    return np.stack(arrays, axis=1)


def _dense(name: str, column: str, array: Any) -> Array:  # noqa: ANN401
    """Converts a column of numbers, or of lists of one length, which may contain lists."""
    pa, _ = _pyarrow()
    kinds = pa.types
    shape = [len(array)]
    while True:
        if array.null_count:
            raise FileError(f"{name}: found nulls in column {column!r}, expected numbers")
        if not _is_list(kinds, array.type):
            break
        shape.append(_length(name, column, array, pa))
        array = array.flatten()
    kind = array.type
    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
        raise FileError(
            f"{name}: column {column!r} has the type {kind}, expected numbers, or lists of numbers"
        )
    values: Array = array.to_numpy(zero_copy_only=False)
    return values.reshape(shape)


def _is_list(kinds: Any, kind: Any) -> bool:  # noqa: ANN401
    tests: tuple[Callable[[Any], bool], ...] = (
        kinds.is_fixed_size_list,
        kinds.is_list,
        kinds.is_large_list,
    )
    return any(test(kind) for test in tests)


def _length(name: str, column: str, array: Any, pa: Any) -> int:  # noqa: ANN401
    """Returns the length of all lists. Raises FileError if there are several."""
    if pa.types.is_fixed_size_list(array.type):
        return int(array.type.list_size)
    lengths = array.value_lengths().to_numpy()
    if len(lengths) and (lengths != lengths[0]).any():
        raise FileError(
            f"{name}: found lists of {lengths.min()} and of {lengths.max()} numbers in column "
            f"{column!r}, expected lists of one length"
        )
    return int(lengths[0]) if len(lengths) else 0
