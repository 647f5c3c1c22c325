"""The language model: an LSTM over the rows of words, and its training."""

from dataclasses import dataclass

import torch

COLUMNS = 128
"""Floats of a word's row: 512 bytes, as in the paper's Table 1."""

State = tuple[torch.Tensor, torch.Tensor]
"""The state of an LSTM between two windows."""


@dataclass(frozen=True)
class Shape:
    """The shape of a model: LSTM layers of `hidden`, and an output layer of `width` inputs.

    `cuts` divide the words, which are in the order of their frequency, into groups of the output
    layer; `dropout` and `word_dropout` are for training.
    """

    hidden: int = 256
    width: int = 128
    layers: int = 1
    cuts: tuple[int, ...] = (2000, 10000)
    dropout: float = 0.0
    word_dropout: float = 0.1


class LanguageModel(torch.nn.Module):
    """Predicts the next word after each word of a text.

    The rows of words go through an LSTM and a projection to the adaptive softmax of Grave et al.
    (2017), whose probabilities of all words add up to one. Words whose rows did not fit a private
    lookup get the row `absent` instead; in training, so do a part of the words, at random.
    `device="meta"` makes a model without memory for the rows.
    """

    def __init__(self, words: int, shape: Shape, device: str | None = None) -> None:
        super().__init__()
        self.shape = shape
        self.words = torch.nn.Embedding(words, COLUMNS, device=device)
        torch.nn.init.uniform_(self.words.weight, -0.1, 0.1)
        self.absent = torch.nn.Parameter(torch.zeros(COLUMNS))
        self.dropout = torch.nn.Dropout(shape.dropout)
        inner = shape.dropout if shape.layers > 1 else 0.0
        self.lstm = torch.nn.LSTM(
            COLUMNS, shape.hidden, shape.layers, batch_first=True, dropout=inner
        )
        self.project = torch.nn.Linear(shape.hidden, shape.width)
        cuts = [cut for cut in shape.cuts if cut < words] or [(words + 1) // 2]
        self.output = torch.nn.AdaptiveLogSoftmaxWithLoss(
            shape.width, words, cuts, div_value=2.0, head_bias=True
        )

    def forward(
        self, words: torch.Tensor, following: torch.Tensor | None, state: State | None = None
    ) -> tuple[torch.Tensor, State]:
        """Returns the logarithms of the probabilities of words that follow, and the state.

        `words` and `following` are (n, t): a window of each of n texts, and the same window a word
        later. The probabilities are those of `following` (n, t), or without it those of all words
        after the last one, (n, words). `state` is that after the window before.
        """
        rows = self.words(words)
        missing = getattr(self.words, "last_missing", None)  # of a private embedding
        if self.training:
            missing = torch.rand(words.shape) < self.shape.word_dropout
        if missing is not None:
            rows = self.fill(rows, missing)
        return self.score(rows, following, state)

    def fill(self, rows: torch.Tensor, missing: torch.Tensor) -> torch.Tensor:
        """Replaces the rows (n, t, columns) that `missing` (n, t) marks."""
        return torch.where(missing.unsqueeze(2), self.absent, rows)

    def score(
        self, rows: torch.Tensor, following: torch.Tensor | None, state: State | None
    ) -> tuple[torch.Tensor, State]:
        """Computes what `forward` returns, from rows (n, t, columns)."""
        outputs, state = self.lstm(self.dropout(rows), state)
        outputs = self.dropout(self.project(self.dropout(outputs)))
        if following is None:
            return self.output.log_prob(outputs[:, -1]), state
        scores = self.output(outputs.flatten(0, 1), following.flatten()).output
        return scores.reshape(following.shape), state
