"""Local search: never farther, same counts, a local optimum at the end."""

import itertools

import numpy as np
import pytest

from audit.records import Run
from nescio.audit import Log
from nescio.audit._attack.estimate import column_space
from nescio.audit._attack.local_search import LocalSearch
from nescio.audit._log.counts import agree
from nescio.audit._log.windows import batches


def case(seed, count_error=0, windows=None):
    run = Run(12, 48, 600, rate=0.2, noise=0.6, seed=seed)
    windows = tuple(run.windows if windows is None else windows)
    log = Log(run.aggregates, 12, windows, run.count(windows), run.participants, count_error)
    space = column_space(log, 12, None, 0)
    (batch,) = batches(log.windows, log.counts, count_error, np.arange(12))
    return run, log, space, batch


def shaken(run, rng):
    """The true columns, each with two rounds exchanged within their windows."""
    columns = run.participation.T.copy()
    for column in columns:
        for _ in range(2):
            one = rng.choice(np.flatnonzero(column))
            window = slice(one // 10 * 10, min(one // 10 * 10 + 10, len(column)))
            open_ = (column[window] == 0) & (run.participants[window] > 0)
            zeros = window.start + np.flatnonzero(open_)
            column[one], column[rng.choice(zeros)] = 0, 1
    return columns


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_were_shaken_come_back(seed):
    run, log, space, batch = case(seed)
    columns = shaken(run, np.random.default_rng(seed))
    better = LocalSearch(space, batch, log.empty)(columns)
    before, after = (space.distances(c.astype(float)) for c in (columns, better))
    assert (after <= before + 1e-9).all()
    assert agree(better, log.windows, log.counts, 0).all()
    assert (better == run.participation.T).all(axis=1).mean() > 0.9


def test_no_exchange_is_left_that_helps():
    run, log, space, batch = case(7)
    better = LocalSearch(space, batch, log.empty)(shaken(run, np.random.default_rng(7)))
    for column in better:
        least = space.distances(column[None].astype(float))[0]
        for start, stop in log.windows:
            rounds = start + np.flatnonzero(~log.empty[start:stop])
            for i, j in itertools.combinations(rounds, 2):
                other = column.astype(float)
                other[[i, j]] = other[[j, i]]
                assert space.distances(other[None])[0] > least - 1e-9


def test_inexact_counts_and_rounds_without_a_window_are_flipped_as_far_as_allowed():
    run, log, space, batch = case(3, count_error=1, windows=[(0, 10), (20, 40)])
    columns = run.participation.T.copy()
    columns[:, 12] ^= not log.empty[12]
    columns[np.arange(12), np.argmax(columns[:, 20:40], axis=1) + 20] = 0
    better = LocalSearch(space, batch, log.empty)(columns)
    assert agree(better, log.windows, log.counts, 1).all()
    assert (better == run.participation.T).all(axis=1).mean() > 0.9


def test_rounds_that_nobody_took_part_in_stay_empty():
    run, log, space, batch = case(1)
    empty = log.empty.copy()
    empty[5] = True
    columns = run.participation.T.copy()
    columns[:, 5] = 0
    assert not LocalSearch(space, batch, empty)(columns)[:, 5].any()
