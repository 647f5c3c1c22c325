"""The sizes of a run, and the texts that it trains and tests with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from examples.common.application import Effort
from examples.wikitext2.data import Integers, Texts, load, streams
from examples.wikitext2.model import Shape
from examples.wikitext2.part import WINDOW

STREAMS = 64
"""Streams of the text that is held out."""
_RATED = 8  # streams of the text that layouts are rated by: long ones, for caches
_USERS = 512  # streams of the text to train with


@dataclass(frozen=True)
class Size:
    """The model and the data of a run.

    `words` of the text to train with are used (None: all). `users` are the streams of the log.
    Layouts are rated by `rated` windows of each stream of the validation text, and tested with
    `held_out` windows (None: all) of each of the test text.
    """

    shape: Shape
    words: int | None
    epochs: int
    rate: float
    users: int
    rated: int
    held_out: int | None


_SMALL = Shape(hidden=64, width=64)
_FULL = Shape(hidden=650, width=256, layers=2, dropout=0.3)

SIZES = {
    "small": Size(_SMALL, 120_000, 1, 1e-2, 64, 16, 2),
    "default": Size(Shape(), None, 2, 1e-2, 192, 64, None),
    "full": Size(_FULL, None, 14, 4e-3, _USERS, 128, None),
}
EFFORTS = {
    "small": Effort(layouts=18, seconds=0.02, timed=8),
    "default": Effort(layouts=80, seconds=0.1, timed=100),
    "full": Effort(layouts=200, seconds=0.25, timed=500),
}


class Task:
    """The texts of a run, and the streams that they are cut in."""

    def __init__(self, folder: Path, size: Size, seed: int) -> None:
        self.texts: Texts = load(folder)
        self.size, self.seed = size, seed
        self.train: Integers = self.texts.train[: size.words]
        self.logged = self._logged()
        self.rated = _cut(self.texts.valid, _RATED, size.rated)
        self.held_out = _cut(self.texts.test, STREAMS, size.held_out)

    @property
    def words(self) -> int:
        """The rows of the table."""
        return len(self.texts.words)

    def _logged(self) -> Integers:
        """Returns streams of the text to train with, at random, for the log."""
        every = streams(self.train, _USERS, WINDOW)
        random = np.random.default_rng(self.seed)
        return every[np.sort(random.permutation(_USERS)[: self.size.users])]


def _cut(text: Integers, count: int, windows: int | None) -> Integers:
    """Returns streams of a text; `windows` is the most of each."""
    cut = streams(text, count, WINDOW)
    return cut if windows is None else cut[:, : windows * WINDOW + 1]
