"""Inferences of the click model, as the steps that all applications share need them."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from examples.common.application import Model
from examples.common.quality import roc_auc
from examples.taobao.data import Bools, Integers
from examples.taobao.inferences import Inferences
from examples.taobao.model import ClickModel, arrived, scores_of
from examples.taobao.tables import Tables
from nescio.pir.batch import AccessLog


class ClickPart:
    """Some inferences; qualities are areas under the ROC curve."""

    def __init__(self, tables: Tables, model: ClickModel, inferences: Inferences) -> None:
        self._model, self._inferences = model, inferences
        self._rows = tables.rows(inferences)

    @property
    def log(self) -> AccessLog:
        """The rows, users and times of the inferences."""
        return log_of(self._rows, self._inferences)

    def __len__(self) -> int:
        """The number of inferences."""
        return len(self._rows)

    def run(self, model: Model, at_once: int, count: int | None = None) -> Iterator[torch.Tensor]:
        """Yields the scores of `at_once` inferences in turn, of the first `count`."""
        rows = self._rows[:count]
        for own in np.split(rows, range(at_once, len(rows), at_once)):
            yield model(torch.from_numpy(own))

    def rate(self, outputs: Sequence[torch.Tensor]) -> float:
        """Returns the AUC of the scores of the first inferences."""
        scores = torch.cat(list(outputs)).numpy()
        return roc_auc(self._inferences.clicked[: len(scores)], scores)

    def quality(self, sets: Sequence[Integers], retrieved: Sequence[Bools]) -> float:
        """Returns the AUC if a part of the rows arrives."""
        flags = arrived(self._rows, sets, retrieved)
        return roc_auc(self._inferences.clicked, scores_of(self._model, self._rows, flags))


def log_of(rows: Integers, inferences: Inferences) -> AccessLog:
    """Returns the log of the lookups of some inferences."""
    return AccessLog(rows, users=inferences.users, times=inferences.times)
