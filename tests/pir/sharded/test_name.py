"""Files of fresh shards get the digest of their table afterwards, and only then."""

from dataclasses import replace

import numpy as np
import pytest

import nescio
from nescio import _core
from nescio.errors import FileError
from nescio.pir._rows import NO_DIGEST, RowKind, new_params
from nescio.pir._sharded import (
    ShardTable,
    build_shard,
    cut,
    name_shard,
    read_shard,
    shard_bytes,
    write_shard,
)

VALUES = np.random.default_rng(8).integers(256, size=(70_000, 64), dtype=np.uint8)


@pytest.fixture(scope="module")
def whole():
    return nescio.Table(VALUES).params


@pytest.fixture
def fresh(tmp_path, whole):
    """Writes one of three shards without a digest."""
    kind = RowKind(len(VALUES), VALUES.shape[1:], VALUES.dtype)
    params = new_params(
        kind,
        version="1",
        output="bit",
        generator="chacha20",
        record_rows=None,
        bins=(),
        layout=b"",
    )
    part, pool = cut(params, 3)[1], _core.ThreadPool(1)
    state = build_shard(params, part, lambda first, count: VALUES[first : first + count], pool)
    path = tmp_path / "shard"
    write_shard(path, ShardTable.of(state, part, pool))
    assert path.stat().st_size == shard_bytes(whole, part)
    return path


def test_a_named_shard_knows_its_table(fresh, whole):
    before = read_shard(fresh, 1)
    assert before.params.digest == NO_DIGEST
    name_shard(fresh, whole)
    after = read_shard(fresh, 1)
    assert after.params == whole
    np.testing.assert_array_equal(after.own_tops(), before.own_tops())


def test_rows_are_stored_in_steps(monkeypatch, whole):
    monkeypatch.setattr("nescio.pir._sharded._build._PART_BYTES", 1 << 17)
    done, pool = [], _core.ThreadPool(2)
    tops = []
    for part in cut(whole, 3):
        state = build_shard(
            whole,
            part,
            lambda first, count: VALUES[first : first + count],
            pool,
            lambda *both: done.append(both),
        )
        tops.append(state.tree.tops[part.first : part.end])
    assert len(done) > 30
    assert whole.digest_of(np.concatenate(tops)) == whole.digest


def test_a_shard_is_named_once(fresh, whole):
    name_shard(fresh, whole)
    data = fresh.read_bytes()
    with pytest.raises(FileError, match="expected one without a digest"):
        name_shard(fresh, replace(whole, digest="1" * 64))
    assert fresh.read_bytes() == data


@pytest.mark.parametrize("fields", [{"rows": 69_999}, {"version": "2"}, {"output": "u8"}])
def test_the_parameters_of_another_table_are_refused(fresh, whole, fields):
    other = replace(whole, bins=(), **fields)
    with pytest.raises(FileError, match="is not a shard of Nescio"):
        name_shard(fresh, other)
    assert read_shard(fresh, 1).is_fresh


@pytest.mark.parametrize("at", [20, 60, 4100, 8200])
def test_a_damaged_shard_is_not_named(fresh, whole, at):
    data = bytearray(fresh.read_bytes())
    data[at] ^= 1
    fresh.write_bytes(data)
    with pytest.raises(FileError, match="is not a shard of Nescio"):
        name_shard(fresh, whole)
    assert fresh.read_bytes() == bytes(data)


def test_a_crash_within_the_new_head_is_detected(fresh, whole):
    old = fresh.read_bytes()
    name_shard(fresh, whole)
    new = fresh.read_bytes()
    changed = [i for i in range(4096) if old[i] != new[i]]
    for cut_at in (changed[1], changed[40], changed[-1]):
        fresh.write_bytes(new[:cut_at] + old[cut_at:])
        with pytest.raises(FileError, match="is not a shard of Nescio"):
            read_shard(fresh, 1)


def test_a_missing_file_is_an_error_of_its_path(tmp_path, whole):
    with pytest.raises(FileError, match=r"missing.*No such file"):
        name_shard(tmp_path / "missing", whole)
