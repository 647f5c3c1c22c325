"""The simulated client-side cache."""

import numpy as np
import pytest

from nescio.errors import ArgumentError
from nescio.pir.batch import AccessLog
from nescio.pir.batch._tune.cache import missed
from pir.batch.logs import sessions


def one_by_one(log, cache_rows):
    """Keeps a list of each user's rows, the one used last at the end."""
    caches, found = {}, np.ones(len(log.rows), bool)
    for number in np.argsort(log.times, kind="stable"):
        cache = caches.setdefault(log.users[number], [])
        first = log.offsets[number]
        before = set(cache)
        for at, row in enumerate(log[number]):
            found[first + at] = row not in before
        for row in [r for r in log[number] if r in before]:
            cache.remove(row)
            cache.append(row)
        cache += [r for r in log[number] if r not in before]
        del cache[: max(0, len(cache) - cache_rows)]
    return found


@pytest.mark.parametrize("cache_rows", [1, 5, 20, 1000])
def test_a_cache_has_the_latest_rows_of_its_user(rng, cache_rows):
    log = sessions(rng)
    assert (missed(log, cache_rows) == one_by_one(log, cache_rows)).all()


def test_time_decides_not_the_order_of_the_log():
    log = AccessLog([[1], [1], [1]], users=[0, 0, 1], times=[2, 1, 0])
    assert missed(log, 4).tolist() == [False, True, True]


def test_rows_of_an_inference_do_not_push_each_other_out_before_they_are_found():
    log = AccessLog([[1, 2], [3, 1]], users=[0, 0], times=[0, 1])
    assert missed(log, 2).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (AccessLog([[1]]), "without users and times"),
        (AccessLog([[1]], users=[1]), "without times"),
        (AccessLog([[1]], times=[1]), "without users"),
    ],
)
def test_a_cache_needs_users_and_times(log, words):
    with pytest.raises(ArgumentError, match=f"found a log {words}, expected both"):
        missed(log, 10)
