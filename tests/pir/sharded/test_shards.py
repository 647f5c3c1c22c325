"""Shards of a table answer as the whole table does, whatever the cut and the changes."""

from dataclasses import replace

import numpy as np
import pytest

import nescio
from nescio import _core
from nescio.errors import ArgumentError, FileError, IndexRangeError, MismatchError
from nescio.pir._rows import RowKind, new_params
from nescio.pir._sharded import (
    HeadTable,
    RowUpdate,
    ShardServer,
    build_shard,
    cut,
    read_shard,
    write_shard,
)
from nescio.pir._sharded._head import merged_tops
from nescio.pir._sharded._shard import ShardTable
from nescio.pir._sharded._sum import add_answers
from nescio.pir._vacancy import Vacancy

POOL = _core.ThreadPool(2)
RANDOM = np.random.default_rng(5)
_CASES = [(700, 16, "bit", 1), (700, 16, "bit", 3), (70_000, 64, "bit", 5), (70_000, 40, "u32", 4)]


class Local:
    """All shards in this process."""

    def __init__(self, tables):
        self.tables = tables
        self.prepared = []

    def prepare(self, update):
        self.prepared = [
            table.prepare(update.of(table.params, table.part)) for table in self.tables
        ]
        return merged_tops([one.tops for one in self.prepared])

    def commit(self, update):
        for table, one in zip(self.tables, self.prepared, strict=True):
            table.commit(one, update.after)

    def abandon(self, update):
        self.prepared = []


def sharded(values, output, shards, spare=0):
    """Returns a head, its shards, and the whole table of the same rows."""
    whole = nescio.Table(values, output=output, spare=spare)
    rows = np.concatenate([values, np.zeros((spare, values.shape[1]), np.uint8)])
    kind = RowKind(len(rows), values.shape[1:], values.dtype)
    params = new_params(
        kind,
        version="1",
        output=output,
        generator="chacha20",
        record_rows=None,
        bins=(),
        layout=b"",
    )
    parts = cut(params, shards)
    load = lambda first, count: rows[first : first + count]  # noqa: E731
    tables = [ShardTable.of(build_shard(params, part, load, POOL), part, POOL) for part in parts]
    tops = np.concatenate([table.own_tops() for table in tables])
    params = replace(params, digest=params.digest_of(tops))
    for table in tables:
        table.identify(params)
    vacancy = Vacancy(len(values))
    vacancy.grow(len(rows))
    return HeadTable.of(params, tops, b"", vacancy, Local(tables)), tables, whole


def answer(tables, query):
    """Adds the answers of all shards to a query."""
    parts = []
    for table in tables:
        server = ShardServer(table, threads=1, device="cpu")
        (part,) = server.answer_parts([server.checked(query)])
        if isinstance(part, Exception):
            raise part
        parts.append(np.frombuffer(part, np.uint8))
    message = ShardServer(tables[0], threads=1, device="cpu").check(query)
    params = tables[0].version_of(message.table).params
    return add_answers(params, message.lookups, parts).tobytes()


def check_answers(tables, whole, params=None):
    params = params or whole.params
    client = nescio.Client(params, whole.tops_of(params.id))
    wanted = [0, params.rows - 1, params.rows // 2]
    query = client.query(wanted)
    server = nescio.Server(whole, threads=1)
    for key in query.keys:
        assert answer(tables, key) == server.answer(key)[32:]


@pytest.mark.parametrize(("rows", "row_bytes", "output", "shards"), _CASES)
def test_shards_answer_as_the_whole_table_does(rows, row_bytes, output, shards):
    values = RANDOM.integers(256, size=(rows, row_bytes), dtype=np.uint8)
    head, tables, whole = sharded(values, output, shards)
    assert head.params == whole.params
    np.testing.assert_array_equal(head.tops, whole.tops)
    check_answers(tables, whole)


@pytest.mark.parametrize(("rows", "row_bytes", "output", "shards"), _CASES)
def test_changes_make_the_versions_that_they_make_in_a_whole_table(rows, row_bytes, output, shards):
    values = RANDOM.integers(256, size=(rows, row_bytes), dtype=np.uint8)
    head, tables, whole = sharded(values, output, shards, spare=9)
    ids = [whole.params]
    for count in (1, 20, 3, rows // 3):
        where = RANDOM.integers(rows, size=count)
        new = RANDOM.integers(256, size=(count, row_bytes), dtype=np.uint8)
        assert head.update(where, new) == whole.update(where, new)
        ids.append(whole.params)
    np.testing.assert_array_equal(head.append(values[:3]), whole.append(values[:3]))
    head.clear([rows + 1])
    whole.clear([rows + 1])
    assert head.params == whole.params
    assert [table.params.id for table in tables] == [head.params.id] * shards
    check_answers(tables, whole)
    for params in whole.versions[1:3]:
        check_answers(tables, whole, params)
        np.testing.assert_array_equal(head.tops_of(params.id), whole.tops_of(params.id))


def test_shards_at_different_versions_answer_from_one():
    values = RANDOM.integers(256, size=(70_000, 64), dtype=np.uint8)
    _, tables, whole = sharded(values, "bit", 4)
    before = whole.params
    where = np.arange(0, 70_000, 977)
    new = RANDOM.integers(256, size=(len(where), 64), dtype=np.uint8)
    whole.update(where, new)
    update = RowUpdate(before.id, where.astype(np.uint64), new, whole.params)
    for table in tables[:2]:
        table.make(update)
    check_answers(tables, whole, before)
    with pytest.raises(MismatchError):
        check_answers(tables, whole)
    for table in tables[2:]:
        table.make(update)
    check_answers(tables, whole)


def test_a_failed_change_leaves_all_shards_as_they_were():
    values = RANDOM.integers(256, size=(700, 16), dtype=np.uint8)
    head, tables, whole = sharded(values, "bit", 3)

    def record(params):
        raise FileError("the disk is full")

    head._record = record
    with pytest.raises(FileError):
        head.update([1], values[:1])
    assert head.shards.prepared == []
    head._record = None
    assert {table.params.id for table in tables} == {whole.params.id}
    head.update([1], values[5:6])
    whole.update([1], values[5:6])
    check_answers(tables, whole)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_stored_shard_answers_and_changes_as_before(tmp_path, mapped):
    values = RANDOM.integers(256, size=(70_000, 64), dtype=np.uint8)
    head, tables, whole = sharded(values, "bit", 3)
    for number, table in enumerate(tables):
        write_shard(tmp_path / f"{number}", table)
    read = [read_shard(tmp_path / f"{number}", 1, mapped=mapped) for number in range(3)]
    check_answers(read, whole)
    head = HeadTable.of(head.params, head.tops, b"", Vacancy(70_000), Local(read))
    assert head.update([69_999, 0], values[:2]) == whole.update([69_999, 0], values[:2])
    check_answers(read, whole)


@pytest.mark.parametrize("at", [0, 20, 60, 4100, 8200, 300_000])
def test_a_damaged_shard_is_refused(tmp_path, at):
    values = RANDOM.integers(256, size=(70_000, 64), dtype=np.uint8)
    _, tables, _ = sharded(values, "bit", 3)
    path = tmp_path / "shard"
    write_shard(path, tables[1])
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match="is not a shard of Nescio"):
        read_shard(path, 1)
    path.write_bytes(data[:-1])
    with pytest.raises(FileError, match="is not a shard of Nescio"):
        read_shard(path, 1)


def test_what_shards_and_heads_refuse():
    values = RANDOM.integers(256, size=(700, 16), dtype=np.uint8)
    head, tables, whole = sharded(values, "bit", 3)
    with pytest.raises(ArgumentError, match="shards: found 701, expected at most 44"):
        cut(whole.params, 701)
    with pytest.raises(IndexRangeError, match="found row 699"):
        tables[0].prepare(RowUpdate(head.params.id, np.array([699], np.uint64), values[:1]))
    with pytest.raises(MismatchError):
        tables[0].prepare(RowUpdate(bytes(16), np.array([0], np.uint64), values[:1]))
    for change in (
        lambda: head.insert([0], values[:1]),
        lambda: head.delete([0]),
        lambda: head.grow(5),
        lambda: head.append(values[:1]),
    ):
        with pytest.raises(ArgumentError, match="of a table that is cut into shards"):
            change()
    with pytest.raises(ArgumentError, match="a table in bins"):
        cut(nescio.Table(values, bins=[(7, 100)]).params, 2)
