"""The tops of a table: changes keep them right, their messages, the shapes of hash tables."""

import numpy as np
import pytest

import nescio
from nescio.errors import (
    ArgumentError,
    MalformedMessageError,
    MismatchError,
)
from nescio.pir import _tops as tops
from nescio.pir import _wire as wire
from pir.checked import look_up, make, servers_of
from spec import pir as spec


@pytest.fixture(scope="module")
def table():
    return make(70_001)


def message_of(table, since=None):
    with table.reading() as state:
        return tops.encode_tops(state, since)


@pytest.mark.parametrize(
    ("rows", "record_rows"), [(100, 1), (5000, 1), (70_001, 1), (100, 32), (70_001, 8)]
)
def test_changes_keep_tops_and_digest(rows, record_rows):
    """After updates, insertions and deletions, as in a table that is taken in anew."""
    rng = np.random.default_rng(5)
    table = make(rows, record_rows=record_rows)
    for step in range(6):
        before, old = table.params, table.tops
        where = rng.integers(rows, size=int(rng.integers(1, 40)))
        table.update(where, rng.integers(256, size=(len(where), 8), dtype=np.uint8))
        message = message_of(table, before.id)
        assert np.array_equal(tops.parse_tops(table.params, message, old), table.tops)
        if step == 3:
            table.insert([0, rows // 2], np.zeros((2, 8), np.uint8))
            table.delete([1, 2])
    version = table.params.version
    fresh = nescio.Table(table[np.arange(len(table))], version=version, record_rows=record_rows)
    assert table.params == fresh.params
    assert np.array_equal(table.tops, fresh.tops)
    client = nescio.Client(table.params, table.tops)
    indices = [0, rows // 3, rows - 1]
    assert np.array_equal(look_up(client, indices, servers_of(table, fresh)), table[indices])


@pytest.mark.parametrize(
    ("row_bytes", "record_rows"),
    [(1, 256), (2, 128), (3, 64), (16, 16), (64, 4), (128, 2), (129, 1), (256, 1), (5000, 1)],
)
def test_short_rows_are_joined(row_bytes, record_rows):
    table = make(1001, row_bytes, record_rows=None)
    params = table.params
    assert params.record_rows == record_rows == spec.usual_record_rows(row_bytes)
    assert params.records == -(-1001 // record_rows)
    client = nescio.Client(params, table.tops)
    indices = np.array([[0, 1000], [500, 7]])
    assert np.array_equal(look_up(client, indices, servers_of(table, table)), table[indices])


@pytest.mark.parametrize("record_rows", [0, -1, 3, 1 << 17, 2.0, "2", True])
def test_records_that_cannot_be(record_rows):
    with pytest.raises(ArgumentError):
        make(10, record_rows=record_rows)
    with pytest.raises(ArgumentError, match="records of 33554432 bytes"):
        make(2, width=1 << 20, record_rows=32)


def test_growth_changes_the_shape():
    table = make(4096)
    assert table.params.hashes.height == 0
    table.insert([4096], np.ones((1, 8), np.uint8))
    assert (table.params.hashes.height, table.params.hashes.tops) == (1, 257)
    client = nescio.Client(table.params, table.tops)
    assert np.array_equal(look_up(client, [4096], servers_of(table, table)), table[[4096]])
    table.delete([4096])
    assert table.params.hashes.height == 0


def test_a_difference_is_short_where_few_rows_change(table):
    own = make(70_001)
    before = own.params
    own.update([1, 2, 69_999], np.zeros((3, 8), np.uint8))
    assert len(message_of(own, before.id)) == wire.HEADER_BYTES + 2 * 36
    assert len(message_of(own)) == wire.HEADER_BYTES + 32 * own.params.hashes.tops
    assert len(message_of(own, bytes(16))) == len(message_of(own))
    assert len(message_of(own, own.params.id)) == wire.HEADER_BYTES


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: b"",
        lambda m: m[:31],
        lambda m: m[:-1],
        lambda m: m + b"\0",
        lambda m: b"NQ" + m[2:],
        lambda m: m[:2] + b"\x01" + m[3:],
        lambda m: m[:3] + b"\x02" + m[4:],
        lambda m: m[:4] + b"\xff\xff\xff\xff" + m[8:],
        lambda m: m[:8] + b"\x24" + m[9:],
        lambda m: m[:12] + b"\x01" + m[13:],
        lambda m: m[:16] + bytes(16) + m[32:],
        lambda m: m[:40] + bytes([m[40] ^ 1]) + m[41:],
    ],
)
def test_damaged_tops(table, damage):
    with pytest.raises((MalformedMessageError, MismatchError)):
        tops.parse_tops(table.params, damage(message_of(table)))


def test_a_difference_that_was_not_asked_for(table):
    own = make(70_001)
    before, old = own.params, own.tops
    own.update([5], np.zeros((1, 8), np.uint8))
    message = message_of(own, before.id)
    with pytest.raises(MalformedMessageError, match="found a difference"):
        tops.parse_tops(own.params, message)
    beyond = message[:32] + b"\xff\xff\0\0" + message[36:]
    with pytest.raises(MalformedMessageError, match="found number 65535"):
        tops.parse_tops(own.params, beyond, old)
    with pytest.raises(MismatchError, match="tops of another table"):
        tops.parse_tops(own.params, message, old ^ np.uint8(1))


def test_the_digest_says_what_the_bytes_mean():
    values = np.arange(600, dtype="<u4").reshape(100, 6)
    same = [nescio.Table(values), nescio.Table(values, output="u32", version="2")]
    assert len({table.params.digest for table in same}) == 1
    others = [
        values.view(">u4"),
        values.view("f4"),
        values.reshape(100, 2, 3),
        values.reshape(50, 12),
    ]
    assert len({nescio.Table(other).params.digest for other in [values, *others]}) == 5


def test_tops_cannot_be_changed_by_accident(table):
    with pytest.raises(ValueError, match="read-only"):
        table.tops[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        nescio.Server(table).tops[0] = 0
