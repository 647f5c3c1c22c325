"""Updates are called recovered only where all columns that fit give the same."""

import itertools

import numpy as np

from audit.records import Run, short_searches
from nescio.audit import Log, audit_log, solve
from nescio.audit._certify.estimable import estimable
from nescio.audit._certify.quality import measure
from nescio.audit._certify.reasons import Candidates
from spec import audit as spec


def log_of(run):
    return Log(run.aggregates, run.users, run.windows, run.counts, run.participants)


def off(run, updates):
    """(users,): relative errors of updates."""
    return np.linalg.norm(updates - run.updates, axis=1) / np.linalg.norm(run.updates, axis=1)


def all_updates(run):
    """The updates of every set of columns that fits, by exhaustive search."""
    choices = [
        spec.solutions(run.aggregates.astype(int).tolist(), run.windows, counts.tolist())
        for counts in run.counts
    ]
    for columns in itertools.product(*choices):
        matrix = np.array(columns, float).T
        if np.linalg.matrix_rank(matrix) == run.users:
            yield np.linalg.pinv(matrix) @ run.aggregates


def tiny(seed):
    rng = np.random.default_rng(seed)
    run = Run(4, 8, rate=0.45, window=int(rng.choice([4, 8])), seed=seed)
    run.updates = rng.integers(-9, 10, (4, 9)).astype(float)
    run.aggregates = run.participation @ run.updates
    return run


def test_determined_updates_and_sums_are_those_of_all_columns_that_fit():
    partly, sums = 0, 0
    for seed in range(8):
        run = tiny(seed)
        if np.linalg.matrix_rank(run.updates) < 4 or (run.participants == 0).any():
            continue
        result = solve(log_of(run))
        every = np.array(list(all_updates(run)))
        assert len(every) >= 1
        assert np.allclose(every[:, result.determined], result.updates[result.determined])
        for group in result.groups:
            total = result.updates[list(group)].sum(axis=0)
            assert np.allclose(every[:, list(group)].sum(axis=1), total)
        partly += int(0 < result.determined.sum() < 4)
        sums += len(result.groups)
    assert partly > 0
    assert sums > 0


def test_ambiguous_columns_recover_nothing():
    """Exact counts, no noise: 4 columns are proven, and all 18 fit the sums to the last bit."""
    run = Run(18, 22, 36, rate=0.2, seed=54)
    found = audit_log(log_of(run))
    columns = found.result.participation.astype(float)
    updates = np.linalg.pinv(columns) @ run.aggregates
    proven = found.result.unique
    assert np.allclose(columns @ updates, run.aggregates)
    assert proven.sum() == 4
    assert (off(run, updates)[proven] > 1).all()
    assert "recovered" not in " ".join(found.verdict.reasons)
    assert not found.quality.certain.any()
    assert not (found.quality.errors[proven] < 0.5).any()


def test_twins_have_one_update_between_them():
    run = Run(12, 48, 60, rate=0.2, seed=0)
    run.participation[:, 1] = run.participation[:, 0]
    run.participants = run.participation.sum(axis=1).astype(np.int64)
    run.aggregates = run.participation @ run.updates
    run.counts = run.count(run.windows)
    with short_searches():
        found = audit_log(log_of(run))
    assert found.verdict.usable == 10
    assert found.quality.groups == ((0, 1),)
    said = " ".join(found.verdict.reasons)
    assert "10 of 12 users were recovered" in said
    assert "only the mean of their updates is known, not the update of each: 0 and 1" in said


def test_the_update_of_an_open_column_may_be_known():
    """If c_0 + c_1 also fits user 0, user 0's update is the same, and user 1's is not."""
    columns, sure = np.eye(4, 6, dtype=np.uint8), Candidates(np.zeros((0, 6), np.uint8))
    found = estimable(columns, [Candidates(columns[:2].sum(axis=0)[None]), sure, sure, sure])
    assert found.users.tolist() == [True, False, True, True]
    assert found.groups == ()
    swapped = [Candidates(columns[[1]]), Candidates(columns[[0]]), sure, sure]
    found = estimable(columns, swapped)
    assert found.users.tolist() == [False, False, True, True]
    assert found.groups == ((0, 1),)


def test_dependent_columns_determine_nothing():
    columns = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0]], np.uint8)
    assert not estimable(columns, [Candidates(columns[:0])] * 3).users.any()


def test_errors_of_updates_say_what_unknown_columns_do():
    """Half of the columns are unknown: their users' updates are noise in the others."""
    run = Run(20, 200, 500, rate=0.2, seed=1)
    log, known = log_of(run), np.arange(20) < 10
    quality = measure(log, solve(log, certify=False), known=known)
    others = run.participants - run.participation[:, known].sum(axis=1)
    design = np.column_stack((run.participation[:, known], others)).astype(float)
    true = off(
        run, np.concatenate((np.linalg.pinv(design)[:10] @ run.aggregates, run.updates[10:]))
    )
    assert (quality.errors[known] > 0.5 * true[known]).all()
    assert (quality.errors[known] < 2 * true[known]).all()
    assert quality.errors[known].min() > 0.1
    assert np.isnan(quality.errors[~known]).all()
    assert not quality.certain.any()


def test_the_last_user_is_who_is_left():
    """All but one are proven, and participants are known: that one's column is the rest."""
    run = Run(8, 30, 40)
    found = audit_log(log_of(run))
    assert found.result.unique.sum() == 7
    assert "7 of 8 users were recovered: they are the same" in found.verdict.reasons[0]
    known = found.result.unique
    others = run.participants - run.participation[:, known].sum(axis=1)
    design = np.column_stack((run.participation[:, known], others)).astype(float)
    assert np.allclose((np.linalg.pinv(design) @ run.aggregates)[:7], run.updates[known])
