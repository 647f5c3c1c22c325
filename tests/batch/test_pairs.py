"""Rows that occur together: as specified, the same for all threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nescio import _core
from nescio.errors import ArgumentError
from spec import batch as spec

POOLS = [_core.ThreadPool(1), _core.ThreadPool(3)]


def count_pairs(sets, users, limit, count, min_users, pool=POOLS[1]):
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    rows = np.array([row for one in sets for row in one], np.int64)
    owners = np.array(users, np.int64)
    return _core.count_pairs(offsets, rows, owners, limit, count, min_users, pool).tolist()


@st.composite
def logs(draw):
    limit = draw(st.integers(1, 9))
    rows = st.lists(st.integers(0, limit - 1), unique=True, max_size=limit)
    sets = draw(st.lists(rows, max_size=12))
    users = draw(st.lists(st.integers(0, 4), min_size=len(sets), max_size=len(sets)))
    return sets, sorted(users), limit, draw(st.integers(1, 4)), draw(st.integers(0, 4))


@given(logs())
def test_the_engine_counts_as_the_specification(log):
    expected = spec.count_pairs(*log)
    assert [count_pairs(*log, pool) for pool in POOLS] == [expected, expected]


def test_many_rows(rng):
    """More rows than a task has, from several threads."""
    sets = [rng.choice(500, 20, replace=False).tolist() for _ in range(300)]
    log = (sets, sorted(rng.integers(0, 40, 300).tolist()), 500, 3, 2)
    assert count_pairs(*log) == spec.count_pairs(*log)


@pytest.mark.parametrize(
    ("sets", "users", "limit", "words"),
    [
        ([[1]], [0], 1, "rows of sets: found 1, expected 0 to 1 - 1"),
        ([[-1]], [0], 1, "rows of sets: found -1"),
        ([[0]], [0, 1], 1, "users of sets: found 2, expected 1"),
        ([[0], [0]], [1, 0], 1, "users of sets: found 0 after 1"),
        ([[0]], [-1], 1, "users of sets: found -1 after 0"),
        ([[0]], [1 << 31], 1, "users of sets: found 2147483648"),
    ],
)
def test_sets_that_cannot_be(sets, users, limit, words):
    with pytest.raises(ArgumentError, match=words):
        count_pairs(sets, users, limit, 1, 1)


def test_offsets_that_do_not_ascend():
    rows, users = np.zeros(2, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ArgumentError, match="offsets of sets: found 1 after 2"):
        _core.count_pairs(np.array([0, 2, 1]), rows, users, 1, 1, 1, POOLS[0])
