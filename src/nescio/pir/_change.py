"""The wire format of a change to a table's rows, and its only parser.

All little-endian:

    offset    bytes
    0         2       "NC"
    2         1       version of this format, 1
    3         1       operation: 0 update, 1 insert, 2 delete, 3 append, 4 clear, 5 grow
    4         4       length v of the new version, in bytes
    8         8       count n of rows
    16        16      id of the table to change
    32        16      random name of this change
    48        v       the new version, UTF-8
    48 + v    8 n     indices, 64 bits each; in a keyed table 32 n, hashed keys; absent in a growth
    ...               n rows of row_bytes each; only in an update, an insertion or an append

The table id binds a change to one version of the table, so that it is applied only once. The name
distinguishes a change that is sent again from an equal change that is new. The rows are those of
`row_kind`, which are not always those that the table stores.
"""

import hashlib
import secrets
import struct
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_bytes
from ..errors import ArgumentError, MalformedMessageError
from ._layout_kind import layout_kind
from ._params import MAX_VERSION_LENGTH, TableParams
from ._rows import Operation, RowKind
from ._table import Table
from ._versions import LastChange
from ._wire import wrong_table

VERSION = 1
NAME_BYTES = 16
HEADER_BYTES = 48
_HEADER = struct.Struct("<2sBBIQ16s16s")
_TABLE = slice(16, 32)
_NAME = slice(32, 48)
MAX_HEAD_BYTES = HEADER_BYTES + 4 * MAX_VERSION_LENGTH

OPERATIONS: tuple[Operation, ...] = ("update", "insert", "delete", "append", "clear", "grow")
_WITH_ROWS = frozenset[Operation]({"update", "insert", "append"})
_PLAIN = frozenset[Operation]({"append", "clear", "grow"})


def summary(data: bytes) -> dict[str, object]:
    """Returns what a log may say of a change that is not checked: operation, version and rows."""
    if len(data) < HEADER_BYTES:
        return {}
    magic, _, operation, length, count, _, _ = _HEADER.unpack_from(data)
    if magic != b"NC" or operation >= len(OPERATIONS) or length > 4 * MAX_VERSION_LENGTH:
        return {}
    version = data[HEADER_BYTES : HEADER_BYTES + length].decode(errors="replace")
    text = "".join(c if c.isprintable() else "?" for c in version)
    return {"operation": OPERATIONS[operation], "version": text, "rows": count}


class _Head(NamedTuple):
    """The fixed part of a change."""

    operation: Operation
    version_bytes: int
    rows: int
    name: bytes

    @classmethod
    def parse(cls, params: TableParams, data: bytes, expected: bytes | None = None) -> "_Head":
        """Parses the first bytes of a change to the table that `params` describe, or another id."""
        if len(data) < HEADER_BYTES:
            raise MalformedMessageError(
                f"not a change: found {len(data)} bytes, expected a header of {HEADER_BYTES} bytes"
            )
        magic, version, operation, length, count, table, name = _HEADER.unpack_from(data)
        if magic != b"NC" or version != VERSION or operation >= len(OPERATIONS):
            raise MalformedMessageError(
                f"not a change that this release supports: it begins with {data[:4]!r}"
            )
        if table != (params.id if expected is None else expected):
            raise wrong_table("a change", table, params)
        if not 1 <= length <= 4 * MAX_VERSION_LENGTH:
            raise MalformedMessageError(
                f"a change's version: found {length} bytes, expected 1 to {4 * MAX_VERSION_LENGTH}"
            )
        return cls(OPERATIONS[operation], length, count, name)

    def shape(self, kind: RowKind) -> tuple[int, int]:
        """Returns the shape of the rows as bytes."""
        return (self.rows, kind.row_bytes) if self.operation in _WITH_ROWS else (0, 0)

    def names(self) -> int:
        """Returns the number of rows that the change names."""
        return self.rows if self.operation != "grow" else 0

    def total_bytes(self, kind: RowKind) -> int:
        """Returns the length of the whole change."""
        names = kind.name_bytes * self.names()
        return HEADER_BYTES + self.version_bytes + names + prod(self.shape(kind))

    @staticmethod
    def version(text: bytes) -> str:
        """Decodes the new version."""
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise MalformedMessageError("a change's version is not UTF-8") from error


@dataclass(frozen=True)
class Change:
    """Rows to change; `rows` is (n, row_bytes), or (0, ...) if the operation has none.

    `indices` are (n,), or (n, 4) for hashed keys; a growth by `count` rows has none.
    """

    operation: Operation
    version: str
    indices: IndexArray
    rows: ByteArray
    name: bytes = field(default_factory=lambda: secrets.token_bytes(NAME_BYTES))
    count: int = 0

    def encode(self, params: TableParams, table: bytes | None = None) -> bytes:
        """Encodes the change for the table that `params` describe, or the one with another id."""
        version = self.version.encode()
        header = _HEADER.pack(
            b"NC",
            VERSION,
            OPERATIONS.index(self.operation),
            len(version),
            self.count if self.operation == "grow" else len(self.indices),
            params.id if table is None else table,
            self.name,
        )
        return header + version + self.indices.tobytes() + self.rows.tobytes()

    @classmethod
    def parse(
        cls,
        params: TableParams,
        data: object,
        kind: RowKind | None = None,
        table: bytes | None = None,
    ) -> "Change":
        """Parses a change to the table that `params` describe, by default of its own rows.

        The id of the table must be that of `params`, or `table`. Raises MalformedMessageError, or
        MismatchError for another table or version.
        """
        raw = as_bytes(data, "a change")
        head = _Head.parse(params, raw[: HEADER_BYTES + 1].tobytes(), table)
        kind = RowKind.of(params) if kind is None else kind
        expected = head.total_bytes(kind)
        if len(raw) != expected:
            raise MalformedMessageError(
                f"a change of {head.rows} rows: found {len(raw)} bytes, expected {expected}"
            )
        names = head.names()
        ends = [head.version_bytes, head.version_bytes + kind.name_bytes * names]
        text, numbers, rows = np.split(raw[HEADER_BYTES:], ends)
        new_version = head.version(text.tobytes())
        shape = (names,) if kind.words == 1 else (names, kind.words)
        indices = numbers.copy().view(np.uint64).reshape(shape)
        rows = rows.reshape(head.shape(kind))
        return cls(head.operation, new_version, indices, rows, head.name, head.rows)

    def apply(self, table: Table) -> TableParams:
        """Applies the change.

        Raises IndexRangeError and ArgumentError as `Table` does, and as `check_head`.
        """
        _check_operation(table, self.operation)
        values = self.values(table)
        if table.target is not None:
            return table.target.change(table, self.operation, self.indices, values, self.version)
        version = self.version
        match self.operation:
            case "update":
                table.update(self.indices, values, version=version)
            case "insert":
                table.insert(self.indices, values, version=version)
            case "delete":
                table.delete(self.indices, version=version)
            case "append":
                table.append(values, at=self.indices, version=version)
            case "clear":
                table.clear(self.indices, version=version)
            case "grow":
                table.grow(self.count, version=version)
        return table.params

    def values(self, table: Table) -> Array:
        """Returns the rows as those of a table's changes; none for an operation without rows."""
        kind = row_kind(table)
        values: Array = self.rows.reshape(-1).view(kind.dtype)
        return values.reshape((len(self.rows), *kind.row_shape))


def make_change(table: Table, data: bytes) -> TableParams:
    """Parses a change and applies it, once if it is sent again before any other change.

    If the table has a journal, the change is in it before it is made. A table with a `remote` is
    changed there. Raises the errors of
    `Change.parse` and `Change.apply`, and FileError if the journal cannot be written.
    """
    if table.remote is not None:
        return table.remote(data)
    made, kind = last_change_of(data), row_kind(table)

    def make(params: TableParams) -> TableParams:
        return Change.parse(params, data, kind).apply(table)

    if table.journal is None:
        return table.change(made, make)
    with table.changing(), table.journal.recording(data) as record:
        return table.change(made, make, record)


def last_change_of(data: bytes) -> LastChange:
    """Returns what a table remembers of an encoded change that it has made."""
    return LastChange(data[_NAME], content_of(data), data[_TABLE])


def row_kind(table: Table) -> RowKind:
    """Returns the rows that changes of a table are about: its own, or those of its target."""
    return RowKind.of(table.params) if table.target is None else table.target.row_kind


class Summary(NamedTuple):
    """The head of a change to any table, which its sender has made: for the sender's records."""

    operation: Operation
    version: str
    rows: int
    changed: bytes
    """The id of the table to change."""
    name: bytes

    @classmethod
    def of(cls, data: bytes) -> "Summary":
        """Reads the head of an encoded change. Raises MalformedMessageError."""
        if len(data) < HEADER_BYTES or data[:3] != bytes((*b"NC", VERSION)):
            raise MalformedMessageError(f"not a change: it begins with {data[:4]!r}")
        _, _, operation, length, rows, changed, name = _HEADER.unpack_from(data)
        if operation >= len(OPERATIONS) or not 1 <= length <= len(data) - HEADER_BYTES:
            raise MalformedMessageError("not a change that this release supports")
        version = _Head.version(data[HEADER_BYTES : HEADER_BYTES + length])
        return cls(OPERATIONS[operation], version, rows, changed, name)


def content_of(data: bytes) -> bytes:
    """Hashes all of an encoded change but its name: equal changes to equal tables are equal."""
    content = hashlib.sha256(data[: _NAME.start])
    content.update(memoryview(data)[_NAME.stop :])
    return content.digest()


def operation_of(data: bytes) -> Operation:
    """Returns the operation of an encoded change."""
    return OPERATIONS[data[3]]


def head_of(data: bytes) -> bytes:
    """Returns the head of an encoded change: all of it but the indices and the rows."""
    (length,) = struct.unpack_from("<I", data, 4)
    return data[: HEADER_BYTES + length]


def check_head(table: Table, data: bytes, max_bytes: int) -> None:
    """Checks the head of a change, before the change itself is sent.

    Raises MalformedMessageError; MismatchError for another table or version; ArgumentError for a
    version that the table has had, a deletion of more rows than there are, or a change of more than
    `max_bytes`.
    """
    params = table.params
    head = _Head.parse(params, data)
    if len(data) != HEADER_BYTES + head.version_bytes:
        raise MalformedMessageError(
            f"the head of a change: found {len(data)} bytes, expected "
            f"{HEADER_BYTES + head.version_bytes}"
        )
    version = head.version(data[HEADER_BYTES:])
    if table.has_had(version):
        raise ArgumentError(f"version: found {version!r}, which this table has had already")
    _check_operation(table, head.operation)
    total = head.total_bytes(row_kind(table))
    if total > max_bytes:
        raise ArgumentError(
            f"the change has {total} bytes, this server reads at most "
            f"{max_bytes}: change fewer rows at a time"
        )
    rows = params.rows + (head.rows if head.operation in ("insert", "grow") else 0)
    if rows != params.rows and not params.is_cut:
        params = replace(params, rows=rows, bins=())
    replace(params, version=version)  # raises ArgumentError if that is not a table


def _check_operation(table: Table, operation: Operation) -> None:
    """Raises ArgumentError for an operation that a table does not have.

    A row of a table with keys or a batch layout is only a part of what it says: without a target,
    nobody knows which other rows must change with it.
    """
    kind = layout_kind(table.layout)
    if operation in _PLAIN:
        table.check_uncut()
    if table.target is not None:
        table.target.check(operation)
    elif kind == "keyed":
        raise ArgumentError(
            "found a change of a table with keys that was loaded from a file, which lacks the "
            "hashes of its keys: serve a KeyedTable that was made from the keys"
        )
    elif kind == "batch":
        raise ArgumentError(
            "found a change of rows of a batch table whose server does not know it as one: serve "
            "nescio.pir.batch.BatchTable(table).table"
        )
    elif operation != "update":
        table.check_uncut()
