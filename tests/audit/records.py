"""Records of runs whose participation is known."""

import numpy as np


class Run:
    """P, G and what a server has of them."""

    def __init__(
        self, users, rounds, dimensions=None, *, rate=0.1, window=10, noise=0.0, seed=0, dtype=float
    ):
        rng = np.random.default_rng(seed)
        p = np.zeros((rounds, users), np.uint8)
        while not p.any(axis=0).all() or np.linalg.matrix_rank(p.astype(float)) < users:
            p = (rng.random((rounds, users)) < rate).astype(np.uint8)
        self.users, self.participation = users, p
        self.updates = rng.standard_normal((users, dimensions or 2 * users))
        self.participants = p.sum(axis=1).astype(np.int64)
        sums = p.astype(float) @ self.updates
        scale = noise * np.sqrt(self.participants)[:, None]
        self.aggregates = (sums + scale * rng.standard_normal(sums.shape)).astype(dtype)
        self.windows = [(s, min(s + window, rounds)) for s in range(0, rounds, window)]
        self.counts = self.count(self.windows)

    def count(self, windows):
        return np.stack([self.participation[a:b].sum(axis=0) for a, b in windows], axis=1).astype(
            np.int64
        )

    def right(self, result):
        """(users,): whose column is right."""
        return (result.participation == self.participation).all(axis=0)


def never_wrong(run, result):
    """Nobody is called unique whose column is wrong."""
    return bool(run.right(result)[result.unique].all())
