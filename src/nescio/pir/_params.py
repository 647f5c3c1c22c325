"""The public parameters of a table: what a client must know, and what binds messages to a table."""

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

# The names that NumPy itself gives to fixed-size types that mean the same on every machine. Nothing
# else from outside reaches NumPy's parser, which some texts crash.
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
    """Everything about a table that is not its content.

    Two tables have equal parameters only if their content is equal too, because of `digest`, a hash
    of all rows as bytes. `id`, a hash of all of this, stands in every query and every
    answer, so that neither is ever read against another table.

    `rows` is 1 to 2^40, `row_shape` and `dtype` are NumPy's, `output` and `generator` those of
    `nescio.dpf`, `version` a text of the operator's choice. Raises ArgumentError for anything else.
    `digest` is described in `nescio.pir._digest`.
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
        """What is wrong. Each check may rely on those before it: only the first problem counts."""
        if not 1 <= self.rows <= MAX_ROWS:
            yield f"found {shown(self.rows)} rows, expected 1 to 2^40"
        if not _DTYPE.fullmatch(self.dtype.str):
            yield f"dtype {self.dtype} cannot be served; numbers, bools and fixed strings can"
        if len(self.row_shape) > MAX_DIMENSIONS or any(n < 1 for n in self.row_shape):
            yield f"found rows of shape {shown(self.row_shape)}, expected at least one element"
        if not 1 <= self.row_bytes <= MAX_ROW_BYTES:
            yield f"found rows of {shown(self.row_bytes)} bytes, expected 1 to {MAX_ROW_BYTES}"
        if self.output not in OUTPUTS:
            yield f"there is no output {self.output!r}; there are: {', '.join(OUTPUTS)}"
        try:
            check_generator(self.generator)
        except ArgumentError as error:
            yield str(error)
        if not self.version.isprintable() or not 1 <= len(self.version) <= MAX_VERSION_LENGTH:
            yield f"a version has 1 to {MAX_VERSION_LENGTH} printable characters"
        if not re.fullmatch("[0-9a-f]{64}", self.digest):
            yield "a digest is 64 hexadecimal digits"

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of the table."""
        return self.dtype.itemsize * math.prod(self.row_shape)

    @cached_property
    def key_bytes(self) -> int:
        """Bytes of the key for one row."""
        return _core.key_bytes(self.rows, self.output, self.generator)

    @cached_property
    def answer_bytes(self) -> int:
        """Bytes of the answer for one row: the row, rounded up to the output's elements."""
        return _core.answer_bytes(self.output, self.row_bytes)

    @cached_property
    def id(self) -> bytes:
        """The first 16 bytes of the SHA-256 of `to_json()`."""
        return hashlib.sha256(self.to_json().encode()).digest()[:ID_BYTES]

    def describe(self) -> str:
        """One line for people: what the table is, and its version."""
        shape = "x".join(map(str, self.row_shape)) or "1"
        return (
            f"{self.rows} rows of {shape} {self.dtype} (output {self.output}, generator "
            f"{self.generator}, version {self.version!r}, digest {self.digest[:12]})"
        )

    def to_dict(self) -> dict[str, Any]:
        """The parameters as JSON types."""
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
        """Canonical JSON: sorted names, no spaces, ASCII. `from_json` is its inverse."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> "TableParams":
        """Reads what `to_json` writes. Raises MalformedMessageError for anything else."""
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MalformedMessageError(f"table parameters are not JSON: {error}") from error
        return cls.from_dict(fields)

    @classmethod
    def from_dict(cls, fields: object) -> "TableParams":
        """Reads what `to_dict` makes. Raises MalformedMessageError for anything else."""
        if not isinstance(fields, Mapping):
            raise MalformedMessageError("table parameters are not a JSON object")
        if set(fields) != _FIELDS:
            odd = ", ".join(sorted(map(shown, set(fields) ^ _FIELDS)))
            raise MalformedMessageError(f"table parameters: missing or unknown: {odd}")
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
        raise ArgumentError(f"table parameters: dtype {shown(name)} is none that can be served")
    return np.dtype(name)


def _integers(fields: Mapping[str, object], name: str) -> list[int]:
    values = _typed(fields, name, list)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in values):
        raise ArgumentError(f"table parameters: {name} is {shown(values)}, expected integers")
    return values
