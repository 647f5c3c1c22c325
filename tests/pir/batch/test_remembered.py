"""What a client of a batch table remembers between inferences: carried and cached rows."""

import numpy as np
import pytest

from nescio.errors import (
    ForgedAnswerError,
)
from nescio.pir import LocalTable
from nescio.pir.batch import BatchClient, FullPart, Layout, Together, build
from pir.batch.clients import ROWS, VALUES, check, client_of


def test_carried_rows_arrive_with_later_inferences():
    client = client_of(Layout(ROWS, FullPart(1, keys=2)), carry=True)
    first = client.lookup([1, 2, 3, 4])
    assert first.missing[0].tolist() == [3, 4]
    assert first.carried.tolist() == []
    second = client.lookup([[5], [6]])
    check(second, [[5], [6]])
    assert second.carried.tolist() == [3, 4]
    assert client.lookup([[7], [8]]).carried.tolist() == []


def test_a_row_that_is_asked_again_is_not_carried_too():
    client = client_of(Layout(ROWS, FullPart(1, keys=1)), carry=True)
    assert client.lookup([1, 2]).missing[0].tolist() == [2]
    again = client.lookup([2])
    check(again, [[2]])
    assert again.carried.tolist() == []
    assert client.lookup([3]).carried.tolist() == []


def test_without_carry_nothing_is_carried():
    client = client_of(Layout(ROWS, FullPart(1, keys=2)), cache_rows=10)
    client.lookup([1, 2, 3, 4])
    assert client.lookup([5]).carried.tolist() == []


def test_own_rows_come_before_carried_ones_and_few_of_these_are_kept():
    client = client_of(Layout(ROWS, FullPart(1, keys=2)), carry=True)
    client.lookup(list(range(100)))  # 98 rows are missing, 16 lookups of two slots are kept
    result = client.lookup([200, 201])
    assert result.carried.tolist() == []
    assert result.missing[0].tolist() == []
    arrived = client.lookup([[] for _ in range(30)]).carried.tolist()
    assert arrived == list(range(68, 100))


def test_cached_rows_need_no_slot():
    client = client_of(Layout(ROWS, FullPart(1, keys=2)), cache_rows=4)
    client.lookup([[1, 2], [3, 4]])
    result = client.lookup([1, 2, 3, 4, 5, 6])
    check(result, [[1, 2, 3, 4, 5, 6]])
    assert result.missing[0].tolist() == []
    again = client.lookup([5, 6, 1, 2])  # 3 and 4 were used before 5 and 6
    assert again.missing[0].tolist() == []


def test_the_rows_used_longest_ago_leave_the_cache_first():
    client = client_of(Layout(ROWS, FullPart(1, keys=1)), cache_rows=2)
    client.lookup([[1], [2]])
    client.lookup([1])  # used again
    client.lookup([3])  # 2 leaves
    assert client.lookup([1, 3]).missing[0].tolist() == []
    assert client.lookup([2, 400]).missing[0].tolist() == [400]


def test_rows_of_one_call_are_known_to_its_later_inferences():
    client = client_of(Layout(ROWS, FullPart(1, keys=1)), cache_rows=8)
    result = client.lookup([[1], [1, 2], [2, 1, 3]])
    check(result, [[1], [1, 2], [2, 1, 3]])
    assert not any(len(own) for own in result.missing)


def test_neighbors_that_nobody_asked_for_are_cached_too():
    near = Together(np.array([10]), np.array([[20, 30]]))
    client = client_of(Layout(ROWS, FullPart(1), together=near), cache_rows=8)
    client.lookup([10])
    result = client.lookup([20, 30, 10])
    check(result, [[20, 30, 10]])
    assert result.missing[0].tolist() == []


def test_neighbors_that_nobody_asked_for_push_no_used_rows_out():
    near = Together(np.array([10, 11]), np.array([[20, 30], [40, 50]]))
    client = client_of(Layout(ROWS, FullPart(1), together=near), cache_rows=3)
    client.lookup([[1], [10], [11]])  # 20 takes the free place, and leaves it for 11
    result = client.lookup([1, 10, 11, 400])
    check(result, [[1, 10, 11, 400]])
    assert result.missing[0].tolist() == []


def test_results_and_the_cache_do_not_share_memory():
    client = client_of(Layout(ROWS, FullPart(1)), cache_rows=8)
    client.lookup([7]).rows[0][:] = 99
    client.lookup([7]).rows[0][:] = 98
    check(client.lookup([7]), [[7]])


def test_a_call_that_fails_is_not_remembered():
    client = client_of(Layout(ROWS, FullPart(1, keys=2)), cache_rows=8, carry=True)
    client.lookup([1, 2, 3])
    lookups = client._lookups
    client._lookups = Failing(lookups)
    with pytest.raises(ForgedAnswerError):
        client.lookup([[4, 5, 6], [7]])
    client._lookups = lookups
    result = client.lookup([[1, 2], [4]])
    check(result, [[1, 2], [4]])
    assert result.carried.tolist() == [3]
    assert client.lookup([5, 6, 7]).missing[0].tolist() == [7]


class Failing:
    """Lookups whose answers are forged."""

    def __init__(self, lookups):
        self.params, self.layout = lookups.params, lookups.layout

    def lookup(self, places, *, layout=None):
        raise ForgedAnswerError("forged")


def test_cached_rows_of_an_earlier_version_are_forgotten():
    table = build(VALUES, Layout(ROWS, FullPart(2)), threads=1)
    client = BatchClient(LocalTable(table.table, threads=1), cache_rows=100)
    client.lookup([[3], [4]])
    new = VALUES.copy()
    new[[3, 5]] = 77
    table.update([3, 5], new[[3, 5]])
    check(client.lookup([[3], [5], [4]]), [[3], [5], [4]], new)
