"""The bytes of a layout, and their only parser: canonical JSON, with lists of rows as bits.

docs/wire-format.md describes the format for implementations in other languages.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import as_bytes, shown
from ...errors import ArgumentError, MalformedMessageError
from .._params import MAX_LAYOUT_BYTES, MAX_ROWS
from ._packing import pack, pack_sorted, packed_bytes, unpack, unpack_sorted
from ._parts import MAX_TOGETHER, FullPart, HotPart, Together

FORMAT = 1
_MAX_PARTS = 64
"""Opening brackets and commas, of which a layout has 19: each more costs a parser memory."""


class Fields(NamedTuple):
    """The fields of a layout."""

    rows: int
    full: FullPart
    hot: HotPart | None
    together: Together | None
    lookups: int


def encode(fields: Fields) -> bytes:
    """Encodes fields that are valid. Raises ArgumentError if they have too many bytes."""
    rows, full = fields.rows, fields.full
    values = {
        "format": FORMAT,
        "full": {
            "bins": full.bins,
            "hashes": full.hashes,
            "keys": full.keys,
            "seed": full.seed,
        },
        "hot": None if fields.hot is None else _from_hot(fields.hot, rows),
        "kind": "batch",
        "lookups": fields.lookups,
        "rows": rows,
        "together": None if fields.together is None else _from_together(fields.together, rows),
    }
    data = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    if len(data) > MAX_LAYOUT_BYTES:
        raise ArgumentError(
            f"layout: found {len(data)} bytes, expected at most {MAX_LAYOUT_BYTES}: choose fewer "
            "hot rows, fewer neighbors, or neighbors of fewer rows (a higher min_count)"
        )
    return data


def _from_hot(hot: HotPart, rows: int) -> dict[str, object]:
    return {
        "bins": hot.bins,
        "count": len(hot.rows),
        "keys": hot.keys,
        "rows": _text(pack_sorted(hot.rows, rows)),
    }


def _from_together(together: Together, rows: int) -> dict[str, object]:
    near = together.neighbors.reshape(-1)
    numbers = np.where(near < 0, rows, near).astype(np.uint64)
    return {
        "count": together.count,
        "neighbors": _text(pack(numbers, rows.bit_length())),
        "owners": len(together.rows),
        "rows": _text(pack_sorted(together.rows, rows)),
    }


def decode(data: object) -> Fields:
    """Parses the bytes of a layout, whose values its class checks. Raises MalformedMessageError."""
    raw = as_bytes(data, "a layout")
    if len(raw) > MAX_LAYOUT_BYTES:
        raise MalformedMessageError(
            f"a layout: found {len(raw)} bytes, expected at most {MAX_LAYOUT_BYTES}"
        )
    text = raw.tobytes()
    parts = sum(map(text.count, (b"{", b"[", b",")))
    if parts > _MAX_PARTS or not text.isascii():
        raise MalformedMessageError(
            f"a layout: found {parts} brackets and commas, or bytes that are not ASCII, expected "
            f"ASCII with at most {_MAX_PARTS}"
        )
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError(f"a layout is not JSON: {error}") from error
    kind = values.get("kind") if isinstance(values, dict) else None
    if kind != "batch":
        raise MalformedMessageError(f'not a batch layout: its "kind" is {shown(kind)}')
    if values.get("format") != FORMAT:
        raise MalformedMessageError(
            f"a layout: found format {shown(values.get('format'))}, this release reads {FORMAT}"
        )
    names = {"format", "full", "hot", "kind", "lookups", "rows", "together"}
    whole = _Reader(values, "a layout", names)
    rows = whole.integer("rows", 1, MAX_ROWS)
    full = whole.part("full", {"bins", "hashes", "keys", "seed"})
    hot = whole.optional("hot", {"bins", "count", "keys", "rows"})
    together = whole.optional("together", {"count", "neighbors", "owners", "rows"})
    return Fields(
        rows,
        FullPart(*(full.integer(name) for name in ("bins", "keys", "hashes", "seed"))),
        None if hot is None else _to_hot(hot, rows),
        None if together is None else _to_together(together, rows),
        whole.integer("lookups"),
    )


def _to_hot(hot: "_Reader", rows: int) -> HotPart:
    own = unpack_sorted(hot.bits("rows"), hot.integer("count", 1, rows), rows)
    return HotPart(own, hot.integer("bins"), hot.integer("keys"))


def _to_together(together: "_Reader", rows: int) -> Together:
    count, owners = together.integer("count", 1, MAX_TOGETHER), together.integer("owners", 1, rows)
    own = unpack_sorted(together.bits("rows"), owners, rows)
    data = together.bits("neighbors")
    if len(data) != packed_bytes(count * owners, rows.bit_length()):
        raise MalformedMessageError(
            f"a layout: found {len(data)} bytes of neighbors of {owners} rows"
        )
    near = unpack(data, rows.bit_length(), count * owners).astype(np.int64)
    return Together(own, np.where(near == rows, -1, near).reshape(owners, count))


class _Reader:
    """A JSON object whose names are known. Raises MalformedMessageError for other values."""

    def __init__(self, values: object, what: str, names: set[str]) -> None:
        if not isinstance(values, Mapping):
            raise MalformedMessageError(f"{what}: found {shown(values)}, expected an object")
        if set(values) != names:
            odd = ", ".join(sorted(map(shown, set(values) ^ names)))
            raise MalformedMessageError(f"{what}: missing or unknown fields: {odd}")
        self._values: Mapping[str, Any] = values
        self._what = what

    def integer(self, name: str, low: int = 0, high: int = MAX_ROWS) -> int:
        found = self._values[name]
        if type(found) is not int or not low <= found <= high:
            raise MalformedMessageError(
                f"{self._what}: {name} is {shown(found)}, expected an integer, {low} to {high}"
            )
        return found

    def bits(self, name: str) -> bytes:
        found = self._values[name]
        try:
            return base64.b64decode(found, validate=True)
        except (TypeError, ValueError, binascii.Error) as error:
            raise MalformedMessageError(f"{self._what}: {name} is not base64: {error}") from error

    def part(self, name: str, names: set[str]) -> "_Reader":
        return _Reader(self._values[name], f"{self._what}, {name}", names)

    def optional(self, name: str, names: set[str]) -> "_Reader | None":
        return None if self._values[name] is None else self.part(name, names)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
