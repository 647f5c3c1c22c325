"""Rows whose bytes are one after the other in a file: arrays of NumPy, tensors of safetensors.

The header of a safetensors file is read here, because the library maps files of this machine alone:
8 bytes, its length; JSON, for each tensor its dtype, shape, and place after the header.
"""

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arrays import Array, shown
from ...errors import ArgumentError, FileError
from ._files import read_range, size_of

_NPY_HEADER = 1 << 14
_SAFETENSORS_HEADER = 100 << 20  # the limit of the library
_DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "F16": "<f2",
    "U32": "<u4", "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
    "C64": "<c8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RawRows:
    """The rows of an array at an offset of a file; `by_column` in Fortran's order."""

    name: str
    rows: int
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    by_column: bool = False

    def read(self, first: int, count: int) -> Array:
        """Reads `count` rows from row `first` on. Raises FileError."""
        size = self.dtype.itemsize
        width = math.prod(self.row_shape)
        if not self.by_column:
            at, length = self.offset + first * width * size, count * width * size
            values: Array = read_range(self.name, at, length).view(self.dtype)
            return values.reshape(count, *self.row_shape)
        columns = [
            read_range(self.name, self.offset + (i * self.rows + first) * size, count * size)
            for i in range(width)
        ]
        values = np.stack(columns).view(self.dtype)
        return values.reshape(*reversed(self.row_shape), count).T


def npy_rows(name: str, columns: Sequence[str]) -> RawRows:
    """Opens a .npy file. Raises FileError if it is not one of rows, ArgumentError for columns."""
    if columns:
        raise ArgumentError(
            f"--column: found {columns[0]!r}, but {name} has no columns: leave it out"
        )
    size = size_of(name)
    file = io.BytesIO(read_range(name, 0, min(size, _NPY_HEADER)).tobytes())
    try:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, by_column, dtype = read(file)
    except (ValueError, KeyError, EOFError) as error:
        raise FileError(
            f"{name} is not a NumPy array file of numbers; write one with numpy.save"
        ) from error
    if not shape or dtype.hasobject:
        raise FileError(f"{name}: found shape {shape} of {dtype}, expected rows of numbers")
    expected = file.tell() + math.prod(shape) * dtype.itemsize
    if size < expected:
        raise FileError(f"{name} is not whole: found {size} bytes, expected {expected}")
    return RawRows(
        name, shape[0], tuple(shape[1:]), dtype, file.tell(), by_column and len(shape) > 1
    )


def safetensors_rows(name: str, columns: Sequence[str]) -> RawRows:
    """Opens a tensor of a safetensors file: one by its name, or the only one.

    Raises FileError for another file, ArgumentError for a tensor that does not exist.
    """
    size = size_of(name)
    tensors, begin = _tensors(name, size)
    tensor = _named(name, columns, list(tensors))
    try:
        fields = tensors[tensor]
        kind, shape = fields["dtype"], tuple(map(int, fields["shape"]))
        first, end = map(int, fields["data_offsets"])
        dtype = np.dtype(_DTYPES[kind]) if kind in _DTYPES else None
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{name}: the description of tensor {tensor!r} is damaged") from error
    if dtype is None or not shape:
        raise FileError(
            f"{name}: found tensor {tensor!r} of {shown(kind)} and shape {shape}, expected rows of "
            f"{', '.join(_DTYPES)}: convert it"
        )
    whole = min(shape) >= 0 and end - first == math.prod(shape) * dtype.itemsize
    if not whole or not 0 <= first <= end <= size - begin:
        raise FileError(f"{name}: tensor {tensor!r} is not whole, or its description is damaged")
    return RawRows(name, shape[0], shape[1:], dtype, begin + first)


def _tensors(name: str, size: int) -> tuple[dict[str, Any], int]:
    """Reads the descriptions of all tensors, and the offset of their bytes."""
    length = int(read_range(name, 0, 8).view("<u8")[0]) if size >= 8 else size
    if length > min(size - 8, _SAFETENSORS_HEADER):
        raise FileError(f"{name} is not a safetensors file: its header has {length} bytes")
    try:
        found = json.loads(read_range(name, 8, length).tobytes())
        found.pop("__metadata__", None)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(f"{name} is not a safetensors file: its header is damaged") from error
    return found, 8 + length


def _named(name: str, columns: Sequence[str], tensors: Sequence[str]) -> str:
    """Returns the tensor to read. Raises ArgumentError if it does not exist, or is not clear."""
    if len(columns) > 1:
        raise ArgumentError(f"--column: found {len(columns)}, expected one tensor of {name}")
    if columns and columns[0] in tensors:
        return columns[0]
    if not columns and len(tensors) == 1:
        return tensors[0]
    found = repr(columns[0]) if columns else f"no tensor for {name}"
    names = ", ".join(sorted(tensors)) or "none"
    raise ArgumentError(f"--column: found {found}, expected one of {shown(names)}")
