"""Columns without counts, from few rounds."""

import sys

import numpy as np
import pytest

from audit.records import Run, never_wrong
from nescio import audit
from nescio.audit._attack import without_counts
from nescio.audit._attack.basis import binary_pairs, select_basis
from nescio.audit._attack.estimate import column_space
from nescio.audit._attack.lattice import lattice_columns
from nescio.errors import ArgumentError


@pytest.fixture
def flint():
    return pytest.importorskip("flint")


@pytest.fixture
def no_flint(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)


def as_set(columns):
    return {column.tobytes() for column in np.ascontiguousarray(columns.T)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("users", "rate"), [(16, 0.2), (16, 0.3), (16, 0.5), (32, 0.1), (32, 0.2), (32, 0.5)]
)
def test_the_planted_matrix_is_found(flint, users, rate, dtype):
    run = Run(users, 2 * users, 4096, rate=rate, seed=1, dtype=dtype)
    result = audit.disaggregate(run.aggregates, users=users)
    assert result.method == "lattice"
    assert as_set(result.participation) == as_set(run.participation)
    assert {c.status for c in result.certificates} == {"ambiguous"}
    order = [as_list(run.participation).index(c) for c in as_list(result.participation)]
    assert np.allclose(result.updates, run.updates[order], atol=1e-3)


def as_list(columns):
    return columns.T.tolist()


@pytest.mark.slow
def test_128_users(flint):
    run = Run(128, 256, seed=2)
    result = audit.disaggregate(run.aggregates, users=128, method="lattice", updates=False)
    assert as_set(result.participation) == as_set(run.participation)


@pytest.mark.parametrize(("users", "noise"), [(30, 0.3), (48, 0.1)])
def test_noise_is_no_hindrance(flint, users, noise):
    run = Run(users, 2 * users, 4096, noise=noise, seed=3)
    result = audit.disaggregate(run.aggregates, users=users)
    assert result.method == "lattice"
    assert as_set(result.participation) == as_set(run.participation)


def test_rounds_beyond_those_of_the_lattice_are_filled_in(flint, monkeypatch):
    monkeypatch.setattr("nescio.audit._attack.lattice._MAX_ROUNDS", 50)
    run = Run(20, 110, 2000, noise=0.2, seed=4)
    result = audit.disaggregate(run.aggregates, users=20, method="lattice")
    assert as_set(result.participation) == as_set(run.participation)


def test_columns_get_names_and_certificates_from_counts(flint):
    run = Run(32, 64, 500, seed=5)
    result = audit.disaggregate(
        run.aggregates, run.windows, run.counts, 32, method="lattice", threads=1
    )
    assert result.labelled
    assert result.method == "lattice"
    assert run.right(result).mean() > 0.9
    assert result.unique.sum() > 20
    assert never_wrong(run, result)


def test_what_a_search_with_counts_leaves_is_filled_in(flint):
    """40 users, 46 rounds: too few for the search with counts, and for certificates."""
    run = Run(40, 46, 500, seed=5)
    given = {"windows": run.windows, "counts": run.counts, "users": 40, "threads": 1}
    search = audit.disaggregate(run.aggregates, **given, method="reflect")
    both = audit.disaggregate(run.aggregates, **given, time_limit=30)
    assert both.method.startswith("reflect and ")
    assert run.right(search).mean() < 0.8
    assert run.right(both).mean() > 0.9
    assert never_wrong(run, both)


def test_too_few_rounds_are_not_enough(flint):
    run = Run(30, 32, 200, seed=6)
    result = audit.disaggregate(run.aggregates, users=30)
    assert not result.unique.any()
    truth = run.participation.astype(float)
    for column, certificate in zip(result.participation.T, result.certificates, strict=True):
        inside = truth @ np.linalg.lstsq(truth, column.astype(float), rcond=None)[0]
        assert certificate.found == bool(column.any() and np.abs(inside - column).max() < 1e-6)


def test_the_same_is_found_again(flint):
    run = Run(24, 40, 100, noise=0.3, seed=8)
    one, two = (audit.disaggregate(run.aggregates, users=24, method="lattice") for _ in range(2))
    assert one.participation.tobytes() == two.participation.tobytes()


def test_no_time_is_some_time(flint):
    run = Run(40, 80, seed=9)
    result = audit.disaggregate(run.aggregates, users=40, method="lattice", time_limit=1e-6)
    assert result.participation.shape == (80, 40)


def test_groups_that_always_take_part_together_are_told_apart(flint):
    """12 users in 4 groups: the sums contain 4 columns."""
    groups = Run(4, 40, seed=10)
    apart = np.random.default_rng(10).standard_normal((12, 60))
    sums = np.repeat(groups.participation, 3, axis=1).astype(float) @ apart
    result = audit.disaggregate(sums, users=12, method="lattice", noise=0.0)
    assert as_set(result.participation[:, result.found]) == as_set(groups.participation)


def test_who_always_takes_part_is_found(flint):
    present = (np.random.default_rng(16).random((30, 10)) < 0.4).astype(np.uint8)
    present[:, 3] = 1
    sums = present @ np.random.default_rng(17).standard_normal((10, 100))
    result = audit.disaggregate(sums, users=10, method="lattice")
    assert as_set(result.participation) == as_set(present)


def test_rounds_without_anybody(flint):
    run = Run(16, 60, rate=0.1, seed=11)
    assert not run.participation.any(axis=1).all()
    result = audit.disaggregate(run.aggregates, users=16, method="lattice")
    assert as_set(result.participation) == as_set(run.participation)


def test_nobody_is_called_unique_whose_column_is_wrong(flint):
    uniques = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        users = int(rng.integers(2, 14))
        run = Run(
            users,
            users + int(rng.integers(2, 30)),
            int(users * rng.choice([1, 2, 50])),
            rate=float(rng.choice([0.1, 0.3, 0.5])),
            window=int(rng.choice([3, 8])),
            noise=float(rng.choice([0, 0, 0.05, 0.4])),
            seed=seed,
        )
        result = audit.disaggregate(
            run.aggregates, run.windows, run.counts, users, method="lattice", threads=1
        )
        assert never_wrong(run, result), seed
        uniques += int(result.unique.sum())
    assert uniques > 10


def test_what_the_library_is_missing_for(no_flint):
    run = Run(10, 20)
    with pytest.raises(ArgumentError, match=r"pip install 'nescio\[audit-lattice\]'"):
        audit.disaggregate(run.aggregates, users=10, method="lattice")
    assert audit.disaggregate(run.aggregates, users=10).method == "skewness"


def test_too_many_users(flint):
    sums = np.random.default_rng(12).standard_normal((400, 300))
    with pytest.raises(ArgumentError, match="found 300 users, expected at most 160; with more"):
        audit.disaggregate(sums, users=300, method="lattice")


def test_what_is_chosen(flint):
    def chosen(users, rounds, noise=0.0):
        run = Run(users, rounds, 300, noise=noise)
        record = audit.Log(run.aggregates, users)
        space = column_space(record, users, None, 0)
        return without_counts._order(record, space, users, "auto")

    assert chosen(20, 40) == ("lattice", "skewness")
    assert chosen(20, 120) == ("skewness", "lattice")
    assert chosen(70, 100) == ("lattice", "skewness")
    assert chosen(70, 100, noise=0.1) == ("skewness",)
    assert chosen(170, 200) == ("skewness",)


def test_skewness_leaves_even_participation_to_the_lattice(flint):
    """A variable that is 0 or 1 half of the time has no skewness."""
    run = Run(12, 80, rate=0.5, seed=13)
    result = audit.disaggregate(run.aggregates, users=12)
    assert result.method == "skewness and lattice"
    assert as_set(result.participation) == as_set(run.participation)


def test_a_sum_of_users_is_not_taken_for_one():
    """Users 1 and 2 never take part together, so their sum is binary as well."""
    rng = np.random.default_rng(14)
    present = (rng.random((60, 10)) < 0.3).astype(np.uint8)
    present[present[:, 1] == 1, 2] = 0
    sums = present @ rng.standard_normal((10, 200))
    record = audit.Log(sums, 10)
    wrong = present.copy()
    wrong[:, 2] = present[:, 1] | present[:, 2]
    assert as_set(select_basis(record, wrong.T.copy(), wrong.T.copy()).T) == as_set(present)
    assert as_set(select_basis(record, present.T.copy(), wrong.T.copy()).T) == as_set(present)


def test_pairs_that_are_binary():
    rows = np.array([[1, 0, 0], [0, -1, 0], [1, 1, 1], [2, 0, 0]])
    pairs = {tuple(pair) for pair in binary_pairs(rows).tolist()}
    assert pairs == {(1, 0, 0), (0, 1, 0), (1, 1, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1)}


def test_what_comes_out_is_independent_and_in_the_span(flint):
    run = Run(20, 26, seed=15)
    record = audit.Log(run.aggregates, 20)
    space = column_space(record, 20, None, 0)
    found = lattice_columns(record, space, 20).astype(float)
    assert np.linalg.matrix_rank(found) == len(found) <= 20
    assert (space.distances(found) < 1e-6).all()
