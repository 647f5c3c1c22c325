"""Tables in files: whole or not at all, and damage is found."""

import json
import os
import struct

import numpy as np
import pytest

import nescio
from nescio.errors import FileError
from nescio.pir import _stored as stored
from pir.conftest import ROWS
from pir.test_lookup import assert_same, look_up


@pytest.mark.parametrize("output", ["bit", "u8", "u64"])
def test_a_stored_table(values, output, tmp_path):
    table = nescio.Table(values, output=output, version="x")
    path = tmp_path / "table.nescio"
    table.save(path)
    again = nescio.Table.load(path)
    assert again.params == table.params
    assert_same(look_up(again, [5, ROWS - 1]), values[[5, ROWS - 1]])
    again.update([5], values[[6]])  # in memory only
    assert_same(again[[5]], values[[6]])
    assert_same(nescio.Table.load(path)[[5]], values[[5]])


def test_a_stored_table_knows_its_source(values, tmp_path):
    path = tmp_path / "table.nescio"
    source = stored.Source(5, 6, 7, 8)
    nescio.Table(values).save(path, source=source)
    assert stored.is_stored(path)
    assert stored.source_of(path) == source
    nescio.Table(values).save(path)
    assert stored.source_of(path) is None


def test_a_stored_table_is_there_whole_or_not_at_all(values, tmp_path):
    table = nescio.Table(values)
    with pytest.raises(FileError, match="cannot be written"):
        table.save(tmp_path / "no such folder" / "table")
    table.save(tmp_path / "table")
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_a_source_that_is_rewritten_with_its_size_and_time(tmp_path):
    path = tmp_path / "words.npy"
    path.write_bytes(b"old")
    before = stored.Source.of(path)
    assert stored.Source.of(path) == before
    status = path.stat()
    path.write_bytes(b"new")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = stored.Source.of(path)
    assert (after.bytes, after.modified_nanoseconds) == (3, before.modified_nanoseconds)
    assert after != before
    replaced = tmp_path / "other.npy"
    replaced.write_bytes(b"new")
    replaced.replace(path)
    assert stored.Source.of(path).inode != after.inode


def damaged(path, change):
    data = bytearray(path.read_bytes())
    path.write_bytes(change(data) or data)


def with_json(data, **fields):
    """Replaces fields in the JSON of a stored table; the rest of the file is unchanged."""
    (length,) = struct.unpack_from("<I", data, 12)
    text = json.dumps(json.loads(data[48 : 48 + length]) | fields).encode()
    return data[:12] + struct.pack("<I", len(text)) + data[16:48] + text + data[48 + len(text) :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:10], "does not begin with"),
        (lambda d: b"\x93NUMPY" + d, "does not begin with"),
        (lambda d: d[:8] + b"\x09" + d[9:], "found version 9"),
        (lambda d: d[:48] + b"x" + d[49:], "is not JSON"),
        (lambda d: d[:12] + b"\xff\xff\xff\xff" + d[16:], "found version 5"),
        (lambda d: d[:-1], "bytes, expected"),
        (lambda d: d + b"\0", "bytes, expected"),
        (lambda d: d[:4096] + b"xx" + d[4098:], "its description or its hashes have changed"),
        (lambda d: d[:8192] + b"xx" + d[8194:], "its description or its hashes have changed"),
        (lambda d: with_json(d, source=[]), "its description or its hashes have changed"),
        (lambda d: with_json(d, params=None), "not a JSON object"),
        (lambda d: with_json(d, layout_bytes=0, params={"format": 3}), "missing or unknown"),
    ],
)
def test_a_damaged_stored_table(values, tmp_path, change, message):
    path = tmp_path / "table.nescio"
    nescio.Table(values).save(path)
    damaged(path, change)
    with pytest.raises(FileError, match=message) as caught:
        nescio.Table.load(path)
    assert "recreate the file with Table.save" in str(caught.value)


@pytest.mark.parametrize(
    ("place", "block"), [(7 << 12, 7 << 12), ((7 << 12) + 70_000, 7 << 12), (-1, 60 << 12)]
)
def test_a_flipped_bit_of_the_rows_of_a_stored_table(values, tmp_path, place, block):
    """In the rows, which follow 563 hashes, and in the hash table."""
    path = tmp_path / "table.nescio"
    nescio.Table(values, record_rows=1).save(path)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match=f"1 of 2 blocks have changed, the first at byte {block}"):
        nescio.Table.load(path)


def test_a_large_stored_table_is_checked_in_blocks(tmp_path):
    path = tmp_path / "table.nescio"
    table = nescio.Table(np.zeros((20_000, 512), "u1"))
    table.save(path)
    steps = []
    again = nescio.Table.load(path, threads=2, progress=lambda *done: steps.append(done))
    assert again.params == table.params
    assert steps[-1] == (table.bytes, table.bytes)
    assert len(steps) == 4
    data = bytearray(path.read_bytes())
    for place in (-1, -1 - (10 << 20)):
        data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match="2 of 4 blocks have changed"):
        nescio.Table.load(path)


def test_a_stored_table_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="does not exist, expected"):
        nescio.Table.load(tmp_path / "nowhere")
