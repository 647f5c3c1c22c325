"""Ids of versions, of which the last ones are remembered."""

import tracemalloc
from collections import deque

import pytest

from nescio.pir._history import KnownIds
from nescio.pir._versions import RecentIds, UsedVersions


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("most", [1, 63, 64, 65, 200])
def test_the_last_ids_in_their_order(words, most, rng):
    ids, model = RecentIds(words, most), deque(maxlen=most)
    for number in range(450):
        ident = rng.bytes(8 * words)
        assert ident not in ids
        ids.add(ident)
        forgotten = model[0] if len(model) == most else None
        model.append(ident)
        assert ident in ids
        assert forgotten is None or forgotten not in ids
        if number % 7 == 0:
            assert len(ids) == len(model)
            assert ids.to_bytes() == b"".join(model)
            assert all(one in ids for one in model)
            assert ident[:-1] + bytes([ident[-1] ^ 1]) not in ids
        if number % 100 == 0:
            again = RecentIds(words, most)
            again.replace(ids.to_bytes())
            ids = again
    ids.replace(b"")
    assert (len(ids), ids.to_bytes()) == (0, b"")
    assert model[-1] not in ids


def test_versions_and_ids_take_their_bytes():
    """The memory of a server that updates rows for months grows by what the file grows by."""
    used, known, count = UsedVersions("1"), KnownIds(bytes(16)), 1 << 14
    tracemalloc.start()
    for number in range(count):
        used.add(f"v{number}")
        known.add(number.to_bytes(16, "little"))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 60 * count  # 8 and 16 each, at most twice that
    assert "v0" in used
    assert "v" not in used
    assert bytes(16) in known
    assert UsedVersions.from_bytes(used.to_bytes(), "v1").to_bytes() == used.to_bytes()
    assert KnownIds.from_bytes(known.to_bytes(), b"\xff" * 16).to_bytes() == (
        known.to_bytes()[16:] + b"\xff" * 16
    )
    assert KnownIds.from_bytes(b"", bytes(16)).to_bytes() == bytes(16)
