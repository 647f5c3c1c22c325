"""Simulated runs with known participation."""

from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from nescio.audit import Log
from nescio.audit._attack import independence, reflect, restart
from nescio.audit._attack.rrr import Search


class Run:
    """P, G and the server's record of them."""

    def __init__(
        self, users, rounds, dimensions=None, *, rate=0.1, window=10, noise=0.0, seed=0,
        dtype=float, directions=None, drift=0.0,
    ):  # fmt: skip
        rng = np.random.default_rng(seed)
        p = np.zeros((rounds, users), np.uint8)
        while not p.any(axis=0).all() or np.linalg.matrix_rank(p.astype(float)) < users:
            p = (rng.random((rounds, users)) < rate).astype(np.uint8)
        self.users, self.participation = users, p
        self.updates = rng.standard_normal((users, dimensions or 2 * users))
        self.participants = p.sum(axis=1).astype(np.int64)
        sums = p.astype(float) @ self.updates
        scale = noise * np.sqrt(self.participants)[:, None]
        sums += scale * _noise(sums.shape, directions, rng)
        time = np.linspace(-1, 1, rounds)[:, None]
        common = np.cos(2 * time) * rng.standard_normal(sums.shape[1]) + time**3 * self.updates[0]
        sums += drift * self.participants[:, None] * common
        self.aggregates = sums.astype(dtype)
        self.windows = [(s, min(s + window, rounds)) for s in range(0, rounds, window)]
        self.counts = self.count(self.windows)

    def count(self, windows):
        return np.stack([self.participation[a:b].sum(axis=0) for a, b in windows], axis=1).astype(
            np.int64
        )

    def right(self, result):
        """(users,): True for users with the right column."""
        return (result.participation == self.participation).all(axis=0)


def _noise(shape, directions, rng):
    """Noise of variance 1 in all dimensions, or the same energy in few directions."""
    if directions is None:
        return rng.standard_normal(shape)
    across = np.linalg.qr(rng.standard_normal((shape[1], directions)))[0]
    return rng.standard_normal((shape[0], directions)) @ across.T * np.sqrt(shape[1] / directions)


def never_wrong(run, result):
    """True if every user with a unique certificate has the right column."""
    return bool(run.right(result)[result.unique].all())


@contextmanager
def short_searches():
    """Makes searches in noise give up early, for logs in which most of them fail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restart, "_IDLE", 1)
        patch.setattr(restart, "Search", partial(Search, iterations=300))
        patch.setattr(reflect, "_FIRST", 200)
        patch.setattr(independence, "_TWINS", 1)
        yield


def moving(users, rounds, still, seed, *, turn=0.35, noise=0.02):
    """A run and its log: updates turn at random from round to round, except for the last `still`.

    Returns the run, whose participation is the truth, and the log.
    """
    run, rng = Run(users, rounds, 200, rate=0.2, seed=seed), np.random.default_rng(seed + 1)
    updates = run.updates
    for t, present in enumerate(run.participation):
        if t < rounds - still:
            turned = rng.standard_normal(updates.shape)
            updates = np.cos(turn) * updates + np.sin(turn) * turned
        run.aggregates[t] = present @ updates
    scale = noise * np.sqrt(run.participants)[:, None]
    run.aggregates += scale * rng.standard_normal(run.aggregates.shape)
    return run, Log(run.aggregates, users, run.windows, run.counts, run.participants)
