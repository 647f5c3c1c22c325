"""Inferences of the language model: the windows of streams of text."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from examples.wikitext2.data import Integers
from examples.wikitext2.model import LanguageModel, State
from nescio.pir.batch import AccessLog

Bools = npt.NDArray[np.bool_]

WINDOW = 35
"""Words of an inference, as in the paper's code."""


def log_of(streams: Integers) -> AccessLog:
    """Returns the log of the windows of streams (n, length + 1), stream by stream.

    A stream is a user's text, and its windows are in the order of time.
    """
    users, windows = len(streams), streams.shape[1] // WINDOW
    sets = streams[:, :-1].reshape(-1, WINDOW)
    return AccessLog(sets, users=np.repeat(np.arange(users), windows), times=_tiled(windows, users))


def _tiled(windows: int, users: int) -> Integers:
    return np.tile(np.arange(windows), users)


class TextPart:
    """The windows of streams (n, length + 1); the quality is minus the perplexity.

    A stream is one user's text. The state is carried from each of its windows to the next, on the
    device. The perplexity is exact: over all words of the vocabulary, and over all words of the
    streams.
    """

    def __init__(self, model: LanguageModel, streams: Integers) -> None:
        self._model, self._streams = model, torch.from_numpy(streams)
        self._windows: int = streams.shape[1] // WINDOW

    def split(self) -> "list[TextPart]":
        """Returns a part for each stream."""
        return [TextPart(self._model, one[None]) for one in self._streams.numpy()]

    @property
    def log(self) -> AccessLog:
        """The words of all windows, stream by stream."""
        return log_of(self._streams.numpy())

    def __len__(self) -> int:
        """The number of windows."""
        return len(self._streams) * self._windows

    def run(
        self, model: Callable[..., Any], at_once: int, count: int | None = None
    ) -> Iterator[torch.Tensor]:
        """Calls the model for a window of each of `at_once` streams, then for their next ones.

        Yields the logarithms of the probabilities of the words that follow, (streams, words).
        """
        left = len(self) if count is None else count
        for streams in self._streams.split(at_once):
            state: State | None = None
            for words, following in self._pairs(streams):
                now = min(len(streams), left)
                if not now:
                    return
                scores, state = model(words[:now], following[:now], _first(state, now))
                left -= now
                yield scores

    def rate(self, outputs: Sequence[torch.Tensor]) -> float:
        """Returns minus the perplexity, from outputs of `run`."""
        total = sum(float(scores.double().sum()) for scores in outputs)
        return -math.exp(-total / sum(scores.numel() for scores in outputs))

    def quality(self, sets: Sequence[Integers], retrieved: Sequence[Bools]) -> float:
        """Returns minus the perplexity of the plain model if a part of the rows arrives."""
        missing = self._missing(sets, retrieved).reshape(len(self._streams), -1)
        outputs, state = [], None
        with torch.no_grad():
            for number, (words, following) in enumerate(self._pairs(self._streams)):
                gone = missing[:, WINDOW * number : WINDOW * (number + 1)]
                rows = self._model.fill(self._model.words(words), gone)
                scores, state = self._model.score(rows, following, state)
                outputs.append(scores)
        return self.rate(outputs)

    def _missing(self, sets: Sequence[Integers], retrieved: Sequence[Bools]) -> torch.Tensor:
        """Marks the words of all windows (windows, words) whose rows do not arrive."""
        words = self._streams[:, :-1].reshape(-1, WINDOW).numpy()
        size = self._model.words.num_embeddings
        numbers = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
        gone = (numbers * size + np.concatenate(sets))[~np.concatenate(retrieved)]
        return torch.from_numpy(np.isin(np.arange(len(words))[:, None] * size + words, gone))

    def _pairs(self, streams: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yields each window of some streams, and the same a word later."""
        for begin in range(0, self._windows * WINDOW, WINDOW):
            yield streams[:, begin : begin + WINDOW], streams[:, begin + 1 : begin + 1 + WINDOW]


def _first(state: State | None, count: int) -> State | None:
    """Returns the state of the first streams."""
    return None if state is None else (state[0][:, :count], state[1][:, :count])
