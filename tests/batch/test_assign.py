"""Assignment of accesses to bins: as specified, a maximum matching, the same for all threads."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nescio import _core
from nescio.errors import ArgumentError
from spec import batch as spec

DROPPED, COVERED = -1, -2
POOL = _core.ThreadPool(2)


def assign(sets, capacity, together=None, pool=POOL):
    """Assigns sets, each a list of the candidates of its accesses."""
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    candidates = np.array([bins for one in sets for bins in one], np.int32)
    near = np.zeros((len(candidates), 0)) if together is None else np.concatenate(together)
    found = _core.assign(
        offsets,
        candidates,
        np.array(capacity, np.int32),
        np.asarray(near, np.int32),
        pool,
    )
    return [list(map(int, own)) for own in np.split(found, offsets[1:-1])]


@st.composite
def cases(draw):
    """Sets of accesses with the bins that they may use and the accesses that they bring."""
    bins, choices = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    capacity = draw(st.lists(st.integers(0, 3), min_size=bins, max_size=bins))
    width = draw(st.integers(0, 2))
    sets, together = [], []
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(1, 14))
        bin_ = st.integers(-1, bins - 1)
        near = st.integers(-1, count - 1)
        rows = st.lists(bin_, min_size=choices, max_size=choices)
        lists = st.lists(near, min_size=width, max_size=width)
        sets.append(draw(st.lists(rows, min_size=count, max_size=count)))
        together.append(draw(st.lists(lists, min_size=count, max_size=count)))
    return sets, capacity, together


@given(cases())
def test_the_engine_assigns_as_the_specification(case):
    sets, capacity, together = case
    expected = [spec.assign(own, capacity, near) for own, near in zip(sets, together, strict=True)]
    assert assign(sets, capacity, together) == expected


def maximum(candidates, capacity):
    """Returns the most accesses that any assignment serves: Kuhn's algorithm over all slots."""
    slots = [(b, k) for b, n in enumerate(capacity) for k in range(n)]
    holder = {}

    def free(access, seen):
        for slot in slots:
            if slot[0] in candidates[access] and slot not in seen:
                seen.add(slot)
                if slot not in holder or free(holder[slot], seen):
                    holder[slot] = access
                    return True
        return False

    return sum(free(access, set()) for access in range(len(candidates)))


@given(cases())
def test_no_assignment_serves_more_and_none_exceeds_a_bin(case):
    sets, capacity, _ = case
    for own, chosen in zip(sets, assign(sets, capacity), strict=True):
        used = [own[access][choice] for access, choice in enumerate(chosen) if choice >= 0]
        assert all(used.count(b) <= n for b, n in enumerate(capacity))
        assert -1 not in used
        assert len(used) == maximum(own, capacity)


@given(cases())
def test_an_access_never_loses_its_slot_to_a_later_one(case):
    sets, capacity, _ = case
    for own in sets:
        served = [assign([own[:end]], capacity)[0] for end in range(1, len(own) + 1)]
        for before, after in pairwise(served):
            assert all(after[i] >= 0 for i, choice in enumerate(before) if choice >= 0)


def test_the_first_candidate_is_preferred():
    assert assign([[[2, 0], [1, 2]]], [1, 1, 1]) == [[0, 0]]


def test_an_access_moves_to_make_room():
    # The second access can only use bin 0, so the first one moves to its other bin.
    assert assign([[[0, 1], [0, -1]]], [1, 1]) == [[1, 0]]
    assert assign([[[2, 0], [2, 1], [1, 2]]], [1, 1, 1]) == [[1, 1, 1]]


def test_an_access_that_another_brings_takes_no_slot():
    together = [[[2], [-1], [-1]]]
    assert assign([[[0], [0], [0]]], [2], together) == [[0, 0, COVERED]]


def test_an_access_without_a_slot_is_brought_by_a_later_one():
    together = [[[-1], [-1], [1]]]
    assert assign([[[0], [0], [1]]], [1, 1], together) == [[0, COVERED, 0]]


def test_what_a_dropped_access_would_bring_does_not_arrive():
    together = [[[3], [2], [-1], [-1]]]
    assert assign([[[0], [0], [0], [0]]], [1], together) == [[0, DROPPED, DROPPED, COVERED]]


def test_the_access_that_brings_the_most_others_goes_first():
    together = [[[-1, -1], [0, -1], [3, 1], [-1, -1]]]
    assert assign([[[0]] * 4], [1], together) == [[DROPPED, COVERED, 0, COVERED]]
    assert assign([[[0]] * 4], [2], together) == [[0, COVERED, 0, COVERED]]


def test_what_arrives_already_does_not_count():
    # The second access would bring two others, but one of them arrives with the first.
    together = [
        [[2, 3, 4], [3, 5, -1], [-1] * 3, [-1] * 3, [-1] * 3, [-1] * 3, [7, -1, -1], [-1] * 3]
    ]
    chosen = assign([[[0]] * 8], [3], together)[0]
    assert chosen == [0, 0, COVERED, COVERED, COVERED, COVERED, 0, COVERED]
    chosen = assign([[[0]] * 8], [2], together)[0]
    assert chosen == [0, 0, COVERED, COVERED, COVERED, COVERED, DROPPED, DROPPED]


def test_sets_are_independent_and_all_numbers_of_threads_agree(rng):
    sets = [rng.integers(-1, 40, (rng.integers(0, 50), 4)).tolist() for _ in range(1500)]
    capacity = rng.integers(0, 3, 40).tolist()
    one = [assign([own], capacity)[0] if own else [] for own in sets[:100]]
    everything = assign(sets, capacity)
    assert everything[:100] == one
    assert assign(sets, capacity, pool=_core.ThreadPool(1)) == everything


def test_one_set_larger_than_all_bins():
    found = assign([[[i % 50, (i + 1) % 50] for i in range(20_000)]], [3] * 50)
    assert sum(choice >= 0 for choice in found[0]) == 150


def test_no_sets_and_empty_sets():
    empty = np.zeros((0, 2), np.int32)
    for sets in (0, 3):
        offsets = np.zeros(sets + 1, np.int64)
        found = _core.assign(offsets, empty, np.ones(1, np.int32), empty, POOL)
        assert found.shape == (0,)
        assert found.dtype == np.int8


def arguments(**changes):
    usual = {
        "offsets": np.array([0, 1, 3], np.int64),
        "candidates": np.array([[0], [1], [1]], np.int32),
        "capacity": np.array([1, 1], np.int32),
        "together": np.array([[-1], [1], [0]], np.int32),
    }
    return {**usual, **{name: np.array(v, usual[name].dtype) for name, v in changes.items()}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offsets": []}, "found none"),
        ({"offsets": [1, 2, 3]}, "found 1 as the first, expected 0"),
        ({"offsets": [0, 2, 1, 3]}, "found 1 after 2, expected ascending"),
        ({"offsets": [0, 2]}, "found 2 as the last, expected 3"),
        ({"offsets": [0, 1, 1 << 40]}, "at most 2\\^31"),
        ({"candidates": [[0], [2], [1]]}, "found 2, expected -1 to 1"),
        ({"candidates": [[0], [-2], [1]]}, "found -2, expected -1 to 1"),
        ({"candidates": np.zeros((3, 0))}, "at least one candidate"),
        ({"candidates": np.zeros((3, 65))}, "expected 1 to 64"),
        ({"together": [[1], [1], [0]]}, "found 1, expected -1 to 0"),
        ({"together": [[-1], [1]]}, "2 lines of neighbors"),
        ({"capacity": [1, -1]}, "found -1, expected 0 or more"),
        ({"capacity": []}, "expected -1 to -1"),
    ],
)
def test_invalid_arguments(changes, message):
    with pytest.raises(ArgumentError, match=message):
        _core.assign(**arguments(**changes), pool=POOL)
    assert _core.assign(**arguments(), pool=POOL).tolist() == [0, 0, COVERED]


@given(st.lists(st.lists(st.integers(0, 12), max_size=8), max_size=4), st.data())
def test_the_rows_that_arrive_together_are_found(sets, data):
    neighbors = np.array(
        data.draw(st.lists(st.lists(st.integers(-1, 12), min_size=3, max_size=3), max_size=5)),
        np.int64,
    ).reshape(-1, 3)
    rows = [row for own in sets for row in own]
    lists = [data.draw(st.integers(-1, len(neighbors) - 1)) for _ in rows]
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    found = _core.find_together(
        offsets, np.array(rows, np.int64), np.array(lists, np.int64), neighbors, POOL
    ).tolist()
    expected = []
    for first, own in zip(offsets.tolist(), sets, strict=False):
        for at in range(len(own)):
            line = lists[first + at]
            near = neighbors[line].tolist() if line >= 0 else [-1] * 3
            expected.append([own.index(row) if row in own else -1 for row in near])
    assert found == expected


@pytest.mark.parametrize(
    ("offsets", "lists", "message"),
    [
        ([0, 3], [0, 0], "found 3 as the last, expected 2"),
        ([0, 2], [0], "found 1, expected 2"),
        ([0, 2], [0, 1], "found 1, expected -1 to 0"),
        ([0, 2], [-2, 0], "found -2, expected -1 to 0"),
    ],
)
def test_invalid_lists_of_neighbors(offsets, lists, message):
    with pytest.raises(ArgumentError, match=message):
        _core.find_together(
            np.array(offsets, np.int64),
            np.array([5, 6], np.int64),
            np.array(lists, np.int64),
            np.array([[1, 2]], np.int64),
            POOL,
        )
