"""A change to a table's rows as bytes: written here, and checked here and nowhere else.

All little-endian:

    offset    bytes
    0         2       "NC"
    2         1       version of this format, 1
    3         1       operation: 0 update, 1 insert, 2 delete
    4         4       length v of the new version's text
    8         8       count n of rows
    16        16      id of the table that is changed
    32        16      name of this change, drawn at random
    48        v       the new version, UTF-8
    48 + v    8 n     indices, 64 bits each
    ...               n rows, row_bytes each; none to delete

A change names the version that it is made to, so that it is made once; and itself, so that one
that is sent again is told from another that looks like it.
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
    """Rows to update, insert or delete; `rows` has shape (n, row_bytes), or (0, ...) to delete."""

    operation: Operation
    version: str
    indices: IndexArray
    rows: ByteArray
    name: bytes = field(default_factory=lambda: secrets.token_bytes(NAME_BYTES))

    def encode(self, params: TableParams) -> bytes:
        """The change as bytes, for the table that `params` describe."""
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
        """Reads a change to the table that `params` describe.

        Raises MalformedMessageError, or MismatchError if it is for another table or version.
        """
        raw = as_bytes(data, "a change")
        if len(raw) < HEADER_BYTES:
            raise MalformedMessageError(
                f"not a change: found {len(raw)} bytes, its header alone has {HEADER_BYTES}"
            )
        head = _HEADER.unpack(raw[:HEADER_BYTES].tobytes())
        magic, version, operation, length, count, table, name = head
        if magic != b"NC" or version != VERSION or operation >= len(OPERATIONS):
            raise MalformedMessageError(
                f"not a change that this release knows: it begins with {raw[:4].tobytes()!r}"
            )
        if table != params.id:
            raise wrong_table("a change", table, params)
        shape = (count, params.row_bytes) if OPERATIONS[operation] != "delete" else (0, 0)
        expected = HEADER_BYTES + length + 8 * count + prod(shape)
        if not 1 <= length <= 4 * MAX_VERSION_LENGTH:
            raise MalformedMessageError(
                f"a change's version has 1 to {4 * MAX_VERSION_LENGTH} bytes, found {length}"
            )
        if len(raw) != expected:
            raise MalformedMessageError(
                f"a change of {count} rows has {expected} bytes, found {len(raw)}"
            )
        text, numbers, rows = np.split(raw[HEADER_BYTES:], [length, length + 8 * count])
        try:
            new_version = text.tobytes().decode()
        except UnicodeDecodeError as error:
            raise MalformedMessageError("a change's version is not UTF-8") from error
        indices = numbers.copy().view(np.uint64)
        return cls(OPERATIONS[operation], new_version, indices, rows.reshape(shape), name)

    def apply(self, table: Table) -> TableParams:
        """Makes the change. Raises IndexRangeError and ArgumentError as the table does."""
        if self.operation == "delete":
            return table.delete(self.indices, version=self.version)
        params = table.params
        rows = self.rows.reshape(-1).view(params.dtype)
        values = rows.reshape((len(self.indices), *params.row_shape))
        change = table.update if self.operation == "update" else table.insert
        return change(self.indices, values, version=self.version)


def make_change(table: Table, data: bytes) -> TableParams:
    """Reads a change and makes it; sent again, before any other change, it does nothing more.

    Raises what `Change.parse` and `Change.apply` raise.
    """
    return table.change(data, lambda params: Change.parse(params, data).apply(table))
