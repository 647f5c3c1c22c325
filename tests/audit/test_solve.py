"""The attack finds the true matrix, and reports what it cannot decide."""

import os

import numpy as np
import pytest

from audit.records import Run, never_wrong
from nescio import audit
from nescio.errors import ArgumentError
from spec import audit as spec

TRIALS = int(os.environ.get("AUDIT_TRIALS", "20"))


def solve(run, **options):
    fields = {"windows": run.windows, "counts": run.counts, "participants": run.participants}
    fields |= {k: options.pop(k) for k in ("windows", "counts", "participants") if k in options}
    return audit.disaggregate(
        run.aggregates, fields["windows"], fields["counts"], run.users,
        participants=fields["participants"], **options,
    )  # fmt: skip


@pytest.mark.parametrize("method", ["auto", "reflect", "program"])
def test_the_planted_matrix_is_found(method):
    run = Run(20, 80, seed=1)
    result = solve(run, method=method)
    assert run.right(result).all()
    assert np.allclose(result.updates, run.updates)
    assert result.participation.dtype == np.uint8
    assert np.isfinite(result.conditioning).all()
    assert result.found.all()
    if method != "reflect":
        assert result.unique.all()


def test_single_precision_is_enough():
    run = Run(40, 90, seed=2, dtype=np.float32)
    result = solve(run)
    assert run.right(result).all()
    assert result.unique.all()
    assert result.updates.dtype == np.float32
    assert np.allclose(result.updates, run.updates, atol=1e-3)


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
def test_noise_up_to_the_update_itself(noise):
    run = Run(50, 110, 16384, noise=noise, seed=2)
    result = solve(run)
    assert run.right(result).all()
    assert result.unique.mean() > 0.9
    error = np.sqrt(((result.updates - run.updates) ** 2).mean(axis=1))
    predicted = result.conditioning * result.noise
    assert np.allclose(error, predicted, rtol=0.1)


@pytest.mark.parametrize("seed", [1, 2])
def test_directions_that_the_noise_nearly_hides(seed):
    """Weak directions predict distances badly, and must not let every column pass."""
    run = Run(100, 200, 16384, noise=1.0, seed=seed)
    assert run.right(solve(run, method="reflect", updates=False)).all()


def test_noise_that_hides_everything():
    run = Run(12, 40, 64, noise=20.0, seed=4)
    result = solve(run, method="reflect")
    assert not result.unique.any()
    assert np.isnan(result.updates[~result.found]).all()


def test_unknown_counts_and_gaps():
    run = Run(24, 90, seed=4)
    counts = run.counts.copy()
    counts[np.random.default_rng(0).random(counts.shape) < 0.2] = -1
    result = solve(run, counts=counts, participants=None)
    assert run.right(result).all()
    assert result.unique.all()
    some = slice(0, None, 2)
    result = solve(run, windows=run.windows[some], counts=run.counts[:, some])
    assert run.right(result).mean() > 0.9
    assert never_wrong(run, result)


def test_windows_that_overlap():
    run = Run(20, 60, seed=6)
    windows = [(a, min(a + 20, 60)) for a in range(0, 60, 10)]
    result = solve(run, windows=windows, counts=run.count(windows))
    assert run.right(result).all()


def test_counts_that_are_a_little_wrong():
    run = Run(40, 120, seed=1)
    wrong = run.counts + np.random.default_rng(1).choice([-1, 0, 0, 0, 1], run.counts.shape)
    wrong = np.clip(wrong, 0, 10)
    result = solve(run, counts=wrong, participants=None, count_error=1, method="reflect")
    assert run.right(result).mean() > 0.5
    assert never_wrong(run, result)
    true = {column.tobytes() for column in run.participation.T}
    found = [column.tobytes() in true for column in result.participation.T.copy()]
    assert np.mean(found) > 0.8, "columns are found; whose they are, such counts hardly say"


def test_columns_that_depend_on_others_are_looked_for_again():
    """User 8's counts also fit a column that depends on other users'; it is rejected."""
    run = Run(20, 60, seed=1)
    result = solve(run, method="reflect")
    assert run.right(result).all()
    assert not result.unique.all()


def test_users_with_equal_counts_are_ambiguous():
    run = Run(10, 40, seed=8, window=10)
    run.counts = run.count([(0, 40)])
    result = solve(run, windows=[(0, 40)], counts=run.counts, participants=None)
    _, first, number = np.unique(run.counts, axis=0, return_inverse=True, return_counts=True)
    assert (number > 1).any()
    twins = number[first.reshape(-1)] > 1
    assert not result.unique[twins].any()
    assert never_wrong(run, result)


def test_two_users_with_one_column():
    """The span has fewer dimensions than users: no column is unique."""
    run = Run(10, 40, seed=9)
    p = run.participation.copy()
    p[:, 1] = p[:, 0]
    run.participation = p
    run.counts, run.aggregates = run.count(run.windows), p.astype(float) @ run.updates
    result = solve(run, participants=None)
    assert not result.unique.any()


def test_users_who_never_took_part():
    run = Run(10, 60, seed=10)
    counts = np.concatenate((run.counts, np.zeros((3, len(run.windows)), np.int64)))
    result = audit.disaggregate(run.aggregates, run.windows, counts, 13)
    assert (result.participation[:, :10] == run.participation).all()
    assert not result.participation[:, 10:].any()
    assert result.unique.all()
    assert (result.updates[10:] == 0).all()


def test_counts_of_every_round_leave_nothing_to_find():
    run = Run(10, 30, seed=11, window=1)
    result = solve(run)
    assert run.right(result).all()
    assert result.unique.all()


def test_the_same_seed_gives_the_same_result():
    run = Run(15, 26, 600, noise=0.3, seed=12)
    first, second = solve(run, seed=5), solve(run, seed=5)
    assert (first.participation == second.participation).all()
    assert first.certificates == second.certificates
    assert np.array_equal(first.updates, second.updates, equal_nan=True)


def test_updates_can_be_left_out():
    run = Run(10, 40, seed=13)
    assert solve(run, updates=False).updates is None


def test_a_time_limit_ends_the_search():
    run = Run(60, 66, seed=14)
    result = solve(run, time_limit=0.2)
    assert sum(result.seconds.values()) < 10
    assert never_wrong(run, result)


def test_bad_options():
    run = Run(6, 20, seed=15)
    for options in ({"method": "magic"}, {"noise": -1.0}, {"time_limit": 0}, {"seed": -1},
                    {"noise": float("nan")}, {"column_limit": -3.0}):  # fmt: skip
        with pytest.raises(ArgumentError):
            solve(run, **options)
    with pytest.raises(ArgumentError, match="needs counts"):
        solve(run, windows=None, counts=None, method="reflect")


@pytest.mark.parametrize("seed", range(12))
def test_certificates_against_trying_everything(seed):
    """Tiny integer logs, against exhaustive search: certificates and columns are right."""
    rng = np.random.default_rng(seed)
    run = Run(3, 9, rate=0.45, window=int(rng.choice([3, 5, 9])), seed=seed)
    run.updates = rng.integers(-9, 10, (3, 7)).astype(float)
    run.aggregates = run.participation @ run.updates
    sums = spec.aggregates(run.participation.tolist(), run.updates.astype(int).tolist())
    assert (np.array(sums) == run.aggregates).all()
    assert spec.counts(run.participation.tolist(), run.windows) == run.counts.tolist()
    result = solve(run, participants=None)
    for k, certificate in enumerate(result.certificates):
        all_columns = spec.solutions(sums, run.windows, run.counts[k].tolist())
        assert tuple(result.participation[:, k].tolist()) in all_columns
        assert certificate.status == spec.status(sums, run.windows, run.counts[k].tolist())


@pytest.mark.parametrize("block", range(TRIALS // 20))
def test_no_wrong_column_is_ever_called_unique(block):
    """Small, hard and noisy logs, by every method; AUDIT_TRIALS=1000 for more."""
    uniques = 0
    for seed in range(20 * block, 20 * block + 20):
        rng = np.random.default_rng(seed)
        users = int(rng.integers(2, 11))
        run = Run(
            users,
            users + int(rng.integers(2, 30)),
            int(users * rng.choice([1, 2, 50])),
            rate=float(rng.choice([0.1, 0.3, 0.5])),
            window=int(rng.choice([3, 8, 40])),
            noise=float(rng.choice([0, 0, 0.05, 0.4, 1.5])),
            seed=seed,
        )
        counts, error = run.counts.copy(), int(rng.choice([0, 0, 0, 1]))
        counts[rng.random(counts.shape) < rng.choice([0, 0, 0.3])] = -1
        method = str(rng.choice(["auto", "reflect", "program", "skewness"]))
        result = solve(
            run, counts=counts, participants=None, count_error=error, method=method,
            column_limit=0.1, threads=2,
        )  # fmt: skip
        assert never_wrong(run, result), seed
        uniques += int(result.unique.sum())
    assert uniques > 1, "of small, hard and noisy records, few are proven"
