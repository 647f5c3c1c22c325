"""Tables that change."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nescio
from nescio import _core
from nescio.dpf import OUTPUTS
from nescio.errors import ArgumentError, IndexRangeError, MismatchError
from nescio.pir import _state, _table
from nescio.pir._versions import next_version
from pir.conftest import ROWS
from pir.test_lookup import assert_same, look_up, random_table


def fresh_params(values, table):
    """Returns the parameters of a new table with these values."""
    params = table.params
    made = nescio.Table(values, version=params.version, output=params.output)
    return made.params


def test_rows_in_the_open(values):
    table = nescio.Table(values)
    assert len(table) == ROWS
    assert_same(table[[0, 5, 5, ROWS - 1]], values[[0, 5, 5, ROWS - 1]])
    assert_same(table[np.array([[1], [2]])], values[[[1], [2]]])
    assert_same(table[7], values[7])
    with pytest.raises(IndexRangeError):
        table[ROWS]


@pytest.mark.parametrize("output", OUTPUTS)
def test_update(values, output, rng):
    table = nescio.Table(values, output=output, version="7")
    where = rng.integers(ROWS, size=200)
    rows = random_table(rng, (200, 5), "i4")
    values = values.copy()
    values[where] = rows
    assert table.update(where, rows) == table.params
    assert table.params == fresh_params(values, table)
    assert table.params.version == "8"
    assert_same(table[np.arange(ROWS)], values)
    assert_same(look_up(table, where[:5]), values[where[:5]])


BULK_ROWS = 50_001


def bulk_changes(rng):
    """Yields indices of bulk updates: in any order, repeated, of every row, of none."""
    some = rng.integers(BULK_ROWS, size=20_000)
    yield some[some // 4096 != 5]  # all chunks but one
    yield np.concatenate([[BULK_ROWS - 1, 0], some, [0, BULK_ROWS - 1, 0]])
    yield np.arange(BULK_ROWS)
    yield np.arange(BULK_ROWS)[::-1]
    yield np.full(10_000, 77)
    yield np.arange(8192, 8192 + 10_000)
    yield np.zeros(0, np.int64)


@pytest.mark.parametrize("output", ["bit", "u32"])
@pytest.mark.parametrize("row_bytes", [1, 2, 8, 11, 16, 70])
@pytest.mark.parametrize("dense", [0, 4], ids=["in place", "as a whole"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_bulk_update(output, row_bytes, dense, threads, rng, monkeypatch):
    """Of several rows for one index, the last one stays."""
    monkeypatch.setattr(_table, "DENSE", dense)
    monkeypatch.setattr(_state, "_CACHED_BYTES", 1 << 17)  # several parts, of longer rows
    expected = random_table(rng, (BULK_ROWS, row_bytes))
    table = nescio.Table(expected, output=output, threads=threads)
    for where in bulk_changes(rng):
        rows = random_table(rng, (len(where), row_bytes))
        last = dict(zip(where.tolist(), range(len(where)), strict=True))
        expected[list(last)] = rows[list(last.values())]
        table.update(where, rows)
        assert_same(table[np.arange(BULK_ROWS)], expected)
        made_anew = nescio.Table(expected, output=output, version=table.params.version)
        assert table.params == made_anew.params
        for number in range(len(table.params.layouts)):
            memory, expected_memory = (t._state.table(number).memory() for t in (table, made_anew))
            assert_same(memory, expected_memory)


@pytest.mark.parametrize("dense", [0, 4], ids=["in place", "as a whole"])
def test_a_bulk_update_that_is_invalid_changes_nothing(dense, rng, monkeypatch):
    monkeypatch.setattr(_table, "DENSE", dense)
    values = random_table(rng, (BULK_ROWS, 4))
    table = nescio.Table(values)
    before = table.params
    where = np.arange(BULK_ROWS)
    for wrong in (values[:-1], values[:, :3], values.astype("u2"), values.reshape(-1)):
        with pytest.raises(ArgumentError, match="the rows have shape"):
            table.update(where, wrong)
    for outside in (where + 1, where - 1):
        with pytest.raises(IndexRangeError, match="out of range"):
            table.update(outside, values[::-1])
    assert table.params == before
    assert_same(table[where], values)


def sliced(rows):
    """Returns the memory of a table in the sliced layout, from the definition in pir/sliced.h."""
    count, row_bytes = rows.shape
    blocks = -(-row_bytes // 8)
    lines = 2 * -(-count // 16)
    padded = np.zeros((lines * 8, blocks * 8), np.uint8)
    padded[:count, :row_bytes] = rows
    memory = []
    for tile in np.split(padded, range(512, len(padded), 512)):
        bits = np.unpackbits(tile, axis=1, bitorder="little").reshape(-1, 8, blocks, 64)
        # Of line r and bit column c, bit i of byte c belongs to row 8 r + i.
        columns = np.packbits(bits.transpose(2, 0, 3, 1), axis=-1, bitorder="little")
        memory.append(columns.reshape(-1))
    return np.concatenate(memory)


@pytest.mark.parametrize("tier", _core.supported_tiers())
@pytest.mark.parametrize("row_bytes", [1, 3, 8, 9, 16, 24, 70, 130])
@pytest.mark.parametrize("rows", [1, 512, 1300])
def test_the_sliced_layout_in_every_tier(tier, row_bytes, rows, rng):
    pool = _core.ThreadPool(2)
    values = random_table(rng, (rows, row_bytes))
    table = _core.Table([(1, rows, 1)], row_bytes, "bit")
    table.store(0, values, pool, tier)
    assert_same(table.memory(), sliced(values))
    assert_same(table.load_range(0, rows, pool, tier), values)
    where = rng.integers(rows, size=rows).astype(np.uint64)
    new = random_table(rng, (rows, row_bytes))
    changes = _core.RowChanges(where, new, [(1, rows, 1)], pool)
    for index, row in zip(where, new, strict=True):
        values[index] = row
    table.replace(changes, pool, tier)
    assert_same(table.memory(), sliced(values))


@pytest.mark.load
@pytest.mark.parametrize("output", ["bit", "u32"])
def test_a_bulk_update_costs_about_as_much_as_taking_the_table_in(output, rng):
    """Row by row in Python, it took 20 times as long."""

    def seconds(step):
        begin = time.process_time()
        step()
        return time.process_time() - begin

    values = random_table(rng, (1 << 20, 16))
    where = rng.choice(1 << 20, (1 << 20) // 10, replace=False)
    rows = values[where[::-1]]
    table = nescio.Table(values, output=output)
    whole = min(seconds(lambda: nescio.Table(values, output=output)) for _ in range(3))
    assert min(seconds(lambda: table.update(where, rows)) for _ in range(3)) < 5 * whole


@pytest.mark.load
@pytest.mark.parametrize("output", ["bit", "u32"])
def test_threads_do_not_slow_down_taking_in_narrow_rows(output, rng):
    values = random_table(rng, (1 << 21, 1))

    def seconds(threads):
        begin = time.process_time()
        nescio.Table(values, output=output, threads=threads)
        return time.process_time() - begin

    times = np.array([(seconds(1), seconds(2)) for _ in range(5)])
    one, two = times.min(axis=0)
    assert two < 2.5 * one  # two threads of one core may each take twice the CPU time


def test_rows_are_read_within_a_read_lock_while_a_change_waits(values):
    table = nescio.Table(values)
    writer = threading.Thread(target=table.update, args=([5], values[[6]]), daemon=True)
    found = []

    def read():
        with table.reading():
            writer.start()
            while not table._lock._turns:
                time.sleep(0.001)
            found.append(table[5])
            with pytest.raises(ArgumentError, match="by the same thread"):
                table.update([5], values[[7]])

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(10)
    writer.join(10)
    assert_same(found[0], values[5])
    assert_same(table[5], values[6])


def test_a_version_is_used_once(values):
    table = nescio.Table(values, version="3")
    table.update([0], values[[1]], version="2")
    with pytest.raises(ArgumentError, match="version: found '3', which .* such as '4'"):
        table.delete([0], version="3")
    with pytest.raises(ArgumentError, match="version: found '2'"):
        table.insert([0], values[[1]], version="2")
    assert table.update([0], values[[2]]).version == "4"


@pytest.mark.parametrize("output", ["bit", "u32"])
def test_insert_and_delete(values, output, rng):
    table = nescio.Table(values, output=output)
    where = np.concatenate([[0, 0, ROWS], rng.integers(ROWS, size=50)])
    rows = random_table(rng, (53, 5), "i4")
    table.insert(where, rows, version="more")
    values = np.insert(values, where, rows, axis=0)
    assert table.params == fresh_params(values, table)
    assert_same(table[np.arange(len(values))], values)
    gone = rng.integers(len(values), size=100)
    table.delete(gone)
    values = np.delete(values, gone, axis=0)
    assert table.params == fresh_params(values, table)
    assert table.params.version == "more+1"
    assert_same(look_up(table, [0, len(values) - 1]), values[[0, len(values) - 1]])


@given(data=st.data())
def test_any_series_of_changes(data):
    values = np.arange(60, dtype="u1").reshape(20, 3)
    table = nescio.Table(values)
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["update", "insert", "delete"]))
        most = len(values) - (kind != "insert")
        where = data.draw(st.lists(st.integers(0, most), min_size=1, max_size=5))
        rows = np.arange(3 * len(where), dtype="u1").reshape(-1, 3)
        if kind == "update":
            values = values.copy()
            values[where] = rows
            table.update(where, rows)
        elif kind == "insert":
            values = np.insert(values, where, rows, axis=0)
            table.insert(where, rows)
        elif len(set(where)) < len(values):
            values = np.delete(values, where, axis=0)
            table.delete(where)
        assert_same(table[np.arange(len(values))], values)
        assert table.params == fresh_params(values, table)


@pytest.mark.parametrize(
    ("version", "following"),
    [("1", "2"), ("99", "100"), ("may", "may+1"), ("may+1", "may+2"), ("2026-11", "2026-11+1")],
)
def test_versions_count_up(version, following):
    assert next_version(version) == following


def test_invalid_changes(values):
    table = nescio.Table(values)
    before = table.params
    for rows in (values[:2], values[:1].astype("f4"), values[:1, :2], [["a"]]):
        with pytest.raises(ArgumentError, match="expected|cannot be read"):
            table.update([0], rows)
    with pytest.raises(IndexRangeError):
        table.update([ROWS], values[:1])
    with pytest.raises(IndexRangeError):
        table.insert([ROWS + 1], values[:1])
    with pytest.raises(ArgumentError, match="at least one row"):
        table.delete(np.arange(ROWS))
    with pytest.raises(ArgumentError, match="version"):
        table.update([0], values[:1], version="\n")
    assert table.params == before
    assert_same(table[[0]], values[[0]])


def test_a_query_for_a_version_that_has_gone(values):
    table = nescio.Table(values)
    table.keep_versions(1)
    server = nescio.Server(table)
    query = nescio.Client(table.params, table.tops).query([5])
    checked = server.check(query.keys[0])
    old = table.params
    table.update([5], values[[6]])
    (answer,) = server.answer_batch([checked])
    assert isinstance(answer, MismatchError)
    assert (answer.found, answer.expected) == (old.id.hex(), table.params.id.hex())
    with pytest.raises(MismatchError):
        server.answer(query.keys[0])


def test_lookups_while_rows_change_are_never_wrong(rng):
    # All elements of a version are equal: a row of two versions would have different ones.
    table = nescio.Table(np.full((3000, 40), 1, "u1"))
    servers = [nescio.Server(table, threads=1, party=p) for p in (0, 1)]
    stop = threading.Event()
    wrong, answered, refused = [], [0], [0]

    def ask():
        while not stop.is_set():
            params, tops = table.params, table.tops
            try:
                client = nescio.Client(params, tops)
                query = client.query([7, 2999])
                answers = [s.answer(k) for s, k in zip(servers, query.keys, strict=True)]
                rows = client.decode(query, *answers)
            except MismatchError:
                refused[0] += 1
                continue
            if (rows != int(params.version) % 251).any():
                wrong.append(rows)
            answered[0] += 1

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for version in range(2, 200):
        table.update(np.arange(3000), np.full((3000, 40), version % 251, "u1"))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert answered[0] > 0
