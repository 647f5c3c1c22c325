"""The examples of a run: how many of them, and the parts to train, validate and test with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from examples.movielens.data import Bools, Inferences, Integers, Ratings, load
from nescio.errors import ArgumentError
from nescio.pir.batch import AccessLog

__all__ = ["HISTORY", "MAX_LOOKUPS", "SIZES", "Bools", "Integers", "Size", "Task"]

MAX_LOOKUPS = 2048
"""The most rows of an inference in exact mode."""
HISTORY = 71
"""Films of a history: 72 lookups an inference with the film that is scored, as in the paper."""


@dataclass(frozen=True)
class Size:
    """The data of a run. `users` and `held_out` of None stand for all.

    `log` and `held_out` are numbers of inferences.
    """

    users: int | None
    epochs: int
    log: int
    held_out: int | None


SIZES = {
    "small": Size(150, 4, 2_000, 128),
    "default": Size(3_000, 6, 20_000, 25_000),
    "full": Size(None, 12, 100_000, None),
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
        self._check()

    def _check(self) -> None:
        """Raises ArgumentError for more lookups than films, and for a part of one label alone."""
        if self.lookups > self.films:
            raise ArgumentError(
                f"--history: found {self.history}, expected less than the {self.films} films"
            )
        for name, part in self.split._asdict().items():
            liked = int(self.inferences.liked[part].sum())
            if not 0 < liked < len(part):
                raise ArgumentError(
                    f"--data: found {liked} of {len(part)} ratings of at least 4 to {name} with, "
                    "expected some and not all; try another --seed or more users"
                )

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

    def shuffled(self, part: Integers) -> Integers:
        """Returns inferences in another order, so that the first ones are of many users."""
        return np.random.default_rng(self.seed).permutation(part)

    def halves(self, part: Integers) -> tuple[Integers, Integers]:
        """Divides inferences at random."""
        first = np.random.default_rng(self.seed).random(len(part)) < 0.5
        return part[first], part[~first]

    def log(self, numbers: Integers) -> AccessLog:
        """Returns the log of the lookups of some inferences, with their users and times."""
        inferences = self.inferences
        rows = inferences.rows(numbers, self.history)
        return AccessLog(rows, users=inferences.users[numbers], times=inferences.times[numbers])
