"""The examples of a run: how many of them, and the parts to train, validate and test with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from examples.movielens.data import Inferences, Integers, Ratings, load
from nescio.errors import ArgumentError
from nescio.pir.batch import AccessLog

HISTORY = 71
"""Films of a history: 72 lookups an inference with the film that is scored, as in the paper."""


@dataclass(frozen=True)
class Size:
    """The size of a run. `users` and `private` of None stand for all.

    `log` and `layouts` are the inferences and the layouts of the tuner, which measures each layout
    for `seconds`. `private` is the number of inferences with private lookups, `timed` that of those
    whose time is measured, one by one.
    """

    users: int | None
    epochs: int
    log: int
    layouts: int
    seconds: float
    private: int | None
    timed: int


SIZES = {
    "small": Size(150, 4, 2_000, 18, 0.02, 128, 8),
    "default": Size(3_000, 6, 20_000, 120, 0.1, 25_000, 100),
    "full": Size(None, 12, 100_000, 500, 0.25, None, 500),
}


class Task:
    """The ratings of a run as examples for the model: rows (n, 1 + history), and labels.

    Users are divided at random by `seed`: no user's inferences are in two parts.
    """

    def __init__(self, folder: Path, size: Size, history: int, seed: int) -> None:
        found = load(folder)
        if found.people < 10 or not found.liked.any():
            raise ArgumentError(
                f"--data: found {found.people} users and {found.liked.sum()} ratings of at least "
                "4, expected ten users or more, and some such ratings"
            )
        self.size, self.history, self.seed = size, history, seed
        self.ratings: Ratings = found if size.users is None else found.of_users(size.users, seed)
        self.inferences = Inferences(self.ratings)
        self.split = self.inferences.split(seed)

    @property
    def films(self) -> int:
        """The rows of the table."""
        return len(self.ratings.titles)

    @property
    def lookups(self) -> int:
        """The most rows of an inference."""
        return 1 + self.history

    def examples(self, numbers: Integers) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns rows (n, 1 + history) and labels (n,) of some inferences."""
        labels = self.inferences.liked[numbers].astype(np.float32)
        rows = self.inferences.rows(numbers, self.history)
        return torch.from_numpy(rows), torch.from_numpy(labels)

    def sample(self, part: Integers, count: int | None) -> Integers:
        """Returns some inferences of a part, at random, in their order; all without `count`."""
        if count is None or count >= len(part):
            return part
        return np.sort(np.random.default_rng(self.seed).choice(part, count, replace=False))

    def halves(self, part: Integers) -> tuple[Integers, Integers]:
        """Divides inferences at random."""
        first = np.random.default_rng(self.seed).random(len(part)) < 0.5
        return part[first], part[~first]

    def log(self, numbers: Integers) -> AccessLog:
        """Returns the log of the lookups of some inferences, with their users and times."""
        inferences = self.inferences
        rows = inferences.rows(numbers, self.history)
        return AccessLog(rows, users=inferences.users[numbers], times=inferences.times[numbers])
