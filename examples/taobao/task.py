"""The inferences of a run: how many of them, and the parts to train, validate and test with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from examples.taobao.data import Events, load
from examples.taobao.inferences import Inferences, Split, pair, split, with_negatives
from examples.taobao.tables import Tables
from nescio.errors import ArgumentError

_MOST = 250_000  # inferences to validate or test with
HISTORY = 16
"""Ads of a history that count."""
MAX_HISTORY = 167
"""The longest that count: an exact layout is for at most 512 rows."""


@dataclass(frozen=True)
class Size:
    """The data of a run: all of the users without `users`.

    `log` and `held_out` are numbers of inferences: for layouts, and with private lookups.
    """

    users: int | None
    epochs: int
    log: int
    held_out: int


SIZES = {
    "small": Size(2_000, 4, 2_000, 128),
    "default": Size(60_000, 5, 20_000, 25_000),
    "full": Size(None, 8, 40_000, _MOST),
}


class Task:
    """The events of a run as inferences, in parts.

    `sampled` is true where the set has clicks only, so that ads without a click are drawn. Raises
    ArgumentError for a part without clicks, or without anything else.
    """

    def __init__(self, folder: Path, size: Size, history: int, seed: int) -> None:
        found = load(folder)
        self.size, self.seed = size, seed
        self.events: Events = found if size.users is None else found.of_users(size.users, seed)
        self.sampled = self.events.times is None
        train, valid, test = split(self.events, seed)
        self.split = Split(train, valid[:_MOST], test[:_MOST])
        for name, part in self.split._asdict().items():
            clicks_only = self.sampled and name == "train"
            if not part.clicked.any() or (part.clicked.all() and not clicks_only):
                raise ArgumentError(
                    f"--data: found {len(part)} inferences of the part {name!r}, of which "
                    f"{part.clicked.sum()} are clicks, expected clicks and other ones"
                )
        self.tables = Tables(self.events, history)
        if self.lookups > len(self.tables):
            raise ArgumentError(
                f"--history: found {history}, which makes {self.lookups} rows of an inference, "
                f"expected at most the {len(self.tables)} of all tables"
            )

    @property
    def epochs(self) -> int:
        """The epochs of the training; examples that are drawn anew can be seen more often."""
        return self.size.epochs if self.sampled else -(-self.size.epochs // 4)

    @property
    def lookups(self) -> int:
        """The most rows of an inference."""
        return self.tables.places.count

    def logged(self) -> Inferences:
        """Returns inferences of the training, with ads that were not clicked."""
        train, random = self.split.train, np.random.default_rng(self.seed)
        if self.sampled:
            train = with_negatives(train, np.unique(pair(train.users, train.ads)), random)
        return train.shuffled(random)[: self.size.log]
