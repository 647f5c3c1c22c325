"""The shape of a table's records and hashes, and the digest above them.

A record is one or more rows, side by side: what a lookup gets, and what is hashed. Its hash is in a
hash table whose rows have 16 hashes, whose rows' hashes are in another, and so on, up to at most
4,096 hashes (16,384 in a table of several bins): the tops. A client that looks up a record and the
row of each hash table above it checks all of them against the tops, which hash to the digest in the
parameters (Merkle 1987). docs/security.md has the proof.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .._arrays import ByteArray, IndexArray
from ._bins import Bins, Grouping

HASH_BYTES = 32

ARITY = 16
"""Hashes in a row of a hash table. 8 would cost a table more, 32 twice the bytes of an answer."""

HASH_ROW_BYTES = ARITY * HASH_BYTES

MAX_TOPS = 4096
"""Hashes above the last hash table, which clients keep: at most 128 KiB."""

MAX_TOPS_OF_BINS = 16384
"""The same of a table in bins: a lookup gets a row of each hash table for each of many slots."""

RECORD_BYTES = 256
"""Rows are joined to records of up to this size.

A longer record makes answers longer; shorter ones make a tree and hashes longer than the rows.
"""


class HashShape:
    """The hash tables over the records of a table's bins, and the hashes above them: the tops.

    Each bin has a tree of its own. The rule: as few hash tables as leave at most 4,096 tops, or
    16,384 in a table of several bins. Up to as many records need none. `levels[0]` numbers the
    records, and `levels[n]` the rows of hash table n, as the engine stores them: without gaps.

    A tree has other numbers, which hashes contain. Record i of a bin whose first top is `top` has
    top * 16^n + i, n hash tables below the tops; the row of a hash table above it has that / 16.
    For a table of one bin both numbers are the same.
    """

    def __init__(self, records: Sequence[Bins]) -> None:
        self.levels = [Grouping(records)]
        while self.tops > (MAX_TOPS if self.levels[0].bins == 1 else MAX_TOPS_OF_BINS):
            above = [
                group._replace(rows=-(-group.rows // ARITY)) for group in self.levels[-1].groups
            ]
            self.levels.append(Grouping(above))

    @property
    def tops(self) -> int:
        """The number of hashes above the last hash table, which clients keep."""
        return self.levels[-1].total

    @property
    def height(self) -> int:
        """The number of hash tables."""
        return len(self.levels) - 1

    def tree_numbers(self, level: int, rows: IndexArray) -> IndexArray:
        """Returns the numbers in the tree of rows of a hash table, or of records (level 0)."""
        grouping = self.levels[level]
        if grouping.bins == 1:
            return rows
        bins, places = grouping.split(rows)
        return self.bin_numbers(level)[bins.view(np.int64)] + places

    def table_rows(self, level: int, numbers: IndexArray) -> IndexArray:
        """Returns the rows that have some numbers in the tree: the inverse of `tree_numbers`."""
        grouping = self.levels[level]
        if grouping.bins == 1:
            return numbers
        firsts = self.bin_numbers(level)
        bins = np.searchsorted(firsts, numbers, "right") - 1
        return grouping.join(bins.astype(np.uint64), numbers - firsts[bins])

    def bin_numbers(self, level: int) -> IndexArray:
        """Returns the number in the tree of the first row of each bin."""
        return self._first_tops * np.uint64(ARITY ** (self.height - level))

    @cached_property
    def _first_tops(self) -> IndexArray:
        highest = self.levels[-1]
        bins = np.arange(highest.bins, dtype=np.uint64)
        return highest.join(bins, np.zeros_like(bins))

    def to_dict(self) -> dict[str, int]:
        """Converts the shape to JSON types."""
        return {"arity": ARITY, "levels": self.height, "tops": self.tops}


def rows_per_record(row_bytes: int, record_bytes: int = RECORD_BYTES) -> int:
    """Returns the largest power of two of rows that fits a record; 1 for long rows."""
    return 1 << max(0, (record_bytes // row_bytes).bit_length() - 1)


def digest_of(shape: HashShape, fields: dict[str, object], tops: ByteArray) -> str:
    """Computes a table's digest in hexadecimal: SHA-256 of a tag, of `fields` and of its tops.

    `fields` are those of the parameters that say what the bytes of the rows mean, as canonical
    JSON: a digest pins them too.
    """
    text = json.dumps(fields | {"hashes": shape.to_dict()}, sort_keys=True, separators=(",", ":"))
    state = hashlib.sha256(b"NescioDg" + len(text).to_bytes(8, "little") + text.encode())
    state.update(np.ascontiguousarray(tops).data)
    return state.hexdigest()
