"""Inferences of the recommender, as the steps that all applications share need them."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from examples.common.quality import roc_auc
from examples.movielens.model import LayoutQuality, Recommender
from examples.movielens.task import Bools, Integers, Task
from nescio.pir.batch import AccessLog


class RecommenderPart:
    """Some inferences of a task; qualities are areas under the ROC curve."""

    def __init__(self, task: Task, model: Recommender, numbers: Integers) -> None:
        self._task, self._numbers = task, numbers
        self._liked: Bools = task.inferences.liked[numbers]
        self._counted = LayoutQuality(model, self._liked)

    @property
    def log(self) -> AccessLog:
        """The rows, users and times of the inferences."""
        return self._task.log(self._numbers)

    def __len__(self) -> int:
        """The number of inferences."""
        return len(self._numbers)

    def run(
        self, model: Callable[..., torch.Tensor], at_once: int, count: int | None = None
    ) -> Iterator[torch.Tensor]:
        """Yields the scores of `at_once` inferences in turn, of the first `count`."""
        numbers = self._numbers[:count]
        for own in np.split(numbers, range(at_once, len(numbers), at_once)):
            yield model(self._task.examples(own)[0])

    def rate(self, outputs: Sequence[torch.Tensor]) -> float:
        """Returns the AUC of the scores of the first inferences."""
        scores = torch.cat(list(outputs)).numpy()
        return roc_auc(self._liked[: len(scores)], scores)

    def quality(self, sets: Sequence[Integers], retrieved: Sequence[Bools]) -> float:
        """Returns the AUC if a part of the rows arrives."""
        return self._counted(sets, retrieved)
