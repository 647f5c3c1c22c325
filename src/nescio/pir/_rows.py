"""Rows of a table: from a caller's array to bytes, and back; the rows that changes are about."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_array, as_count, shown
from ..dpf import Generator, Output
from ..errors import ArgumentError, MalformedMessageError
from ._bins import Bins
from ._hash_shape import rows_per_record
from ._params import MAX_RECORD_ROWS, TableParams, layout_digest
from ._state import part_spans

if TYPE_CHECKING:
    from ._table import Table

Operation = Literal["update", "insert", "delete", "append", "clear", "grow"]
NO_DIGEST = "0" * 64
"""The digest of a table that is not made yet."""

_WORDS = (1, 4)


class RowKind(NamedTuple):
    """The rows of changes: their number, and their shape and dtype as NumPy's.

    A change names each of its rows by `words` words of 64 bits: one, the row's index, or four, its
    hashed key.
    """

    rows: int
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    words: int = 1

    @property
    def row_bytes(self) -> int:
        """The size of one row in bytes."""
        return math.prod(self.row_shape) * self.dtype.itemsize

    @classmethod
    def of(cls, params: TableParams) -> "RowKind":
        """Returns the kind of the rows that a table stores."""
        return cls(params.rows, params.row_shape, params.dtype)

    @property
    def name_bytes(self) -> int:
        """The size of the name of one row in bytes."""
        return 8 * self.words

    def to_dict(self) -> dict[str, object]:
        """Converts the kind to JSON types."""
        return {
            "rows": self.rows,
            "row_shape": list(self.row_shape),
            "dtype": self.dtype.str,
            "words": self.words,
        }

    @classmethod
    def from_dict(cls, params: TableParams, fields: object) -> "RowKind":
        """Parses the fields of `to_dict` for a table. Raises MalformedMessageError."""
        rest = dict(fields) if isinstance(fields, Mapping) else {}
        words = rest.pop("words", None)
        if type(words) is not int or words not in _WORDS:
            raise MalformedMessageError(f"changes: found {shown(fields)}, expected words of 1 or 4")
        return cls.of(params.with_rows(rest))._replace(words=words)


class Target(Protocol):
    """The meaning of changes of a table with a layout, whose rows are not those that it stores.

    `moved` has the rows that the change under way moves to other places, as bytes: a change that is
    made again must not read them, where the memory may be that of a later time.
    """

    moved: ByteArray

    @property
    def row_kind(self) -> RowKind:
        """The rows of changes."""

    def check(self, operation: Operation) -> None:
        """Raises ArgumentError for an operation that the table does not have."""

    def change(
        self, table: "Table", operation: Operation, indices: IndexArray, rows: Array, version: str
    ) -> TableParams:
        """Makes a change; a deletion has no `rows`. Raises the errors of `Table.update`.

        `indices` are (n,), or (n, row_kind.words) if that is not 1.
        """


def parts_of(rows: ByteArray, params: TableParams) -> Iterator[ByteArray]:
    """Yields the rows of a table in the parts in which it is made, then zeros for vacant rows."""
    for span in part_spans(params):
        first = params.grouping.first(span)
        part = rows[first : first + span.total]
        yield (
            np.pad(part, ((0, span.total - len(part)), (0, 0))) if len(part) < span.total else part
        )


def rows_as_bytes(rows: object, count: int, kind: TableParams | RowKind) -> ByteArray:
    """Converts `count` rows to bytes. Raises ArgumentError for another shape or dtype."""
    values = as_array(rows, "the rows")
    expected = (count, *kind.row_shape)
    if values.shape != expected or values.dtype != kind.dtype:
        raise ArgumentError(
            f"the rows have shape {values.shape} and dtype {values.dtype}, "
            f"expected {expected} and {kind.dtype}"
        )
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return raw.reshape(count, kind.row_bytes)


def new_params(
    kind: RowKind,
    *,
    version: object,
    output: Output,
    generator: Generator,
    record_rows: int | None,
    bins: tuple[Bins, ...],
    layout: bytes,
) -> TableParams:
    """Returns the parameters of a new table, whose digest is not known yet. Raises ArgumentError.

    `record_rows` of None chooses as many as fit 256 bytes.
    """
    if record_rows is None:
        record_rows = rows_per_record(max(1, kind.row_bytes))
    return TableParams(
        rows=kind.rows,
        row_shape=kind.row_shape,
        dtype=kind.dtype,
        output=output,
        generator=generator,
        version=str(version),
        digest=NO_DIGEST,
        record_rows=as_count(record_rows, "rows per record", 1, MAX_RECORD_ROWS),
        bins=bins,
        layout=layout_digest(layout),
    )


def servable(array: object) -> Array:
    """Converts a value to an array whose rows a table can have. Raises ArgumentError."""
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
