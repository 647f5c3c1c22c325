"""Applications: a trained model, the log of its lookups, and the inferences to test it with."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from nescio.pir.batch import AccessLog

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Model = Callable[..., Any]


class Part(Protocol):
    """Some inferences, in an order; qualities are such that more is better."""

    @property
    def log(self) -> AccessLog:
        """The rows of all inferences, with users and times where there are some."""

    def __len__(self) -> int:
        """The number of inferences."""

    def run(self, model: Model, at_once: int, count: int | None = None) -> Iterator[torch.Tensor]:
        """Calls a model for the first `count` inferences (all), about `at_once` in a call.

        Yields the outputs of each call, which must be those of `at_once` inferences if it divides
        `count`.
        """

    def rate(self, outputs: Sequence[torch.Tensor]) -> float:
        """Returns the quality of the outputs of `run`."""

    def quality(self, sets: Sequence[Integers], retrieved: Sequence[Bools]) -> float:
        """Returns the quality of the plain model if a part of the rows arrives, for `tune`.

        `sets` are those of `log`, and `retrieved` marks the rows that arrive.
        """


@dataclass(frozen=True)
class Application:
    """A trained model and its inferences.

    `make` makes the model without memory for the rows of `table`, the one nn.Embedding whose rows
    are private; an inference has up to `lookups` of them. Layouts are made from `log`, rated by
    `rated`, and tested with `held_out`. A relaxed layout may lose the part `loss` of the quality.
    """

    name: str
    metric: str
    model: torch.nn.Module
    make: Callable[[], torch.nn.Module]
    table: str
    lookups: int
    log: AccessLog
    rated: Part
    held_out: Part
    loss: float
    published: float

    @property
    def weight(self) -> torch.Tensor:
        """The rows of the table."""
        weight: torch.Tensor = self.model.get_submodule(self.table).weight
        return weight

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.weight.shape[0])

    @property
    def row_bytes(self) -> int:
        """The bytes of a row."""
        return int(self.weight.shape[1] * self.weight.element_size())


@dataclass(frozen=True)
class Effort:
    """The number of things that a run tries and measures.

    `layouts` are tried, each measured for `seconds`. `timed` inferences are run one by one, and
    `private` together (None: all that are held out).
    """

    layouts: int
    seconds: float
    timed: int
    private: int | None = None


EFFORTS = {
    "small": Effort(layouts=18, seconds=0.02, timed=8),
    "default": Effort(layouts=120, seconds=0.1, timed=100),
    "full": Effort(layouts=500, seconds=0.25, timed=500),
}
"""Those of applications whose quality takes little time to count, by the size of a run."""


def plain_quality(part: Part) -> float:
    """Returns the quality of the plain model, by counting."""
    log = part.log
    sets = list(log)
    return part.quality(sets, [np.ones(len(rows), bool) for rows in sets])


def least_quality(plain: float, loss: float) -> float:
    """Returns the quality with a part lost, also of a negative one (minus a perplexity)."""
    return plain - loss * abs(plain)
