"""Rows of a table: from a caller's array to bytes, and back."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .._arrays import Array, ByteArray, as_array
from ..errors import ArgumentError
from ._params import TableParams
from ._state import part_spans


def parts_of(rows: ByteArray, params: TableParams) -> Iterator[ByteArray]:
    """Yields the rows of a table in the parts in which it is made."""
    for span in part_spans(params):
        first = params.grouping.first(span)
        yield rows[first : first + span.total]


def rows_as_bytes(rows: object, count: int, params: TableParams) -> ByteArray:
    """Converts `count` rows to bytes. Raises ArgumentError for another shape or dtype."""
    values = as_array(rows, "the rows")
    expected = (count, *params.row_shape)
    if values.shape != expected or values.dtype != params.dtype:
        raise ArgumentError(
            f"the rows have shape {values.shape} and dtype {values.dtype}, "
            f"expected {expected} and {params.dtype}"
        )
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return raw.reshape(count, params.row_bytes)


def servable(array: object) -> Array:
    """Converts the rows of a table to an array. Raises ArgumentError if there can be no table."""
    if isinstance(array, str | Path):
        raise ArgumentError(
            "table: found a path, expected an array: load it with numpy.load, or with Table.load"
        )
    values = as_array(array, "the table")
    if values.ndim == 0 or values.size == 0:
        raise ArgumentError(
            f"table: found shape {values.shape}, expected at least one row and element"
        )
    if values.dtype.hasobject or values.dtype.kind == "V":
        raise ArgumentError(
            f"dtype {values.dtype} is not supported; use numbers, bools or fixed-length strings"
        )
    return values


def as_values(rows: ByteArray, shape: tuple[int, ...], params: TableParams) -> Array:
    """Returns rows of bytes as an array of a shape, then that of a row."""
    values: Array = rows.view(params.dtype).reshape((*shape, *params.row_shape))
    return values
