"""The wire format of a change to a table's rows, and its only parser.

All little-endian:

    offset    bytes
    0         2       "NC"
    2         1       version of this format, 1
    3         1       operation: 0 update, 1 insert, 2 delete
    4         4       length v of the new version, in bytes
    8         8       count n of rows
    16        16      id of the table to change
    32        16      random name of this change
    48        v       the new version, UTF-8
    48 + v    8 n     indices, 64 bits each
    ...               n rows of row_bytes each; absent for a deletion

The table id binds a change to one version of the table, so that it is applied only once. The name
distinguishes a change that is sent again from an equal change that is new.
"""

import secrets
import struct
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np

from .._arrays import ByteArray, IndexArray, as_bytes
from ..errors import MalformedMessageError
from ._params import MAX_VERSION_LENGTH, TableParams
from ._table import Table
from ._wire import wrong_table

VERSION = 1
NAME_BYTES = 16
HEADER_BYTES = 48
_HEADER = struct.Struct("<2sBBIQ16s16s")

Operation = Literal["update", "insert", "delete"]
OPERATIONS: tuple[Operation, ...] = ("update", "insert", "delete")


@dataclass(frozen=True)
class Change:
    """Rows to update, insert or delete; `rows` is (n, row_bytes), or (0, ...) for a deletion."""

    operation: Operation
    version: str
    indices: IndexArray
    rows: ByteArray
    name: bytes = field(default_factory=lambda: secrets.token_bytes(NAME_BYTES))

    def encode(self, params: TableParams) -> bytes:
        """Encodes the change for the table that `params` describe."""
        version = self.version.encode()
        header = _HEADER.pack(
            b"NC",
            VERSION,
            OPERATIONS.index(self.operation),
            len(version),
            len(self.indices),
            params.id,
            self.name,
        )
        return header + version + self.indices.tobytes() + self.rows.tobytes()

    @classmethod
    def parse(cls, params: TableParams, data: object) -> "Change":
        """Parses a change to the table that `params` describe.

        Raises MalformedMessageError, or MismatchError for another table or version.
        """
        raw = as_bytes(data, "a change")
        if len(raw) < HEADER_BYTES:
            raise MalformedMessageError(
                f"not a change: found {len(raw)} bytes, expected a header of {HEADER_BYTES} bytes"
            )
        head = _HEADER.unpack(raw[:HEADER_BYTES].tobytes())
        magic, version, operation, length, count, table, name = head
        if magic != b"NC" or version != VERSION or operation >= len(OPERATIONS):
            raise MalformedMessageError(
                f"not a change that this release supports: it begins with {raw[:4].tobytes()!r}"
            )
        if table != params.id:
            raise wrong_table("a change", table, params)
        shape = (count, params.row_bytes) if OPERATIONS[operation] != "delete" else (0, 0)
        expected = HEADER_BYTES + length + 8 * count + prod(shape)
        if not 1 <= length <= 4 * MAX_VERSION_LENGTH:
            raise MalformedMessageError(
                f"a change's version: found {length} bytes, expected 1 to {4 * MAX_VERSION_LENGTH}"
            )
        if len(raw) != expected:
            raise MalformedMessageError(
                f"a change of {count} rows: found {len(raw)} bytes, expected {expected}"
            )
        text, numbers, rows = np.split(raw[HEADER_BYTES:], [length, length + 8 * count])
        try:
            new_version = text.tobytes().decode()
        except UnicodeDecodeError as error:
            raise MalformedMessageError("a change's version is not UTF-8") from error
        indices = numbers.copy().view(np.uint64)
        return cls(OPERATIONS[operation], new_version, indices, rows.reshape(shape), name)

    def apply(self, table: Table) -> TableParams:
        """Applies the change. Raises IndexRangeError and ArgumentError as `Table` does."""
        if self.operation == "delete":
            return table.delete(self.indices, version=self.version)
        params = table.params
        rows = self.rows.reshape(-1).view(params.dtype)
        values = rows.reshape((len(self.indices), *params.row_shape))
        change = table.update if self.operation == "update" else table.insert
        return change(self.indices, values, version=self.version)


def make_change(table: Table, data: bytes) -> TableParams:
    """Parses a change and applies it, once if it is sent again before any other change.

    Raises the errors of `Change.parse` and `Change.apply`.
    """
    return table.change(data, lambda params: Change.parse(params, data).apply(table))
