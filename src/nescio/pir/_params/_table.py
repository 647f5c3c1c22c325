"""The public parameters of a table, which clients need and which bind messages to a table."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ..._arrays import MAX_DIMENSIONS, ByteArray, IndexArray, shown
from ...dpf import OUTPUTS, Generator, Output, check_generator
from ...errors import ArgumentError, MalformedMessageError
from .._bins import Bins, Grouping, bin_problems
from .._hash_shape import HASH_ROW_BYTES, HashShape, digest_of
from ._fields import (
    DTYPE_NAME,
    FORMAT,
    ID_BYTES,
    MAX_RECORD_ROWS,
    MAX_ROW_BYTES,
    MAX_ROWS,
    MAX_VERSION_LENGTH,
    bins_of,
    check_names,
    dtype_of,
    integers,
    typed,
)
from ._layout import Layout


@dataclass(frozen=True)
class TableParams:
    """The public parameters of a table.

    `digest` is a hash of all rows as bytes, so tables with equal parameters have equal content. A
    client checks rows against it, with hash tables whose shape is `hashes`.
    `id` is a hash of all parameters. Every query and every answer contains it, which prevents
    using a message with another table.

    Lookups get records of `record_rows` rows, a power of two, of which the client takes its row.
    The rows are in `bins`, to each of which a lookup sends keys; by default in one, with one key.
    `layout` is the SHA-256 of a text that tells clients which content is where in the bins, in
    hexadecimal, or empty. `rows` is 1 to 2^40, `row_shape` and `dtype` are NumPy's, `output` and
    `generator` those of `nescio.dpf`, `version` is a text that the operator chooses. Raises
    ArgumentError for invalid values. docs/wire-format.md defines `digest` and `hashes`.
    """

    rows: int
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    output: Output
    generator: Generator
    version: str
    digest: str
    record_rows: int
    bins: tuple[Bins, ...] = ()
    layout: str = ""

    def __post_init__(self) -> None:
        if self.bins == ():
            object.__setattr__(self, "bins", (Bins(1, self.rows),))
        for problem in self._problems():
            raise ArgumentError(f"table parameters: {problem}")

    def _problems(self) -> Iterator[str]:
        """Yields the problems. A check may rely on earlier ones: only the first problem counts."""
        if not 1 <= self.rows <= MAX_ROWS:
            yield f"found {shown(self.rows)} rows, expected 1 to 2^40"
        if not DTYPE_NAME.fullmatch(self.dtype.str):
            yield f"dtype {self.dtype} is not supported; use numbers, bools or fixed-length strings"
        if len(self.row_shape) > MAX_DIMENSIONS or any(n < 1 for n in self.row_shape):
            yield f"found rows of shape {shown(self.row_shape)}, expected at least one element"
        if not 1 <= self.row_bytes <= MAX_ROW_BYTES:
            yield f"found rows of {shown(self.row_bytes)} bytes, expected 1 to {MAX_ROW_BYTES}"
        yield from self._record_problems()
        yield from bin_problems(self.bins, self.rows)
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
        if not re.fullmatch("([0-9a-f]{64})?", self.layout):
            yield "layout: expected 64 hexadecimal digits, or nothing"

    def _record_problems(self) -> Iterator[str]:
        if not 1 <= self.record_rows <= MAX_RECORD_ROWS or self.record_rows.bit_count() != 1:
            yield f"found {shown(self.record_rows)} rows a record, expected a power of two to 2^16"
        if self.record_bytes > MAX_ROW_BYTES:
            yield f"found records of {self.record_bytes} bytes, expected at most {MAX_ROW_BYTES}"

    @cached_property
    def row_bytes(self) -> int:
        """The size of one row in bytes."""
        return self.dtype.itemsize * math.prod(self.row_shape)

    @cached_property
    def is_cut(self) -> bool:
        """True if a lookup has several keys, or a layout says what they get.

        The indices of a lookup are then the places in the bins, one for each key.
        """
        return self.layout != "" or self.bins != (Bins(1, self.rows),)

    @cached_property
    def slots(self) -> int:
        """The rows that a lookup gets, and its keys for them."""
        return sum(group.slots for group in self.bins)

    @cached_property
    def bin_keys(self) -> int:
        """The keys that a lookup has for a bin, at most."""
        return max(group.keys for group in self.bins)

    @cached_property
    def slot_rows(self) -> IndexArray:
        """The rows of the bin of each slot: a place in it is less."""
        return _by_slot(self.bins, [[group.rows] * group.bins for group in self.bins])

    @cached_property
    def slot_numbers(self) -> IndexArray:
        """The number in the hash tree of the first record of the bin of each slot."""
        ends = np.cumsum([group.bins for group in self.bins])[:-1]
        return _by_slot(self.bins, np.split(self.hashes.bin_numbers(0), ends))

    @cached_property
    def slot_tops(self) -> IndexArray:
        """The first and the end of the tops of the bin of each slot, (slots, 2)."""
        numbers = self.hashes.bin_numbers(self.hashes.height)
        pairs = np.stack([numbers, np.append(numbers[1:], np.uint64(self.hashes.tops))], axis=1)
        return np.repeat(pairs, [g.keys for g in self.bins for _ in range(g.bins)], axis=0)

    @property
    def records(self) -> int:
        """The number of records of all bins; the last one of a bin may end with zeros."""
        return self.hashes.levels[0].total

    @cached_property
    def record_bytes(self) -> int:
        """The size of a record in bytes."""
        return self.record_rows * self.row_bytes

    @cached_property
    def grouping(self) -> Grouping:
        """The numbers of the rows."""
        return Grouping(self.bins)

    @cached_property
    def hashes(self) -> HashShape:
        """The shape of the hash tables, which depends on the bins alone."""
        return HashShape(
            [group._replace(rows=-(-group.rows // self.record_rows)) for group in self.bins]
        )

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """The layout of the table of the records, and of each hash table, lowest first."""
        records, *above = (list(level.groups) for level in self.hashes.levels)
        return (
            Layout(records, self.record_bytes, self.output),
            *(Layout(groups, HASH_ROW_BYTES, "bit") for groups in above),
        )

    @cached_property
    def group_key_widths(self) -> tuple[tuple[int, ...], ...]:
        """The bytes of one key for each group of bins, of the records and of each hash table."""
        return tuple(
            tuple(_core.key_bytes(group.rows, output, self.generator) for group in groups)
            for groups, _, output in self.layouts
        )

    @cached_property
    def key_widths(self) -> tuple[int, ...]:
        """The bytes of a lookup's keys for the records, and for the rows of each hash table."""
        return tuple(
            sum(group.slots * width for group, width in zip(self.bins, widths, strict=True))
            for widths in self.group_key_widths
        )

    @cached_property
    def answer_widths(self) -> tuple[int, ...]:
        """The bytes of the answers to these keys, each padded to whole elements."""
        return tuple(
            self.slots * _core.answer_bytes(output, width) for _, width, output in self.layouts
        )

    def digest_of(self, tops: ByteArray) -> str:
        """Computes the digest of a table of this shape and type from its tops."""
        return digest_of(
            self.hashes,
            {
                "bins": [list(group) for group in self.bins],
                "dtype": self.dtype.str,
                "layout": self.layout,
                "record_rows": self.record_rows,
                "row_shape": list(self.row_shape),
                "rows": self.rows,
            },
            tops,
        )

    @property
    def key_bytes(self) -> int:
        """The bytes of a query for one lookup whose answer is not checked."""
        return self.key_widths[0]

    @property
    def answer_bytes(self) -> int:
        """The bytes of an answer to one lookup that is not checked."""
        return self.answer_widths[0]

    @cached_property
    def verified_key_bytes(self) -> int:
        """The bytes of a query for one lookup whose answer is checked."""
        return sum(self.key_widths)

    @cached_property
    def verified_answer_bytes(self) -> int:
        """The bytes of an answer to one lookup that is checked."""
        return sum(self.answer_widths)

    @cached_property
    def id(self) -> bytes:
        """The first 16 bytes of the SHA-256 of `to_json()`."""
        return hashlib.sha256(self.to_json().encode()).digest()[:ID_BYTES]

    def describe(self) -> str:
        """Describes the table and its version in one line."""
        shape = "x".join(map(str, self.row_shape)) or "1"
        count = self.grouping.bins
        bins = f" in {count} bin{'s' * (count > 1)}" if self.is_cut else ""
        return (
            f"{self.rows} rows of {shape} {self.dtype}{bins} (output {self.output}, generator "
            f"{self.generator}, version {self.version!r}, digest {self.digest[:12]})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Converts the parameters to JSON types."""
        return {
            "bins": [list(group) for group in self.bins],
            "digest": self.digest,
            "dtype": self.dtype.str,
            "format": FORMAT,
            "generator": self.generator,
            "hashes": self.hashes.to_dict(),
            "layout": self.layout,
            "output": self.output,
            "record_rows": self.record_rows,
            "row_shape": list(self.row_shape),
            "rows": self.rows,
            "version": self.version,
        }

    def to_json(self) -> str:
        """Encodes canonical JSON: sorted names, no spaces, ASCII. `from_json` is the inverse."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    def with_rows(self, fields: object) -> "TableParams":
        """Returns parameters with the rows of `{"rows", "row_shape", "dtype"}`, in one bin.

        Raises MalformedMessageError.
        """
        if not isinstance(fields, Mapping) or set(fields) != {"rows", "row_shape", "dtype"}:
            raise MalformedMessageError(
                f"rows: found {shown(fields)}, expected their number, row_shape and dtype"
            )
        try:
            rows, shape = typed(fields, "rows", int), tuple(integers(fields, "row_shape"))
            return replace(
                self, rows=rows, row_shape=shape, dtype=dtype_of(fields), bins=(), layout=""
            )
        except ArgumentError as error:
            raise MalformedMessageError(str(error)) from error

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
            check_names(fields)
            params = cls(
                rows=typed(fields, "rows", int),
                row_shape=tuple(integers(fields, "row_shape")),
                dtype=dtype_of(fields),
                output=typed(fields, "output", str),  # type: ignore[arg-type]
                generator=typed(fields, "generator", str),  # type: ignore[arg-type]
                version=typed(fields, "version", str),
                digest=typed(fields, "digest", str),
                record_rows=typed(fields, "record_rows", int),
                bins=bins_of(fields),
                layout=typed(fields, "layout", str),
            )
            _check_hashes(fields, params)
        except ArgumentError as error:
            raise MalformedMessageError(str(error)) from error
        return params


def _check_hashes(fields: Mapping[str, object], params: TableParams) -> None:
    found, expected = typed(fields, "hashes", dict), params.hashes.to_dict()
    if found != expected or any(type(value) is not int for value in found.values()):
        raise ArgumentError(
            f"table parameters: hashes are {shown(found)}, expected {expected} for "
            f"{params.records} records"
        )


def _by_slot(bins: Sequence[Bins], values: Sequence[Any]) -> IndexArray:
    """Repeats a value for each bin as often as it has keys."""
    return np.concatenate(
        [np.repeat(own, group.keys) for own, group in zip(values, bins, strict=True)]
    ).astype(np.uint64)
