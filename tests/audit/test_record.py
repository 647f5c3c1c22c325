"""Invalid or insufficient logs are rejected before any work."""

import itertools

import numpy as np
import pytest

from audit.records import Run
from nescio.audit import Log
from nescio.errors import ArgumentError
from spec import audit as spec


@pytest.fixture
def run():
    return Run(6, 20, seed=1, window=5)


def log(run, **changes):
    fields = {
        "aggregates": run.aggregates,
        "users": run.users,
        "windows": run.windows,
        "counts": run.counts,
        "participants": run.participants,
    }
    return Log(**(fields | changes))


def test_a_true_record_is_taken(run):
    record = log(run)
    assert (record.rounds, record.dimensions) == run.aggregates.shape
    assert not record.idle.any()
    assert (record.empty == (run.participants == 0)).all()


def changed(array, place, value):
    array = np.array(array)
    array[place] = value
    return array


BAD = {
    "NaN": (lambda r: {"aggregates": changed(r.aggregates, (3, 1), np.nan)}, "round 3 has NaN"),
    "inf": (lambda r: {"aggregates": changed(r.aggregates, (3, 1), np.inf)}, "round 3 has NaN"),
    "integers": (lambda r: {"aggregates": r.aggregates.astype(int)}, "float32 or float64"),
    "one dimension": (lambda r: {"aggregates": r.aggregates[0]}, "found shape"),
    "constant": (lambda r: {"aggregates": changed(r.aggregates, 2, 0.5)}, "one value in all"),
    "all zero": (
        lambda r: {"aggregates": 0 * r.aggregates, "participants": None, "counts": None},
        "every round is zero",
    ),
    "zero but attended": (
        lambda r: {"aggregates": changed(r.aggregates, np.argmax(r.participants), 0)},
        "its sum is zero",
    ),
    "users": (lambda r: {"users": 0}, "users"),
    "few rounds": (
        lambda r: {
            "aggregates": r.aggregates[:6],
            "windows": (),
            "counts": None,
            "participants": None,
        },
        "more rounds than users",
    ),
    "few dimensions": (lambda r: {"aggregates": r.aggregates[:, :5]}, "at least 6"),
    "window outside": (lambda r: {"windows": [(0, 21), *r.windows[1:]]}, "the stop of a window"),
    "window empty": (lambda r: {"windows": [(5, 5), *r.windows[1:]]}, "the stop of a window"),
    "window of three": (lambda r: {"windows": [(0, 1, 2), *r.windows[1:]]}, "pairs"),
    "counts shape": (lambda r: {"counts": r.counts[:, 1:]}, r"expected \(users, windows\)"),
    "counts below": (lambda r: {"counts": changed(r.counts, (0, 0), -2)}, "found -2"),
    "counts fractions": (lambda r: {"counts": r.counts + 0.5}, "expected integers"),
    "counts above": (
        lambda r: {"counts": changed(r.counts, (2, 1), 6), "participants": None},
        "user 2 took part 6 times in window 1, rounds 5 to 9, expected at most",
    ),
    "counts and participants": (
        lambda r: {"counts": changed(r.counts, (2, 1), (r.counts[2, 1] + 1) % 3)},
        "all users together",
    ),
    "participants shape": (lambda r: {"participants": r.participants[1:]}, "participants: found"),
    "participants above": (
        lambda r: {"participants": changed(r.participants, 4, 7)},
        "round 4 has 7, expected 0 to 6",
    ),
    "overlapping": (
        lambda r: {
            "windows": [*r.windows, (0, 10)],
            "counts": np.column_stack((r.counts, r.counts[:, 0] + r.counts[:, 1] + 1)),
            "participants": None,
        },
        "contradict",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_records_are_refused(run, name):
    change, message = BAD[name]
    with pytest.raises(ArgumentError, match=message):
        log(run, **change(run))


def test_counts_are_refused_exactly_when_no_column_has_them(rng):
    """All windows of six rounds in random sets, compared with exhaustive search."""
    rounds = 6
    every = list(itertools.combinations(range(rounds + 1), 2))
    sums = rng.standard_normal((rounds, 9))
    seen = {True: 0, False: 0}
    for _ in range(300):
        chosen = [every[i] for i in rng.choice(len(every), 4, replace=False)]
        wanted = [int(rng.integers(-1, b - a + 1)) for a, b in chosen]
        error = int(rng.integers(0, 2))
        expected = spec.is_feasible(rounds, chosen, wanted, error)
        seen[expected] += 1
        try:
            Log(sums, 1, chosen, np.array([wanted]), None, error)
        except ArgumentError:
            assert not expected, (chosen, wanted, error)
        else:
            assert expected, (chosen, wanted, error)
    assert min(seen.values()) > 50


def test_idle_users_need_no_rounds():
    run = Run(8, 9, 10, rate=0.4, window=3, seed=2)
    more = np.concatenate((run.counts, np.zeros((20, 3), np.int64)))
    record = Log(run.aggregates, 28, run.windows, more)
    assert (record.idle == (np.arange(28) >= 8)).all()
    unsure = changed(more, (9, 0), -1)
    with pytest.raises(ArgumentError, match="more rounds than users"):
        Log(run.aggregates, 28, run.windows, unsure)
