"""Layouts from access logs: what they are made of, and which sizes are refused."""

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError, IndexRangeError
from nescio.pir import LocalTable
from nescio.pir.batch import (
    AccessLog,
    BatchClient,
    FullPart,
    Layout,
    bins_for,
    build,
    failure_probability,
    make_layout,
)
from nescio.pir.batch._plan import Planner

ROWS = 3000
POOL = _core.ThreadPool(2)


@pytest.fixture(scope="module")
def log():
    random = np.random.default_rng(4)
    sets = [np.minimum(random.zipf(1.4, n) - 1, ROWS - 1) for n in random.integers(5, 21, 2000)]
    return AccessLog(sets, users=random.integers(0, 300, 2000))


def test_exact_mode_by_default(log):
    layout = make_layout(ROWS, log)
    longest = sorted(log.lengths[log.users == user].max() for user in set(log.users))[-5]
    assert layout.mode == "exact"
    assert layout.lookups == longest
    assert layout.full.hashes * layout.full.bins == bins_for(longest)
    assert failure_probability(longest, 4 * layout.full.bins) <= 2**-40


def random_log(length):
    random = np.random.default_rng(5)
    return AccessLog(random.permuted(np.tile(np.arange(200), (4000, 1)), axis=1)[:, :length])


def test_no_inference_of_the_log_fails():
    """So few bins that an inference fails with the first seed: another one is chosen."""
    log = random_log(24)
    layout = make_layout(200, log, failure=0.5)
    assert layout.full.seed > 0
    first = Layout(200, FullPart(layout.full.bins, 1, 4, 0), lookups=24)
    rows = log.rows.astype(np.uint64)
    assert (Planner(first, POOL).assign(log.offsets, rows) == -1).any()
    assert not (Planner(layout, POOL).assign(log.offsets, rows) == -1).any()


def test_longer_inferences_than_the_count_do_not_matter_for_the_seed(log):
    layout = make_layout(ROWS, log, lookups=8)
    assert layout.lookups == 8
    longest = AccessLog([range(100)])
    assert make_layout(ROWS, longest, lookups=8).full.bins == layout.full.bins


@pytest.mark.parametrize("lookups", [1, 4])
def test_few_lookups_are_whole_lookups_and_the_builder_says_so(log, lookups):
    with pytest.warns(
        UserWarning, match=f"{lookups} lookups .* 4 hashes: whole lookups cost as little"
    ):
        layout = make_layout(ROWS, log, lookups=lookups)
    assert layout.full == FullPart(1, lookups)
    assert layout.table_rows < ROWS + 100


def test_tables_with_fewer_rows_than_bins_are_looked_up_whole():
    with pytest.warns(UserWarning, match="6 lookups in a table of 6 rows"):
        layout = make_layout(6, AccessLog([range(6)]), lookups=6)
    client = BatchClient(LocalTable(build(np.arange(6), layout).table))
    assert client.lookup(range(6)).rows[0].tolist() == list(range(6))


def test_partial_mode(log):
    layout = make_layout(ROWS, log, bins=16, keys=2, hot=100, hot_bins=4, hot_keys=3, together=2)
    assert layout.mode == "partial"
    assert layout.full == FullPart(16, 2)
    assert (layout.hot.bins, layout.hot.keys, len(layout.hot.rows)) == (4, 3, 100)
    assert layout.together.count == 2
    counts = log.counts(ROWS)
    others = np.delete(counts, layout.hot.rows.astype(int))
    assert counts[layout.hot.rows].min() >= others.max()


def test_several_hashes_in_partial_mode(log):
    layout = make_layout(ROWS, log, bins=8, hashes=2)
    assert (layout.mode, layout.full.hashes) == ("partial", 2)


def test_rare_rows_and_pairs_do_not_shape_a_layout():
    """Four users have rows 1 and 2 together, five have rows 3 and 4, one has row 9 six times."""
    sets = [[1, 2]] * 4 + [[3, 4]] * 5 + [[9, 8]] * 6
    users = [0, 1, 2, 3, 0, 1, 2, 3, 4, *[7] * 6]
    log = AccessLog(sets, users=users)
    layout = make_layout(20, log, bins=2, hot=10, together=1)
    assert layout.hot.rows.tolist() == [3, 4]
    assert layout.together.rows.tolist() == [3, 4]
    layout = make_layout(20, log, bins=2, hot=10, together=1, min_count=1)
    assert layout.hot.rows.tolist() == [1, 2, 3, 4, 8, 9]
    with pytest.raises(ArgumentError, match="together: found no two rows that at least 6 users"):
        make_layout(20, log, bins=2, together=1, min_count=6)


def test_the_longest_inferences_of_a_few_users_do_not_shape_a_layout():
    sets, users = [range(6)] * 5 + [range(90)] * 9, [0, 1, 2, 3, 4, *[7] * 9]
    assert make_layout(100, AccessLog(sets, users=users)).lookups == 6
    assert make_layout(100, AccessLog(sets, users=users), min_count=1).lookups == 90
    assert make_layout(100, AccessLog(sets)).lookups == 90  # users are not known
    with pytest.raises(ArgumentError, match="lookups: found 6 users .* expected at least 7"):
        make_layout(100, AccessLog(sets, users=users), min_count=7)


def test_a_table_from_a_log(log, rng):
    values = rng.random((ROWS, 4), np.float32)
    table = build(values, log, version="may", threads=1)
    client = BatchClient(LocalTable(table.table, threads=1))
    result = client.lookup([log[0], log[1]])
    assert np.array_equal(result.rows[1], values[log[1]])
    assert table.params.version == "may"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lookups": 0}, ArgumentError, "lookups: found 0"),
        ({"lookups": 10**6}, ArgumentError, "lookups: found 1000000, expected 1 to 2048"),
        ({"lookups": ROWS + 1}, ArgumentError, "lookups: found 3001, expected 1 to 2048"),
        ({"lookups": 8, "bins": 4}, ArgumentError, "lookups: found 8 with bins"),
        ({"failure": 0.5, "bins": 4}, ArgumentError, "failure: found 0.5 with bins"),
        ({"keys": 5}, ArgumentError, "keys: found 5 without bins"),
        ({"hot_bins": 2}, ArgumentError, "hot_bins: found 2 without hot rows"),
        ({"hot_keys": 2, "bins": 4}, ArgumentError, "hot_keys: found 2 without hot rows"),
        ({"hot": 3, "hot_keys": 0}, ArgumentError, "hot_keys: found 0"),
        ({"together": 1, "min_count": 10**6}, ArgumentError, "together: found no two rows"),
        ({"bins": ROWS + 1}, ArgumentError, f"found {ROWS + 1} bins, expected 1 to {ROWS}"),
        ({"hashes": 9}, ArgumentError, "hashes: found 9, expected 1 to 8"),
        ({"failure": 0}, ArgumentError, "failure"),
        ({"hot": ROWS + 1}, ArgumentError, "hot: found 3001"),
        ({"hot": 5, "hot_bins": 9, "bins": 4}, ArgumentError, "hot_bins: found 9, expected 1 to 5"),
        ({"hot": 5, "min_count": 10**6}, ArgumentError, "found 0 rows that at least 1000000 users"),
        ({"together": 65}, ArgumentError, "together: found 65, expected 0 to 64"),
        ({"min_count": 0}, ArgumentError, "min_count: found 0"),
        ({"hashes": 1}, ArgumentError, "1 hashes cannot reach"),
    ],
)
def test_sizes_that_cannot_be(log, options, error, message):
    with pytest.raises(error, match=message):
        make_layout(ROWS, log, **options)


def test_more_rows_than_the_table_has():
    with pytest.raises(ArgumentError, match="lookups: found 100, expected 1 to 99"):
        make_layout(99, AccessLog([[1]]), lookups=100)


def test_copies_of_too_many_rows(log):
    with pytest.raises(ArgumentError, match="rows: found 1099511627776, .* at most 1099511627776"):
        make_layout(1 << 40, log, lookups=24)
    assert make_layout(1 << 40, log, bins=1).table_rows == 1 << 40


@pytest.mark.parametrize("source", ["items.layout", None, b"{}"])
def test_sources_that_are_no_layouts(source):
    with pytest.raises(ArgumentError, match="expected a Layout or an AccessLog: read a file"):
        build(np.zeros(20), source)
    with pytest.raises(ArgumentError, match=f"log: found {type(source).__name__}, expected an"):
        make_layout(20, source)


def test_no_seed_works():
    """One inference of a hundred fails, and there are 4,000."""
    with pytest.raises(ArgumentError, match="do not fit .* any of 100 seeds"):
        make_layout(200, random_log(12), hashes=3, failure=0.999)


def test_logs_of_another_table(log):
    with pytest.raises(IndexRangeError, match="found row 2999"):
        make_layout(2999, AccessLog([[2999]]))
    with pytest.raises(ArgumentError, match="layout: found one of 10 rows for a table of 20"):
        build(np.zeros(20), Layout(10, FullPart(1)))


def test_a_log_with_one_inference():
    layout = make_layout(100, AccessLog([range(0, 40, 2)]), min_count=1)
    assert layout.lookups == 20
    client = BatchClient(LocalTable(build(np.arange(100), layout, threads=1).table, threads=1))
    assert client.lookup(range(20)).missing[0].tolist() == []


def test_memory_is_that_of_the_log_not_of_the_table():
    """A number for each of 2^39 rows would take 4 TB."""
    layout = make_layout(1 << 39, AccessLog([[5, 1 << 38], [5]]), bins=4, hot=1, min_count=1)
    assert layout.hot.rows.tolist() == [5]
