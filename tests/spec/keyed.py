"""Keyed tables in plain Python: the executable specification of `nescio.pir.KeyedTable`.

A key (text, bytes or an integer) is hashed under the table's public seed to four words. Three of
them give a place in each of three subtables of equal size; the fourth is the key's fingerprint.
A row of the physical table is a fingerprint and a value, and a key's row is at one of its three
places. A lookup asks for all three. See docs/wire-format.md.

Keys move when others arrive (cuckoo hashing), by rules without chance: the same operations in the
same order make the same table.
"""

import hashlib
import json
import struct
from collections.abc import Sequence

TABLES = 3
Key = str | bytes | int
Words = tuple[int, int, int, int]


def encode(key: Key) -> bytes:
    """Return a key's tag and its bytes; keys of different types differ."""
    if isinstance(key, str):
        return b"s" + key.encode()
    if isinstance(key, bytes):
        return b"b" + key
    if key >= 1 << 63:
        return b"u" + struct.pack("<Q", key)
    return b"i" + struct.pack("<q", key)


def words(seed: bytes, key: Key) -> Words:
    """Return a key's four words; the last is the fingerprint, which is never zero."""
    first, second, third, last = struct.unpack("<4Q", hashlib.sha256(seed + encode(key)).digest())
    return first, second, third, last or 1


def places(key: Words, rows: int) -> list[int]:
    """Return a key's place in each subtable of `rows` rows."""
    return [word * rows >> 64 for word in key[:TABLES]]


def first_seed(keys: Sequence[Key]) -> bytes:
    """Return the seed with which a table of these keys begins."""
    encoded = [encode(key) for key in keys]
    hashed = hashlib.sha256(b"NescioKeyedSeed")
    hashed.update(len(keys).to_bytes(8, "little"))
    for key in encoded:
        hashed.update(len(key).to_bytes(8, "little"))
    hashed.update(b"".join(encoded))
    return hashed.digest()


def next_seed(seed: bytes) -> bytes:
    """Return the seed after one with which a table could not be built."""
    return hashlib.sha256(seed).digest()


def least_rows(keys: int) -> int:
    """Return the fewest rows of a subtable for so many keys: at most 0.9 of all rows are used."""
    return max(1, -(-10 * keys // 27))


def grown(rows: int) -> int:
    """Return the next size of a subtable."""
    return rows + -(-rows // 8)


class Subtables:
    """Three subtables of keys' words, by slot: subtable j begins with slot `j rows`."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.slots: list[Words | None] = [None] * (TABLES * rows)

    def at(self, key: Words) -> list[int]:
        """Return the three slots of a key."""
        return [j * self.rows + place for j, place in enumerate(places(key, self.rows))]

    def find(self, key: Words) -> int | None:
        """Return the slot that has a key, or None."""
        return next((slot for slot in self.at(key) if self.slots[slot] == key), None)

    def insert(self, key: Words) -> bool:
        """Insert a new key along the shortest path of moves; False if there is no path.

        The search is breadth first. A key leads to its slots, in the order of the subtables, and a
        slot to the key that it holds. The first empty slot found ends the path.
        """
        came: dict[int, int | None] = {}
        reached: list[tuple[int | None, Words]] = [(None, key)]
        for before, held in reached:  # which grows meanwhile
            for slot in self.at(held):
                if slot in came:
                    continue
                came[slot] = before
                other = self.slots[slot]
                if other is None:
                    self._move(came, slot, key)
                    return True
                reached.append((slot, other))
        return False

    def _move(self, came: dict[int, int | None], slot: int, key: Words) -> None:
        before = came[slot]
        while before is not None:
            self.slots[slot] = self.slots[before]
            slot, before = before, came[before]
        self.slots[slot] = key

    def delete(self, key: Words) -> None:
        """Delete a key; nothing moves."""
        slot = self.find(key)
        assert slot is not None
        self.slots[slot] = None


def build(keys: Sequence[Key], seed: bytes | None = None) -> tuple[bytes, Subtables]:
    """Place keys; return the seed that worked and the subtables.

    After each failure the next seed is tried. After each fourth one, the subtables also grow.
    """
    seed = first_seed(keys) if seed is None else seed
    rows, tries = least_rows(len(keys)), 0
    while True:
        tables = Subtables(rows)
        if all(tables.insert(words(seed, key)) for key in keys):
            return seed, tables
        seed, tries = next_seed(seed), tries + 1
        rows = grown(rows) if tries % 4 == 0 else rows


def insert(tables: Subtables, new: Sequence[Words]) -> Subtables:
    """Insert new keys; return the subtables, which are new ones if they had to grow.

    They grow if more than 0.9 of the rows would be used, or if a key has no path. The keys of the
    old subtables are inserted first, by slot.
    """
    old = list(tables.slots)
    held = [key for key in old if key is not None]
    if 10 * (len(held) + len(new)) <= 27 * tables.rows:
        if all(tables.insert(key) for key in new):
            return tables
        tables.slots = old
    rows = max(grown(tables.rows), least_rows(len(held) + len(new)))
    while True:
        larger = Subtables(rows)
        if all(larger.insert(key) for key in [*held, *new]):
            return larger
        rows = grown(rows)


def physical_rows(tables: Subtables, values: dict[Words, bytes], value_bytes: int) -> list[bytes]:
    """Return the rows of the physical table: a fingerprint and a value, or zeros."""
    return [
        bytes(8 + value_bytes) if key is None else struct.pack("<Q", key[3]) + values[key]
        for key in tables.slots
    ]


def layout(seed: bytes, rows: int, kind: str, dtype: str, shape: list[int]) -> bytes:
    """Return the bytes of the layout; `kind` is the type of all keys: text, bytes or integer."""
    fields = {
        "dtype": dtype,
        "format": 1,
        "keys": kind,
        "kind": "keyed",
        "rows": rows,
        "seed": seed.hex(),
        "shape": shape,
    }
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def select(key: Words, found: Sequence[bytes]) -> bytes | None:
    """Return the value among a key's three rows, or None if the key is not in the table."""
    fingerprint = struct.pack("<Q", key[3])
    return next((row[8:] for row in found if row[:8] == fingerprint), None)
