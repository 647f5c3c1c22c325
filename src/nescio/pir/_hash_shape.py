"""The shape of a table's records and hashes, and the digest above them.

A record is one or more rows, side by side: what a lookup gets, and what is hashed. Its hash is in a
hash table whose rows have 16 hashes, whose rows' hashes are in another, and so on, up to at most
4,096 hashes: the tops. A client that looks up a record and the row of each hash table above it
checks all of them against the tops, which hash to the digest in the parameters (Merkle 1987).
docs/security.md has the proof.
"""

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from .._arrays import ByteArray

HASH_BYTES = 32

ARITY = 16
"""Hashes in a row of a hash table. 8 would cost a table more, 32 twice the bytes of an answer."""

HASH_ROW_BYTES = ARITY * HASH_BYTES

MAX_TOPS = 4096
"""Hashes above the last hash table, which clients keep: at most 128 KiB."""

RECORD_BYTES = 256
"""Rows are joined to records of up to this size.

A longer record makes answers longer; shorter ones make a tree and hashes longer than the rows.
"""


@dataclass(frozen=True, slots=True)
class HashShape:
    """The number of hash tables over a number of records, and of the hashes above them.

    The rule: as few hash tables as leave at most 4,096 hashes. Up to 4,096 records need none.
    """

    records: int
    levels: int
    tops: int

    @classmethod
    def of(cls, records: int) -> "HashShape":
        """Returns the shape that the rule gives."""
        levels, tops = 0, records
        while tops > MAX_TOPS:
            levels, tops = levels + 1, -(-tops // ARITY)
        return cls(records, levels, tops)

    @property
    def domains(self) -> tuple[int, ...]:
        """The numbers of rows of the hash tables, lowest first."""
        return tuple(-(-self.records // ARITY**level) for level in range(1, self.levels + 1))

    def to_dict(self) -> dict[str, int]:
        """Converts the shape to JSON types."""
        return {"arity": ARITY, "levels": self.levels, "tops": self.tops}


def rows_per_record(row_bytes: int) -> int:
    """Returns the largest power of two of rows that fits a record; 1 for long rows."""
    return 1 << max(0, (RECORD_BYTES // row_bytes).bit_length() - 1)


def digest_of(shape: HashShape, fields: dict[str, object], tops: ByteArray) -> str:
    """Computes a table's digest in hexadecimal: SHA-256 of a tag, of `fields` and of its tops.

    `fields` are those of the parameters that say what the bytes of the rows mean, as canonical
    JSON: a digest pins them too.
    """
    text = json.dumps(fields | {"hashes": shape.to_dict()}, sort_keys=True, separators=(",", ":"))
    state = hashlib.sha256(b"NescioDg" + len(text).to_bytes(8, "little") + text.encode())
    state.update(np.ascontiguousarray(tops).data)
    return state.hexdigest()
