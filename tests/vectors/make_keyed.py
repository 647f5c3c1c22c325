"""The test vectors of keyed tables, which make.py writes to keyed.json."""

import hashlib
from typing import Any

from spec import keyed

SEED = hashlib.shake_128(b"nescio test vector keyed").digest(32)
ROWS = 388_362
TEXTS = ("a", "hello", "h\u00e9llo", "he\u0301llo", "\U0001f600", "x" * 4096)
BYTES = (b"\0", b"a", bytes(range(256)))
INTEGERS = (0, 1, -1, (1 << 63) - 1, -(1 << 63), 1 << 63, (1 << 64) - 1)


def shown(key: keyed.Key) -> dict[str, str]:
    """Return a key as JSON: its type, and text, hex or a decimal number."""
    if isinstance(key, str):
        return {"type": "text", "key": key}
    if isinstance(key, bytes):
        return {"type": "bytes", "key": key.hex()}
    return {"type": "integer", "key": str(key)}


def key_case(key: keyed.Key) -> dict[str, Any]:
    """Build one case of the hashes."""
    words = keyed.words(SEED, key)
    return {
        **shown(key),
        "encoded": keyed.encode(key).hex(),
        "words": [str(word) for word in words],
        "places": keyed.places(words, ROWS),
    }


def value_of(name: str) -> bytes:
    """Return the value of a key: two 16-bit numbers."""
    return hashlib.shake_128(f"nescio test vector value {name}".encode()).digest(4)


class Table:
    """A keyed table that changes."""

    def __init__(self, names: list[str]) -> None:
        self.seed, self.tables = keyed.build(names)
        self.values: dict[keyed.Words, bytes] = {}
        self._put(names, "")

    def _put(self, names: list[str], salt: str) -> None:
        self.values |= {keyed.words(self.seed, name): value_of(name + salt) for name in names}

    def insert(self, names: list[str]) -> None:
        """Insert new keys."""
        self.tables = keyed.insert(self.tables, [keyed.words(self.seed, name) for name in names])
        self._put(names, "")

    def delete(self, names: list[str]) -> None:
        """Delete keys."""
        for name in names:
            self.tables.delete(keyed.words(self.seed, name))

    def rows(self) -> list[bytes]:
        """Return the rows of the physical table."""
        return keyed.physical_rows(self.tables, self.values, 4)

    def state(self) -> dict[str, Any]:
        """Return the layout and the rows as JSON."""
        layout = keyed.layout(self.seed, self.tables.rows, "text", "<u2", [2])
        return {"layout": layout.decode(), "rows": [row.hex() for row in self.rows()]}

    def lookup(self, name: str) -> dict[str, Any]:
        """Return a lookup: the places, the three rows there, and the value."""
        words = keyed.words(self.seed, name)
        rows = [self.rows()[slot] for slot in self.tables.at(words)]
        value = keyed.select(words, rows)
        return {
            "key": name,
            "places": keyed.places(words, self.tables.rows),
            "rows": [row.hex() for row in rows],
            "value": None if value is None else value.hex(),
        }


def changes() -> list[dict[str, Any]]:
    """Build a table of 27 keys and change it; it grows once."""
    names = [f"word {i}" for i in range(27)]
    table = Table(names)
    states = [{"operation": "build", "keys": names, **table.state()}]
    for operation, own in (
        ("delete", names[3:6]),
        ("insert", ["new 0", "new 1", "new 2"]),
        ("insert", ["new 3", "new 4"]),
    ):
        getattr(table, operation)(own)
        states.append({"operation": operation, "keys": own, **table.state()})
    return states


def content() -> dict[str, Any]:
    """Build keyed.json."""
    table = Table([f"word {i}" for i in range(27)])
    return {
        "seed": SEED.hex(),
        "rows": ROWS,
        "keys": [key_case(key) for key in (*TEXTS, *BYTES, *INTEGERS)],
        "lookups": {
            **table.state(),
            "lookups": [table.lookup(name) for name in ("word 0", "word 26", "no word")],
        },
        "changes": changes(),
    }
