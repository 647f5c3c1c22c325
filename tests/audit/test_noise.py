"""Noise as in training: in few directions, with changes that all users share."""

import os
from contextlib import nullcontext

import numpy as np
import pytest

from audit.records import Run, never_wrong, short_searches
from nescio.audit import Log, solve
from nescio.audit._attack.estimate import column_space
from nescio.audit._attack.standardize import standardized_space
from nescio.audit._log.windows import batches, log_choices
from nescio.errors import ArgumentError
from spec import audit as spec

TRIALS = int(os.environ.get("AUDIT_TRIALS", "0"))


def log_of(run):
    return Log(run.aggregates, run.users, run.windows, run.counts, run.participants)


def test_noise_in_few_directions_is_measured_and_columns_are_proven():
    run = Run(40, 100, 8000, noise=0.2, directions=20, seed=1)
    result = solve(log_of(run), even=False, drift=0)
    assert run.right(result).all()
    assert result.unique.mean() > 0.9, "farther off than white noise would put them"
    assert not np.isnan(result.updates).any()


def test_parameters_are_evened_out_where_the_noise_is_in_few():
    run = Run(30, 70, 4000, noise=0.1, seed=2)
    rng = np.random.default_rng(2)
    loud = 40 * np.sqrt(run.participants)[:, None] * rng.standard_normal((70, 40))
    run.aggregates[:, :40] += loud
    log = log_of(run)
    assert run.right(solve(log, even=False, updates=False)).mean() < 0.5
    result = solve(log)
    assert result.standardized
    assert run.right(result).all()
    assert result.found.all()
    error = np.linalg.norm((result.updates - run.updates)[:, 40:], axis=1)
    assert (error / np.linalg.norm(run.updates[:, 40:], axis=1)).max() < 0.3


def test_what_all_users_share_may_drift():
    run = Run(30, 100, 2000, drift=1.0, noise=0.05, seed=3)
    log = log_of(run)
    still = solve(log, drift=0, updates=False)
    result = solve(log, updates=False)
    assert result.drift
    assert run.right(result).all()
    assert result.unique.all()
    assert not still.unique.any()
    assert never_wrong(run, still)


def test_certificates_are_left_out_on_request():
    run = Run(20, 80, seed=4)
    result = solve(log_of(run), certify=False)
    assert run.right(result).all()
    assert result.found.all()
    assert not result.unique.any()


def test_drift_that_cannot_be_allowed_for():
    run = Run(20, 26, rate=0.4, seed=4)
    for options, words in (({"drift": 8}, "at most 5"), ({"drift": -1}, "drift"),
                           ({"drift": 2, "noise": 0}, "noise=0")):  # fmt: skip
        with pytest.raises(ArgumentError, match=words):
            solve(log_of(run), **options)


def test_how_many_columns_have_the_counts():
    windows, counts = ((0, 4), (4, 9), (10, 12)), np.array([[1, 3, 0], [-1, 2, 2]])
    empty = np.zeros(12, bool)
    empty[5] = True
    for user, error in ((0, 0), (1, 0), (0, 1)):
        (batch,) = batches(windows, counts, error, np.array([user]))
        wanted = counts[user].tolist()
        columns = [c for c in spec.columns_with(12, windows, wanted, error) if not c[5]]
        many = np.exp(log_choices(batch, empty)[0])
        assert many >= len(columns) - 1e-6
        assert error or np.isclose(many, len(columns))


@pytest.mark.parametrize(("rounds", "users"), [(16, 4), (16, 10)])
def test_columns_by_chance_are_farther_than_said(rounds, users):
    """All columns with some counts, in unrelated spaces."""
    windows = tuple((t, t + 4) for t in range(0, rounds, 4))
    columns = np.array(list(spec.columns_with(rounds, windows, [1, 2, 0, 1], 0)), float)
    choices = np.full(len(columns), np.log(len(columns)))
    rng, nearer, away = np.random.default_rng(0), 0, []
    for _ in range(200):
        space = column_space(Log(rng.standard_normal((rounds, 60)), users), users, None, 0)
        limits, distances = space.chance(columns, choices), space.distances(columns)
        nearer += int((distances < limits).any())
        away.append((distances / limits).min())
    assert nearer <= 3, "with a probability of one in a thousand each"
    assert np.median(away) < 6, "and not by far"


@pytest.mark.parametrize("block", range(max(1, TRIALS // 10)))
def test_coloured_noise_never_makes_a_wrong_column_unique(block):
    """AUDIT_TRIALS=1000 for more, with searches of full length."""
    uniques = 0
    for seed in range(10 * block, 10 * block + 10):
        rng = np.random.default_rng(seed)
        users = int(rng.integers(3, 12))
        run = Run(
            users, users + int(rng.integers(4, 40)), int(rng.choice([100, 1000])),
            rate=float(rng.choice([0.1, 0.3])), window=int(rng.choice([5, 10])),
            noise=float(rng.choice([0.02, 0.1, 0.4, 1.0])), directions=int(rng.choice([3, 10, 40])),
            drift=float(rng.choice([0, 0.5, 3])), seed=seed,
        )  # fmt: skip
        even = rng.choice([None, False, True])
        with nullcontext() if TRIALS else short_searches():
            result = solve(log_of(run), updates=False, even=even)
        assert never_wrong(run, result), seed
        uniques += int(result.unique.sum())
    assert uniques > 5


def test_an_evened_space_spans_the_same():
    run = Run(10, 30, 200, seed=5)
    log = log_of(run)
    plain = column_space(log, 10, 1e-9, 0)
    even = standardized_space(log, 10, plain)
    assert np.allclose(even.distances(run.participation.T.astype(float)), 0, atol=1e-6)
    assert even.noise == plain.noise
