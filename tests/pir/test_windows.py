"""Windows of tables: the rows of a table that are in memory, as a shard of a cluster has them."""

from itertools import pairwise

import numpy as np
import pytest

import nescio
from nescio import _core
from nescio.errors import ArgumentError, IndexRangeError

POOL = _core.ThreadPool(2)
TIERS = _core.supported_tiers()


def cut(rows, ends):
    """Returns the windows between the ends, which are rounded down to whole tiles."""
    edges = [0, *(end // _core.TILE_ROWS * _core.TILE_ROWS for end in ends), rows]
    return [(first, end - first) for first, end in pairwise(edges) if end > first]


def windows(values, output, ends):
    """Cuts rows of bytes into tables with a window each."""
    groups, row_bytes = [(1, len(values), 1)], values.shape[1]
    made = []
    for first, count in cut(len(values), ends):
        table = _core.Table(groups, row_bytes, output, window=(first, count))
        table.store(first, values[first : first + count], POOL)
        made.append((first, count, table))
    return made


def combine(output, answers):
    """Adds answers in the output group."""
    dtype = np.uint8 if output == "bit" else np.dtype(f"u{int(output[1:]) // 8}")
    parts = [np.asarray(answer).view(dtype) for answer in answers]
    add = np.bitwise_xor if output == "bit" else np.add
    return add.reduce(parts, dtype=dtype).view(np.uint8)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("generator", ["aes128", "chacha20"])
@pytest.mark.parametrize("output", ["bit", "u8", "u32", "u64"])
@pytest.mark.parametrize(
    ("rows", "ends"), [(3000, [512, 1024]), (5000, [1, 4096, 4999]), (70_001, [40_000]), (512, [9])]
)
def test_answers_of_windows_add_up_to_that_of_the_table(output, generator, tier, rows, ends):
    values = np.random.default_rng(1).integers(256, size=(rows, 24), dtype=np.uint8)
    table = nescio.Table(values, output=output, generator=generator, record_rows=1)
    server = nescio.Server(table, tier=tier, threads=2)
    client = nescio.Client(table.params, verify=False)
    for query in client.query([0, rows - 1, rows // 2]).keys:
        keys = list(server.check(query).keys[0])
        whole = _core.Table([(1, rows, 1)], 24, output)
        whole.store(0, values, POOL)
        parts = [part.answer(keys, POOL, tier) for _, _, part in windows(values, output, ends)]
        expected = np.asarray(whole.answer(keys, POOL, tier))
        np.testing.assert_array_equal(combine(output, parts), expected)


@pytest.mark.parametrize("output", ["bit", "u32"])
def test_rows_of_a_window_keep_their_numbers(output):
    values = np.random.default_rng(2).integers(256, size=(5000, 16), dtype=np.uint8)
    for first, count, part in windows(values, output, [1024, 2500]):
        inside = np.array([first, first + count - 1, first + count // 2], np.uint64)
        np.testing.assert_array_equal(part.load(inside), values[inside.astype(int)])
        np.testing.assert_array_equal(
            part.load_range(first, count, POOL), values[first : first + count]
        )
        new = 255 - values[inside.astype(int)]
        changes = _core.RowChanges(inside, new, [(1, 5000, 1)], POOL)
        part.replace(changes, POOL)
        np.testing.assert_array_equal(part.load(inside), new)


def test_rows_outside_a_window_are_refused():
    part = _core.Table([(1, 5000, 1)], 16, "bit", window=(1024, 1024))
    rows = np.zeros((1, 16), np.uint8)
    with pytest.raises(IndexRangeError, match="row 1023 is outside rows 1024 to 2048 of the table"):
        part.load(np.array([1023], np.uint64))
    with pytest.raises(IndexRangeError, match="rows 512 to 513 are outside rows 1024 to 2048"):
        part.store(512, rows, POOL)
    with pytest.raises(IndexRangeError, match="are outside rows 1024 to 2048"):
        part.load_range(1536, 600, POOL)
    changes = _core.RowChanges(np.array([4999], np.uint64), rows, [(1, 5000, 1)], POOL)
    with pytest.raises(IndexRangeError, match="changed rows from 4608 on are outside"):
        part.replace(changes, POOL)


@pytest.mark.parametrize("window", [(0, 0), (1, 512), (512, 4489), (5120, 1), (1 << 63, 1 << 63)])
def test_windows_that_are_no_part_of_a_table_are_refused(window):
    with pytest.raises(ArgumentError, match="window: found rows"):
        _core.Table([(1, 5000, 1)], 16, "bit", window=window)


def test_a_table_in_bins_has_no_window():
    with pytest.raises(ArgumentError, match="expected some rows of a table of one bin"):
        _core.Table([(4, 1024, 1)], 16, "bit", window=(0, 1024))
