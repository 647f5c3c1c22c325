"""Replays tests/vectors/keyed.json: hashes of keys, lookups, and a table that changes."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from nescio import _core
from nescio.pir import KeyedClient, KeyedTable, LocalTable
from nescio.pir._keyed._keys import pack_keys, places_of
from nescio.pir._keyed._layout import KeyedLayout

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "keyed.json").read_text())
PARSED = {"text": str, "bytes": bytes.fromhex, "integer": int}


def value_of(name):
    """Returns the value of a key: see tests/vectors/README.md."""
    raw = hashlib.shake_128(f"nescio test vector value {name}".encode()).digest(4)
    return np.frombuffer(raw, "<u2")


def rows_of(keyed):
    return [row.tobytes().hex() for row in keyed.table[np.arange(len(keyed.table))]]


@pytest.mark.parametrize("case", VECTORS["keys"], ids=lambda c: f"{c['type']}-{c['key'][:12]}")
def test_hashes(case):
    packed = pack_keys(PARSED[case["type"]](case["key"]))
    assert packed.data.tobytes().hex() == case["encoded"]
    words = packed.hashed(bytes.fromhex(VECTORS["seed"]), _core.ThreadPool(1))
    assert [str(word) for word in words[0].tolist()] == case["words"]
    assert places_of(words, VECTORS["rows"])[0].tolist() == case["places"]


def test_lookups():
    wanted = VECTORS["lookups"]
    names = VECTORS["changes"][0]["keys"]
    keyed = KeyedTable(names, np.array([value_of(name) for name in names]))
    assert keyed.table.layout.decode() == wanted["layout"]
    assert rows_of(keyed) == wanted["rows"]
    client = KeyedClient(LocalTable(keyed.table))
    found = client.lookup([case["key"] for case in wanted["lookups"]])
    for case, value, has in zip(wanted["lookups"], *found, strict=True):
        assert (value.tobytes().hex() if has else None) == case["value"]


def test_changes():
    first, *changes = VECTORS["changes"]
    names = first["keys"]
    keyed = KeyedTable(names, np.array([value_of(name) for name in names]))
    assert rows_of(keyed) == first["rows"]
    for change in changes:
        values = np.array([value_of(name) for name in change["keys"]])
        arguments = [] if change["operation"] == "delete" else [values]
        getattr(keyed, change["operation"])(change["keys"], *arguments)
        assert keyed.table.layout.decode() == change["layout"]
        assert keyed.layout == KeyedLayout.from_bytes(change["layout"].encode())
        assert rows_of(keyed) == change["rows"]
