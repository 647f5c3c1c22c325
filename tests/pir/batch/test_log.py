"""Access logs: sets of rows with users and times, their division, counts and pairs."""

from collections import Counter

import numpy as np
import pytest

from nescio.errors import ArgumentError, IndexRangeError
from nescio.pir.batch import AccessLog
from nescio.pir.batch import _pairs as pairs_module


def as_lists(log):
    return [rows.tolist() for rows in log]


# ---- What a log takes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sets",
    [
        [[3, 1], [2], []],
        [(3, 1), np.array([2], np.uint8), np.array([])],
        [{3: None, 1: None}, {2}, frozenset()],
        [np.array([3, 1], np.uint64), [np.int32(2)], range(0)],
    ],
)
def test_sets_of_any_kind(sets):
    log = AccessLog(sets)
    assert as_lists(log) == [[3, 1], [2], []]
    assert log.offsets.tolist() == [0, 2, 3, 3]
    assert (len(log), log.lengths.tolist(), log[-1].tolist()) == (3, [2, 1, 0], [])


def test_lengths_that_several_users_have():
    sets, users = [range(9), range(8), range(3), [], range(4)], ["a", "a", "b", "c", "d"]
    known, unknown = AccessLog(sets, users=users), AccessLog(sets)
    assert [known.common_length(count) for count in range(1, 7)] == [9, 4, 3, 0, 0, 0]
    assert [unknown.common_length(count) for count in range(1, 7)] == [9, 8, 4, 3, 0, 0]


def test_an_array_has_an_inference_per_line(dlpack):
    assert as_lists(AccessLog(np.array([[1, 2], [2, 2]]))) == [[1, 2], [2]]
    assert as_lists(AccessLog(dlpack([[1, 2], [2, 2]]))) == [[1, 2], [2]]


def test_a_repeated_row_counts_once_at_its_first_place():
    log = AccessLog([[5, 1, 5, 0, 1], [1, 1]])
    assert as_lists(log) == [[5, 1, 0], [1]]
    far = AccessLog([[1 << 39, 1, 1 << 39]] * (1 << 10) + [[7]])
    assert as_lists(far)[-2:] == [[1 << 39, 1], [7]]


def test_columns_are_grouped_in_any_order():
    log = AccessLog.from_numpy(
        ["b", "a", "b", "a", "b"],
        [4, 1, 3, 1, 4],
        users=["x", "y", "x", "y", "x"],
        times=[5.0, 2.0, 4.0, 3.0, 6.0],
    )
    assert as_lists(log) == [[4, 3], [1]]
    assert log.users.tolist() == [0, 1]
    assert log.times.tolist() == [4.0, 2.0]


def test_names_become_numbers_and_dates_seconds():
    dates = np.array(["1970-01-02", "1970-01-01T00:00:01.5"], "datetime64[ms]")
    log = AccessLog([[1], [2]], users=["zoe", "ann"], times=dates)
    assert log.users.tolist() == [0, 1]
    assert log.times.tolist() == [86400.0, 1.5]
    assert repr(log) == "AccessLog(2 inferences, 2 accesses, 2 users, times)"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AccessLog([]), "the log is empty: found 0 inferences"),
        (lambda: AccessLog([[], []]), "the log is empty: found 2 inferences without accesses"),
        (lambda: AccessLog([[1], [2, 1.5]]), "inference 1: found row 1.5, expected an integer"),
        (lambda: AccessLog([[1], ["x"]]), "inference 1: found row 'x', expected an integer"),
        (lambda: AccessLog([[1], [True]]), "inference 1: found row True, expected an integer"),
        (lambda: AccessLog([[1], [1 << 70]]), "inference 1: found row 1180591620717411303424"),
        (lambda: AccessLog([[1], 2]), "inference 1: found 2, expected its rows"),
        (lambda: AccessLog([[1], None]), "inference 1: found None, expected its rows"),
        (lambda: AccessLog([1, 2]), "inference 0: found 1, expected its rows"),
        (lambda: AccessLog(np.array([1, 2])), "found an array of 1 dimensions"),
        (lambda: AccessLog("123"), "sets: found '123'"),
        (lambda: AccessLog([[1], [2]], users=[1]), r"users: found shape \(1,\), expected \(2,\)"),
        (lambda: AccessLog([[1], [2]], users=[1, float("nan")]), "users: found nan at 1"),
        (lambda: AccessLog([[1], [2]], times=[1, 2, 3]), "times: found shape"),
        (lambda: AccessLog([[1], [2]], times=[1, np.nan]), "times, number 1: found the time nan"),
        (lambda: AccessLog([[1]], times=[np.inf]), "times, number 0: found the time inf"),
        (lambda: AccessLog([[1]], times=np.array(["NaT"], "M8[s]")), "found the time nan"),
        (lambda: AccessLog([[1]], times=["noon"]), "times: found <U4, expected numbers or dates"),
        (lambda: AccessLog.from_numpy([], []), "the log is empty"),
        (lambda: AccessLog.from_numpy([1, 2], [1]), "inferences: found shape"),
        (lambda: AccessLog.from_numpy([1, 2], [1, 2.5]), "access 1: found row 2.5"),
        (
            lambda: AccessLog.from_numpy([1, 2, 1], [1, 2, 3], users=["a", "a", "b"]),
            "access 2: found another user than in the same inference before",
        ),
    ],
)
def test_bad_logs(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AccessLog([[1], [2, -3]]), "inference 1: found row -3, expected 0 to"),
        (lambda: AccessLog([[1], [1 << 40]]), "inference 1: found row 1099511627776"),
        (
            lambda: AccessLog.from_numpy([1, 2], [1, 9], limit=9),
            "access 1: found row 9, expected 0",
        ),
        (
            lambda: AccessLog([[1], [], [2, 9]]).check(9),
            "inference 2: found row 9, expected 0 to 8",
        ),
        (lambda: AccessLog([[1], [9]]).counts(9), "inference 1: found row 9"),
    ],
)
def test_rows_outside_the_table(make, words):
    with pytest.raises(IndexRangeError, match=words):
        make()


def test_a_log_cannot_be_changed():
    log = AccessLog([[1, 2]], [1], [1])
    for array in (log.offsets, log.rows, log.users, log.times):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


# ---- Division ------------------------------------------------------------------------------------


def test_selected_inferences_keep_users_and_times():
    log = AccessLog([[1], [], [2, 3], [4]], users=[*"abca"], times=[1, 2, 3, 4])
    some = log.select(np.array([3, 1, 2]))
    assert as_lists(some) == [[4], [], [2, 3]]
    assert some.users.tolist() == [0, 1, 2]
    assert some.times.tolist() == [4, 2, 3]


def test_times_divide_into_before_and_after():
    log = AccessLog([[i] for i in range(10)], users=[0] * 10, times=[9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
    before, after = log.split(0.7)
    assert before.times.max() < after.times.min()
    assert (len(before), len(after)) == (7, 3)


def test_users_are_on_one_side():
    log = AccessLog([[i] for i in range(200)], users=np.arange(200) // 10)
    train, held = log.split(0.8)
    assert not set(train.users) & set(held.users)
    assert len(train) == 160
    assert [a.tolist() for a in log.split(0.8)[0]] == as_lists(train)


@pytest.mark.parametrize("users", [None, [7] * 50])
def test_otherwise_inferences_are_drawn(users):
    log = AccessLog([[i] for i in range(50)], users)
    train, held = log.split(0.6)
    assert (len(train), len(held)) == (30, 20)
    assert sorted([*train.rows, *held.rows]) == list(range(50))
    assert train.rows.tolist() != list(range(30))


def test_each_side_gets_something():
    sizes = [len(part) for part in AccessLog([[1], [2]]).split(0.999)]
    assert sizes == [1, 1]
    users = AccessLog([[1]] * 9 + [[2]], users=[1] * 9 + [2]).split(0.5)
    assert sorted(map(len, users)) == [1, 9]


@pytest.mark.parametrize(
    ("log", "fraction", "words"),
    [
        (AccessLog([[1, 2]]), 0.8, "the log has one inference, expected at least two"),
        (AccessLog([[1], [2]]), 1.0, "fraction: found 1.0"),
        (AccessLog([[1], []]), 0.5, "the log is empty: found 1 inferences without accesses"),
    ],
)
def test_what_cannot_be_divided(log, fraction, words):
    with pytest.raises(ArgumentError, match=words):
        log.split(fraction)


# ---- Counts and pairs ----------------------------------------------------------------------------


def test_counts_of_inferences_and_of_users():
    log = AccessLog([[0, 1], [1], [1, 3], [3]], users=[5, 5, 6, 6])
    assert log.counts(5).tolist() == [1, 3, 0, 2, 0]
    assert log.counts(5, users=True).tolist() == [1, 2, 0, 1, 0]
    assert AccessLog([[0, 1], [1]]).counts(2, users=True).tolist() == [1, 2]


def test_common_rows_are_those_of_enough_users_most_inferences_first(rng):
    log = AccessLog([[9, 1], [9, 1], [9, 5], [5, 7], [2]], users=[0, 0, 1, 2, 3])
    assert log.common(1).tolist() == [9, 1, 5, 2, 7]
    assert log.common(2).tolist() == [9, 5]
    assert log.common(3).tolist() == []
    assert AccessLog([[3, 1], [1], [3]]).common(2).tolist() == [1, 3]


def expected_pairs(log, count, min_count):
    """Counts pairs one by one."""
    inferences, people = Counter(), {}
    for number, rows in enumerate(as_lists(log)):
        user = number if log.users is None else log.users[number]
        for pair in ((a, b) for a in rows for b in rows if a != b):
            inferences[pair] += 1
            people.setdefault(pair, set()).add(user)
    found = {}
    for (a, b), _ in sorted(inferences.items(), key=lambda item: (item[0][0], -item[1], item[0])):
        if len(people[a, b]) >= min_count and len(found.setdefault(a, [])) < count:
            found[a].append(b)
    return {row: neighbors for row, neighbors in found.items() if neighbors}


@pytest.mark.parametrize("users", [False, True])
@pytest.mark.parametrize("min_count", [1, 2, 3])
def test_pairs_are_those_of_a_count_one_by_one(rng, users, min_count):
    for _ in range(8):
        count = int(rng.integers(2, 40))
        sets = [rng.zipf(1.5, rng.integers(1, 9)) % 20 * 1000 for _ in range(count)]
        log = AccessLog(sets, rng.integers(0, 6, count) if users else None)
        found = log.pairs(3, min_count)
        assert (np.diff(found.rows) > 0).all()
        neighbors = [[n for n in line if n >= 0] for line in found.neighbors.tolist()]
        assert dict(zip(found.rows.tolist(), neighbors, strict=True)) == expected_pairs(
            log, 3, min_count
        )


def test_one_user_makes_no_pair_frequent():
    often = [[1, 2]] * 50
    assert len(AccessLog([*often, [1, 3], [1, 3]], [*[0] * 50, 1, 2]).pairs(2, 2).rows) == 2
    assert AccessLog(often, [0] * 50).pairs(2, 2).rows.tolist() == []
    assert AccessLog(often).pairs(2, 50).neighbors.tolist() == [[2, -1], [1, -1]]


def test_large_sets_are_sampled():
    whole = AccessLog([range(2000), [1, 2], [1, 2]])
    found = whole.pairs(1)
    assert len(found.rows) <= pairs_module.MAX_SET + 2
    assert found.neighbors[list(found.rows).index(1)].tolist() == [2]


@pytest.mark.parametrize("arguments", [(0,), (65,), (2, 0), (1.5,)])
def test_bad_counts_of_pairs(arguments):
    with pytest.raises(ArgumentError, match="count: found"):
        AccessLog([[1, 2]]).pairs(*arguments)
