"""The state that belongs to a snapshot: the format of its file, and the only parser.

All little-endian:

    offset    bytes
    0         8       "NESCIOST"
    8         4       version of this format, 2
    12        4       length j of the JSON
    16        16      XXH3 with 128 bits of all that follows
    32        j       JSON: {"id", "last", "origin", "sections"}
    32 + j    ...     the sections, one after the other; "sections" has their lengths

`id` is that of the table's version, `last` the message of its last change or null, `origin` the
first version in this folder. The sections: the versions that the table has had, 8 bytes each; the
last of their ids, 16 bytes each; its vacant rows, as `Table.extra_state` encodes them; the slots of
the keys of a keyed table, 8 bytes each, and their hashes, 32 bytes each.
"""

import json
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
from xxhash import xxh3_128

from ..._disk import replacing
from ...errors import ArgumentError, FileError
from ...pir._durable import Kept
from ...pir._versions import LastChange
from ._origin import Origin

VERSION = 2
_MAGIC = b"NESCIOST"
_HEAD = struct.Struct("<8sII16s")
_MAX_JSON = 1 << 16
_FIELDS = {"id", "last", "origin", "sections"}
_LAST = ("name", "content", "changed")


class State(NamedTuple):
    """The state that belongs to the snapshot of the version with an id."""

    id: bytes
    origin: Origin
    kept: Kept

    def encode(self) -> bytes:
        """Encodes the state."""
        kept, last = self.kept, self.kept.last
        sections = [kept.used, kept.ids, kept.extra, kept.slots.tobytes(), kept.words.tobytes()]
        fields = {
            "id": self.id.hex(),
            "last": last and {name: getattr(last, name).hex() for name in _LAST},
            "origin": self.origin.to_dict(),
            "sections": list(map(len, sections)),
        }
        parts = [json.dumps(fields).encode(), *sections]
        checksum = xxh3_128()
        for part in parts:
            checksum.update(part)
        head = _HEAD.pack(_MAGIC, VERSION, len(parts[0]), checksum.digest())
        return b"".join([head, *parts])

    def write(self, path: Path) -> None:
        """Writes the state to a temporary file and renames it. Raises OSError."""
        with replacing(path) as file:
            file.write(self.encode())

    @classmethod
    def parse(cls, data: bytes) -> "State":
        """Parses the bytes of a file. Raises FileError."""
        if len(data) < _HEAD.size or not data.startswith(_MAGIC):
            raise FileError("it does not begin like the state of a Nescio table")
        _, version, length, checksum = _HEAD.unpack_from(data)
        if version != VERSION or length > _MAX_JSON:
            raise FileError(
                f"it has version {version} of the format, this release reads version {VERSION}: "
                "start the release that wrote it"
            )
        if xxh3_128(memoryview(data)[_HEAD.size :]).digest() != checksum:
            raise FileError("it is damaged")
        try:
            fields = json.loads(data[_HEAD.size :][:length])
            return cls._of(fields, memoryview(data)[_HEAD.size + length :])
        except (ArgumentError, ValueError, TypeError, RecursionError) as error:
            raise FileError(f"its description is invalid: {error}") from error

    @classmethod
    def _of(cls, fields: dict[str, object], data: memoryview) -> "State":
        """Converts JSON types, and the bytes of the sections. Raises TypeError or ValueError."""
        if set(fields) != _FIELDS:
            raise ArgumentError(f"found {sorted(fields)}, expected {sorted(_FIELDS)}")
        used, ids, extra, slots, words = _sections(fields["sections"], data)
        last = fields["last"]
        return cls(
            _id(fields["id"]),
            Origin.from_dict(fields["origin"]),
            Kept(
                bytes(used),
                bytes(ids),
                None if last is None else _last(last),
                bytes(extra),
                np.frombuffer(slots, "<u8"),
                np.frombuffer(words, "<u8").reshape(-1, 4),
            ),
        )


def _sections(lengths: object, data: memoryview) -> list[memoryview]:
    if not isinstance(lengths, list) or not all(type(n) is int and n >= 0 for n in lengths):
        raise ArgumentError(f"found the sections {lengths!r}, expected lengths")
    if len(lengths) != 5 or sum(lengths) != len(data):
        raise ArgumentError(f"found the sections {lengths}, expected five of {len(data)} bytes")
    used, ids, _, slots, words = lengths
    if used % 8 or ids % 16 or slots % 8 or 4 * slots != words:
        raise ArgumentError(
            f"found the sections {lengths}, expected 8, 16, 8 and 32 bytes for each"
        )
    ends = [sum(lengths[: number + 1]) for number in range(5)]
    return [data[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def _id(text: object) -> bytes:
    if not isinstance(text, str) or len(text) != 32:
        raise ArgumentError(f"found the id {text!r}, expected 32 hexadecimal digits")
    return bytes.fromhex(text)


def _last(fields: object) -> LastChange:
    if not isinstance(fields, dict) or set(fields) != set(_LAST):
        raise ArgumentError(f"found the last change {fields!r}")
    return LastChange(*(bytes.fromhex(fields[name]) for name in _LAST))
