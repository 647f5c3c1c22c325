"""The recommender: a small network over the rows of a film and of a history of films."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from examples.common.layers import two_layers
from examples.common.quality import roc_auc

COLUMNS = 32
"""Floats of a film's row: 128 bytes, as in the paper's Table 1."""

_PRIOR = 5  # empty rows in each mean: few films say little
_BATCH = 512
_RATED = 1024  # examples that are scored together
_RATE = 1e-3
_DECAY = 1e-4  # of the films' rows: most films have few ratings
_AVERAGED = 200  # steps that the average of the weights looks back

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Recommender(torch.nn.Module):
    """Predicts if a user likes a film, after a history of films: the logit of a rating from 4 on.

    The input (n, 1 + history) has the film, then the history. A place of the history that repeats
    the film is empty. Rows that did not fit a private lookup are left out too; in training, so is
    a part of each history, at random. The two layers get the film's row, the mean of the history's
    rows, and their product. `device="meta"` makes a model without memory for the rows.
    """

    def __init__(self, films: int, dropout: float = 0.5, device: str | None = None) -> None:
        super().__init__()
        self.films = torch.nn.Embedding(films, COLUMNS, device=device)
        torch.nn.init.normal_(self.films.weight, std=0.05)
        self.head = two_layers(3 * COLUMNS, dropout)

    def forward(self, films: torch.Tensor) -> torch.Tensor:
        """Returns the logits (n,) for rows (n, 1 + history)."""
        rows = self.films(films)
        present = films[:, 1:] != films[:, :1]
        missing = getattr(self.films, "last_missing", None)  # of a private embedding
        if missing is not None:
            present = present & ~missing[:, 1:]
        if self.training:
            present = present & (torch.rand(present.shape) >= torch.rand(len(films), 1))
        return self.score(rows, present)

    def score(self, rows: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """Returns the logits (n,) for the vectors of a film and its history.

        `rows` is (n, 1 + history, columns); `present` (n, history) marks the films that count.
        """
        weights = present.to(rows.dtype)
        total = torch.bmm(weights.unsqueeze(1), rows[:, 1:]).squeeze(1)
        mean = total / (weights.sum(1, keepdim=True) + _PRIOR)
        film = rows[:, 0]
        scores: torch.Tensor = self.head(torch.cat([film, mean, film * mean], dim=1)).squeeze(1)
        return scores

    def start_from(self, users: Integers, films: Integers) -> None:
        """Sets the films' rows to singular vectors of the matrix of users and films that they like.

        So films that the same users like begin with similar rows: few users are too few to learn
        that from examples.
        """
        places = torch.from_numpy(np.stack([users, films]))
        shape = int(users.max()) + 1, self.films.num_embeddings
        likes = torch.sparse_coo_tensor(
            places, torch.ones(len(users)), shape, check_invariants=True
        )
        _, sizes, vectors = torch.svd_lowrank(likes, min(COLUMNS, *shape), niter=4)
        vectors = vectors * sizes
        vectors = vectors / vectors.abs().amax(0).mean()  # the largest numbers are about 1
        self.films.weight.data[:, : vectors.shape[1]] += vectors


Examples = Callable[[Any], tuple[torch.Tensor, torch.Tensor]]
"""Returns the rows and the labels of some examples, which an array numbers."""


def train(
    model: Recommender,
    examples: Examples,
    train_on: Integers,
    valid: Integers,
    *,
    epochs: int,
    seed: int,
    progress: Callable[[str], None],
) -> None:
    """Trains the model; it gets weights averaged over steps, those after the best epoch.

    The best epoch is that of the highest AUC over the examples of `valid`.
    """
    random = np.random.default_rng(seed)
    average = torch.optim.swa_utils.AveragedModel(model, avg_fn=_averaged)
    parts = [
        {"params": model.films.parameters(), "weight_decay": _DECAY},
        {"params": model.head.parameters()},
    ]
    optimizer = torch.optim.Adam(parts, lr=_RATE)
    best, state = 0.0, model.state_dict()
    for epoch in range(epochs):
        model.train()
        order = random.permutation(train_on)
        for own in np.split(order, range(_BATCH, len(order), _BATCH)):
            rows, labels = examples(own)
            loss = functional.binary_cross_entropy_with_logits(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update_parameters(model)
        found = auc(average.module.eval(), examples, valid)
        progress(f"epoch {epoch + 1} of {epochs}: ROC-AUC {found:.4f} for users to validate with")
        if found > best:
            best = found
            state = {name: value.clone() for name, value in average.module.state_dict().items()}
    model.load_state_dict(state)
    model.eval()


def _averaged(average: torch.Tensor, new: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    return average + (new - average) / min(int(count) + 1, _AVERAGED)


class LayoutQuality:
    """Rates a layout by the AUC over inferences that get a part of their rows, for `tune`.

    `liked` (n,) has the labels of the inferences, whose sets begin with the film that is scored.
    """

    def __init__(self, model: Recommender, liked: Bools) -> None:
        self._model, self._liked = model, liked

    def __call__(self, sets: Sequence[Integers], retrieved: Sequence[Bools]) -> float:
        """Returns the AUC, for sets of rows and flags of those that arrive."""
        lengths = np.array([len(rows) for rows in sets])
        inside = np.arange(lengths.max()) < lengths[:, None]
        films, present = np.zeros(inside.shape, np.int64), np.zeros(inside.shape, bool)
        films[inside], present[inside] = np.concatenate(sets), np.concatenate(retrieved)
        scores = []
        with torch.no_grad():
            for begin in range(0, len(films), _BATCH):
                own = torch.from_numpy(present[begin : begin + _BATCH])
                rows = self._model.films(torch.from_numpy(films[begin : begin + _BATCH]))
                scores.append(self._model.score(rows * own.unsqueeze(2), own[:, 1:]))
        return roc_auc(self._liked, torch.cat(scores).numpy())


def scores_of(
    model: Callable[[torch.Tensor], torch.Tensor],
    examples: Examples,
    numbers: Integers,
    batch: int = _RATED,
) -> npt.NDArray[np.float32]:
    """Returns the scores of some examples, `batch` of them at a time."""
    batches = np.split(numbers, range(batch, len(numbers), batch))
    with torch.no_grad():
        parts = [model(examples(own)[0]) for own in batches]
    scores: npt.NDArray[np.float32] = torch.cat(parts).numpy()
    return scores


def auc(model: Recommender, examples: Examples, numbers: Integers) -> float:
    """Returns the area under the ROC curve over some examples."""
    labels, scores = [], []
    with torch.no_grad():
        for own in np.split(numbers, range(_RATED, len(numbers), _RATED)):
            rows, liked = examples(own)
            labels.append(liked > 0)
            scores.append(model(rows))
    return roc_auc(torch.cat(labels).numpy(), torch.cat(scores).numpy())
