"""The public parameters of a table, which clients need and which bind messages to a table."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from .. import _core
from .._arrays import MAX_DIMENSIONS, shown
from ..dpf import OUTPUTS, Generator, Output, check_generator
from ..errors import ArgumentError, MalformedMessageError

FORMAT = 1
MAX_ROWS = 1 << 40
MAX_ROW_BYTES = 1 << 24
MAX_VERSION_LENGTH = 128
ID_BYTES = 16

# NumPy's own names of fixed-size types that are the same on every machine. No other text from
# outside reaches NumPy's parser.
_DTYPE = re.compile(
    r"\|b1|\|[iu]1|[<>]([iu][248]|f[248]|c(8|16)|U[1-9]\d{0,7}"
    r"|[mM]8\[([1-9]\d{0,5})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])|\|S[1-9]\d{0,7}"
)
_FIELDS = {
    "digest", "dtype", "format", "generator", "output", "row_shape", "rows", "version"
}  # fmt: skip
_T = TypeVar("_T")


@dataclass(frozen=True)
class TableParams:
    """The public parameters of a table.

    `digest` is a hash of all rows as bytes, so tables with equal parameters have equal content.
    `id` is a hash of all parameters. Every query and every answer contains it, which prevents
    using a message with another table.

    `rows` is 1 to 2^40, `row_shape` and `dtype` are NumPy's, `output` and `generator` those of
    `nescio.dpf`, `version` is a text that the operator chooses. Raises ArgumentError for invalid
    values. docs/wire-format.md defines `digest`.
    """

    rows: int
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    output: Output
    generator: Generator
    version: str
    digest: str

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

    @property
    def row_bytes(self) -> int:
        """The size of one row in bytes."""
        return self.dtype.itemsize * math.prod(self.row_shape)

    @cached_property
    def key_bytes(self) -> int:
        """The size of the key for one row in bytes."""
        return _core.key_bytes(self.rows, self.output, self.generator)

    @cached_property
    def answer_bytes(self) -> int:
        """The size of the answer for one row in bytes: the row, padded to whole output elements."""
        return _core.answer_bytes(self.output, self.row_bytes)

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
            "output": self.output,
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
        if set(fields) != _FIELDS:
            odd = ", ".join(sorted(map(shown, set(fields) ^ _FIELDS)))
            raise MalformedMessageError(f"table parameters: missing or unknown fields: {odd}")
        try:
            if _typed(fields, "format", int) != FORMAT:
                found = shown(fields["format"])
                raise ArgumentError(
                    f"table parameters: found format {found}, this release reads {FORMAT}"
                )
            return cls(
                rows=_typed(fields, "rows", int),
                row_shape=tuple(_integers(fields, "row_shape")),
                dtype=_dtype(fields),
                output=_typed(fields, "output", str),  # type: ignore[arg-type]
                generator=_typed(fields, "generator", str),  # type: ignore[arg-type]
                version=_typed(fields, "version", str),
                digest=_typed(fields, "digest", str),
            )
        except ArgumentError as error:
            raise MalformedMessageError(str(error)) from error


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
