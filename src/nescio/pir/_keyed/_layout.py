"""The layout of a keyed table: all that a client must know to look up keys."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..._arrays import MAX_DIMENSIONS, Array, ByteArray, shown
from ...errors import ArgumentError, MalformedMessageError, MismatchError
from .._bins import Bins
from .._hash_shape import rows_per_record
from .._params import DTYPE_NAME, MAX_ROW_BYTES, TableParams
from ._keys import KINDS, NAMES, SEED_BYTES, KeyKind, PackedKeys

FORMAT = 1
FINGERPRINT_BYTES = 8
SUBTABLES = 3
MAX_ROWS = 1 << 32
MAX_LAYOUT_BYTES = 4096
_RECORD_BYTES = 640
"""Each key of a lookup is for a third of the table, so that trees and hashes cost more, compared to
rows, than in a table of one bin: longer records pay. With values of 64 bytes, records of 576 bytes
give 0.91 of the lookups of a table without keys (0.96 if rows are checked); of 288 bytes 0.85
(0.83), of 144 bytes 0.73 (0.67)."""
_FIELDS = {"dtype", "format", "keys", "kind", "rows", "seed", "shape"}
_SEED = re.compile(f"[0-9a-f]{{{2 * SEED_BYTES}}}")


@dataclass(frozen=True)
class KeyedLayout:
    """The public layout of a keyed table: its seed, the sizes of its subtables and its values.

    `keys` is the type of all keys, `rows` the rows of each of the three subtables; `dtype` and
    `shape` are those of a value. Raises ArgumentError for invalid values.
    """

    seed: bytes
    keys: KeyKind
    rows: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ArgumentError(f"layout of a keyed table: {problem}")

    def _problems(self) -> Iterator[str]:
        """Yields the problems. A check may rely on earlier ones: only the first problem counts."""
        if len(self.seed) != SEED_BYTES:
            yield f"found a seed of {len(self.seed)} bytes, expected {SEED_BYTES}"
        if self.keys not in KINDS:
            yield f"found keys {shown(self.keys)}, expected one of {', '.join(KINDS)}"
        if not 1 <= self.rows <= MAX_ROWS:
            yield f"found subtables of {shown(self.rows)} rows, expected 1 to 2^32"
        if not DTYPE_NAME.fullmatch(self.dtype.str):
            yield f"dtype {self.dtype} is not supported; use numbers, bools or fixed-length strings"
        if len(self.shape) > MAX_DIMENSIONS or any(n < 1 for n in self.shape):
            yield f"found values of shape {shown(self.shape)}, expected at least one element"
        most = MAX_ROW_BYTES - FINGERPRINT_BYTES
        if not 1 <= self.value_bytes <= most:
            yield f"found values of {shown(self.value_bytes)} bytes, expected 1 to {most}"

    @property
    def value_bytes(self) -> int:
        """The size of a value in bytes."""
        return self.dtype.itemsize * prod(self.shape)

    @property
    def row_bytes(self) -> int:
        """The size of a row of the physical table: a fingerprint and a value."""
        return FINGERPRINT_BYTES + self.value_bytes

    @property
    def bins(self) -> tuple[Bins, ...]:
        """The bins of the physical table: three, with one key of a lookup for each."""
        return (Bins(SUBTABLES, self.rows, 1),)

    @property
    def record_rows(self) -> int:
        """The rows of a record, if the table's owner chooses no others."""
        return rows_per_record(self.row_bytes, _RECORD_BYTES)

    def empty_rows(self) -> ByteArray:
        """Makes a physical table without keys."""
        return np.zeros((SUBTABLES * self.rows, self.row_bytes), np.uint8)

    def value_rows(self, values: Array) -> ByteArray:
        """Returns values as bytes, (n, value_bytes)."""
        raw: ByteArray = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        return raw.reshape(-1, self.value_bytes)

    def checked(self, keys: PackedKeys) -> PackedKeys:
        """Returns keys. Raises ArgumentError if they have another type than those of the table."""
        if len(keys) and keys.kind != self.keys:
            raise ArgumentError(
                f"keys: found {NAMES[keys.kind]}, expected {NAMES[self.keys]}, which the keys of "
                "this table are"
            )
        return keys

    def to_bytes(self) -> bytes:
        """Encodes canonical JSON; `from_bytes` is the inverse."""
        fields = {
            "dtype": self.dtype.str,
            "format": FORMAT,
            "keys": self.keys,
            "kind": "keyed",
            "rows": self.rows,
            "seed": self.seed.hex(),
            "shape": list(self.shape),
        }
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "KeyedLayout":
        """Parses the bytes of `to_bytes`, and accepts no others. Raises MalformedMessageError."""
        if len(data) > MAX_LAYOUT_BYTES:
            raise MalformedMessageError(
                f"layout of a keyed table: found {len(data)} bytes, expected at most "
                f"{MAX_LAYOUT_BYTES}"
            )
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise MalformedMessageError(
                f"layout of a keyed table: it is not JSON: {error}"
            ) from error
        layout = cls._from_fields(fields)
        if layout.to_bytes() != data:
            raise MalformedMessageError(
                f"layout of a keyed table: found {shown(data)}, expected the canonical "
                f"{shown(layout.to_bytes())}"
            )
        return layout

    @classmethod
    def _from_fields(cls, fields: object) -> "KeyedLayout":
        if not isinstance(fields, dict) or set(fields) != _FIELDS:
            found = sorted(fields) if isinstance(fields, dict) else fields
            raise MalformedMessageError(
                f"layout of a keyed table: found {shown(found)}, expected the fields "
                f"{', '.join(sorted(_FIELDS))}"
            )
        if (
            fields["kind"] != "keyed"
            or type(fields["format"]) is not int
            or fields["format"] != FORMAT
        ):
            raise MalformedMessageError(
                f"layout of a keyed table: found kind {shown(fields['kind'])} of format "
                f"{shown(fields['format'])}, expected keyed of format {FORMAT}: use the same "
                "release of Nescio on both sides"
            )
        if not _is_typed(fields):
            raise MalformedMessageError(
                f"layout of a keyed table: found a field of another type in {shown(fields)}"
            )
        try:
            return cls(
                seed=bytes.fromhex(fields["seed"]),
                keys=fields["keys"],
                rows=fields["rows"],
                dtype=np.dtype(fields["dtype"]),
                shape=tuple(fields["shape"]),
            )
        except ArgumentError as error:
            raise MalformedMessageError(str(error)) from error

    def check(self, params: TableParams) -> None:
        """Raises MismatchError unless this is the layout of a table with these parameters."""
        found = params.bins, params.dtype.str, params.row_shape
        expected = self.bins, "|u1", (self.row_bytes,)
        if found != expected:
            raise MismatchError(
                "the layout of a keyed table does not fit the table's parameters: found bins, "
                f"dtype and row shape {shown(found)}, expected {shown(expected)}",
                found=shown(found),
                expected=shown(expected),
            )


def _is_typed(fields: dict[str, Any]) -> bool:
    """Tests the types of fields, and the texts that other parsers would read."""
    shape = fields["shape"]
    return (
        isinstance(fields["keys"], str)
        and type(fields["rows"]) is int
        and isinstance(fields["seed"], str)
        and _SEED.fullmatch(fields["seed"]) is not None
        and isinstance(fields["dtype"], str)
        and DTYPE_NAME.fullmatch(fields["dtype"]) is not None
        and isinstance(shape, list)
        and all(type(n) is int for n in shape)
    )
