"""Proofs that a column is the only one, compared with exhaustive search."""

import functools
import itertools

import numpy as np
import pytest

from audit.records import Run
from nescio.audit._attack.estimate import column_space
from nescio.audit._attack.milp import Limits, Program
from nescio.audit._attack.sets import AffineSet
from nescio.audit._certify.uniqueness import margins, swap_failures
from nescio.audit._log.record import Log
from nescio.audit._log.undetermined import free_rounds
from nescio.audit._log.windows import batches
from spec import audit as spec


@functools.cache
def case(seed):
    """A tiny log, and all columns of each user by exhaustive search, which is slow."""
    rng = np.random.default_rng(seed)
    run = Run(4, 10, rate=0.4, window=int(rng.choice([3, 4, 10])), seed=seed)
    run.updates = rng.integers(-9, 10, (4, 9)).astype(float)
    run.aggregates = run.participation @ run.updates
    basis = np.linalg.qr(run.participation.astype(float))[0]
    empty = run.participants == 0
    (batch,) = batches(tuple(run.windows), run.counts, 0, np.arange(4))
    true = [
        spec.solutions(run.aggregates.astype(int).tolist(), run.windows, c.tolist())
        for c in run.counts
    ]
    return run, basis, empty, batch, true


@pytest.mark.parametrize("seed", range(7))
def test_margins_are_proofs(seed):
    run, basis, empty, batch, true = case(seed)
    columns = run.participation.T.copy()
    found = margins(AffineSet.of(basis, batch), columns, free_rounds(batch, empty))
    for margin, solutions in zip(found, true, strict=True):
        assert margin == 0 or len(solutions) == 1


def test_margins_bound_the_distance_of_every_other_column():
    run, basis, empty, batch, _ = case(1)
    columns = run.participation.T.copy()
    found = margins(AffineSet.of(basis, batch), columns, free_rounds(batch, empty))
    assert (found > 0).any()
    for k, margin in enumerate(found):
        for other in itertools.product((0, 1), repeat=10):
            if not spec.has_counts(other, run.windows, run.counts[k].tolist()):
                continue
            point = np.array(other, float)
            distance = np.linalg.norm(point - basis @ (basis.T @ point))
            assert distance >= margin or (point == columns[k]).all()


@pytest.mark.parametrize("seed", range(7))
def test_programs_tell_whether_there_is_another(seed):
    run, basis, empty, batch, true = case(seed)
    program = Program(basis, None, batch, empty)
    verdicts = program.others(np.arange(4), run.participation.T.copy(), Limits(), 8)
    for found, column, solutions in zip(verdicts, run.participation.T, true, strict=True):
        others = {tuple(one.tolist()) for one in found.columns}
        assert others == set(solutions) - {tuple(column.tolist())}
        assert found.complete


def test_the_failure_of_a_noisy_column_is_about_right():
    """If two columns are about equally near to the span, the sum of the odds is not small."""
    run = Run(20, 60, 4096, noise=0.3, seed=5)
    log = Log(run.aggregates, 20, run.windows, run.counts, run.participants)
    space = column_space(log, 20, None, 0)
    (batch,) = batches(log.windows, log.counts, 0, np.arange(20))
    free = free_rounds(batch, log.empty)
    windows = np.repeat(np.arange(6), 10)
    columns = run.participation.T.copy()
    assert (swap_failures(space, columns, windows, free) < 1e-6).all()
    wrong = columns.copy()
    for k in range(20):
        one = np.flatnonzero(columns[k])[0]
        zeros = np.flatnonzero((columns[k] == 0) & (windows == windows[one]))
        wrong[k, [one, zeros[0]]] = 0, 1
    assert (swap_failures(space, wrong, windows, free) > 0.5).all()
    assert (space.distances(wrong) > space.limits(wrong)).mean() > 0.9
    assert (space.distances(columns) < space.limits(columns)).all()
