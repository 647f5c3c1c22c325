"""The public parameters of a table, which clients need and which bind messages to a table."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import _core
from .._arrays import MAX_DIMENSIONS, ByteArray, shown
from ..dpf import OUTPUTS, Generator, Output, check_generator
from ..errors import ArgumentError, MalformedMessageError
from ._hash_shape import HASH_ROW_BYTES, HashShape, digest_of

FORMAT = 2
MAX_ROWS = 1 << 40
MAX_ROW_BYTES = 1 << 24
MAX_RECORD_ROWS = 1 << 16
MAX_VERSION_LENGTH = 128
ID_BYTES = 16

# NumPy's own names of fixed-size types that are the same on every machine. No other text from
# outside reaches NumPy's parser.
_DTYPE = re.compile(
    r"\|b1|\|[iu]1|[<>]([iu][248]|f[248]|c(8|16)|U[1-9]\d{0,7}"
    r"|[mM]8\[([1-9]\d{0,5})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])|\|S[1-9]\d{0,7}"
)
_FIELDS = {
    "digest", "dtype", "format", "generator", "hashes", "output", "record_rows", "row_shape",
    "rows", "version",
}  # fmt: skip
_T = TypeVar("_T")


class Layout(NamedTuple):
    """The size of a table in the engine, and the group of its shares."""

    rows: int
    row_bytes: int
    output: Output


@dataclass(frozen=True)
class TableParams:
    """The public parameters of a table.

    `digest` is a hash of all rows as bytes, so tables with equal parameters have equal content. A
    client checks rows against it, with hash tables whose shape is `hashes`.
    `id` is a hash of all parameters. Every query and every answer contains it, which prevents
    using a message with another table.

    Lookups get records of `record_rows` rows, a power of two, of which the client takes its row.
    `rows` is 1 to 2^40, `row_shape` and `dtype` are NumPy's, `output` and `generator` those of
    `nescio.dpf`, `version` is a text that the operator chooses. Raises ArgumentError for invalid
    values. docs/wire-format.md defines `digest` and `hashes`.
    """

    rows: int
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    output: Output
    generator: Generator
    version: str
    digest: str
    record_rows: int

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ArgumentError(f"table parameters: {problem}")

    def _problems(self) -> Iterator[str]:
        """Yields the problems. A check may rely on earlier ones: only the first problem counts."""
        if not 1 <= self.rows <= MAX_ROWS:
            yield f"found {shown(self.rows)} rows, expected 1 to 2^40"
        if not _DTYPE.fullmatch(self.dtype.str):
            yield f"dtype {self.dtype} is not supported; use numbers, bools or fixed-length strings"
        if len(self.row_shape) > MAX_DIMENSIONS or any(n < 1 for n in self.row_shape):
            yield f"found rows of shape {shown(self.row_shape)}, expected at least one element"
        if not 1 <= self.row_bytes <= MAX_ROW_BYTES:
            yield f"found rows of {shown(self.row_bytes)} bytes, expected 1 to {MAX_ROW_BYTES}"
        yield from self._record_problems()
        if self.output not in OUTPUTS:
            yield f"output: found {self.output!r}, expected one of {', '.join(OUTPUTS)}"
        try:
            check_generator(self.generator)
        except ArgumentError as error:
            yield str(error)
        if not self.version.isprintable() or not 1 <= len(self.version) <= MAX_VERSION_LENGTH:
            yield f"version: expected 1 to {MAX_VERSION_LENGTH} printable characters"
        if not re.fullmatch("[0-9a-f]{64}", self.digest):
            yield "digest: expected 64 hexadecimal digits"

    def _record_problems(self) -> Iterator[str]:
        if not 1 <= self.record_rows <= MAX_RECORD_ROWS or self.record_rows.bit_count() != 1:
            yield f"found {shown(self.record_rows)} rows a record, expected a power of two to 2^16"
        if self.record_bytes > MAX_ROW_BYTES:
            yield f"found records of {self.record_bytes} bytes, expected at most {MAX_ROW_BYTES}"

    @property
    def row_bytes(self) -> int:
        """The size of one row in bytes."""
        return self.dtype.itemsize * math.prod(self.row_shape)

    @property
    def records(self) -> int:
        """The number of records; the last one may end with zeros."""
        return -(-self.rows // self.record_rows)

    @property
    def record_bytes(self) -> int:
        """The size of a record in bytes."""
        return self.record_rows * self.row_bytes

    @cached_property
    def hashes(self) -> HashShape:
        """The shape of the hash tables, which depends on the number of records alone."""
        return HashShape.of(self.records)

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """The layout of the table of the records, and of each hash table, lowest first."""
        above = (Layout(rows, HASH_ROW_BYTES, "bit") for rows in self.hashes.domains)
        return Layout(self.records, self.record_bytes, self.output), *above

    @cached_property
    def key_widths(self) -> tuple[int, ...]:
        """The sizes in bytes of the keys for a record, and for a row of each hash table."""
        return tuple(
            _core.key_bytes(rows, output, self.generator) for rows, _, output in self.layouts
        )

    @cached_property
    def answer_widths(self) -> tuple[int, ...]:
        """The sizes in bytes of the answers to these keys, padded to whole elements."""
        return tuple(_core.answer_bytes(output, width) for _, width, output in self.layouts)

    def digest_of(self, tops: ByteArray) -> str:
        """Computes the digest of a table of this shape and type from its tops."""
        return digest_of(
            self.hashes,
            {
                "dtype": self.dtype.str,
                "record_rows": self.record_rows,
                "row_shape": list(self.row_shape),
                "rows": self.rows,
            },
            tops,
        )

    @property
    def key_bytes(self) -> int:
        """The bytes of a query for one row whose answer is not checked."""
        return self.key_widths[0]

    @property
    def answer_bytes(self) -> int:
        """The bytes of an answer for one row that is not checked."""
        return self.answer_widths[0]

    @property
    def verified_key_bytes(self) -> int:
        """The bytes of a query for one row whose answer is checked."""
        return sum(self.key_widths)

    @property
    def verified_answer_bytes(self) -> int:
        """The bytes of an answer for one row that is checked."""
        return sum(self.answer_widths)

    @cached_property
    def id(self) -> bytes:
        """The first 16 bytes of the SHA-256 of `to_json()`."""
        return hashlib.sha256(self.to_json().encode()).digest()[:ID_BYTES]

    def describe(self) -> str:
        """Describes the table and its version in one line."""
        shape = "x".join(map(str, self.row_shape)) or "1"
        return (
            f"{self.rows} rows of {shape} {self.dtype} (output {self.output}, generator "
            f"{self.generator}, version {self.version!r}, digest {self.digest[:12]})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Converts the parameters to JSON types."""
        return {
            "digest": self.digest,
            "dtype": self.dtype.str,
            "format": FORMAT,
            "generator": self.generator,
            "hashes": self.hashes.to_dict(),
            "output": self.output,
            "record_rows": self.record_rows,
            "row_shape": list(self.row_shape),
            "rows": self.rows,
            "version": self.version,
        }

    def to_json(self) -> str:
        """Encodes canonical JSON: sorted names, no spaces, ASCII. `from_json` is the inverse."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> "TableParams":
        """Parses the JSON of `to_json`. Raises MalformedMessageError."""
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MalformedMessageError(f"table parameters are not JSON: {error}") from error
        return cls.from_dict(fields)

    @classmethod
    def from_dict(cls, fields: object) -> "TableParams":
        """Parses the fields of `to_dict`. Raises MalformedMessageError."""
        if not isinstance(fields, Mapping):
            raise MalformedMessageError("table parameters are not a JSON object")
        try:
            if _typed(fields, "format", int) != FORMAT:
                found = shown(fields["format"])
                raise ArgumentError(
                    f"table parameters: found format {found}, this release reads {FORMAT}: "
                    "use the same release of Nescio on both sides"
                )
            if set(fields) != _FIELDS:
                odd = ", ".join(sorted(map(shown, set(fields) ^ _FIELDS)))
                raise ArgumentError(f"table parameters: missing or unknown fields: {odd}")
            params = cls(
                rows=_typed(fields, "rows", int),
                row_shape=tuple(_integers(fields, "row_shape")),
                dtype=_dtype(fields),
                output=_typed(fields, "output", str),  # type: ignore[arg-type]
                generator=_typed(fields, "generator", str),  # type: ignore[arg-type]
                version=_typed(fields, "version", str),
                digest=_typed(fields, "digest", str),
                record_rows=_typed(fields, "record_rows", int),
            )
            _check_hashes(fields, params)
        except ArgumentError as error:
            raise MalformedMessageError(str(error)) from error
        return params


def _check_hashes(fields: Mapping[str, object], params: TableParams) -> None:
    found, expected = _typed(fields, "hashes", dict), params.hashes.to_dict()
    if found != expected or any(type(value) is not int for value in found.values()):
        raise ArgumentError(
            f"table parameters: hashes are {shown(found)}, expected {expected} for "
            f"{params.records} records"
        )


def _typed(fields: Mapping[str, object], name: str, kind: type[_T]) -> _T:
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ArgumentError(f"table parameters: {name} is {shown(value)}, expected {kind.__name__}")
    return value


def _dtype(fields: Mapping[str, object]) -> np.dtype[Any]:
    name = _typed(fields, "dtype", str)
    if not _DTYPE.fullmatch(name) or np.dtype(name).str != name:
        raise ArgumentError(f"table parameters: dtype {shown(name)} is not supported")
    return np.dtype(name)


def _integers(fields: Mapping[str, object], name: str) -> list[int]:
    values = _typed(fields, name, list)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in values):
        raise ArgumentError(f"table parameters: {name} is {shown(values)}, expected integers")
    return values
