"""A small recommender: MovieLens where its data are, otherwise users with tastes."""

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

HISTORY = 20
_RATINGS = "movielens/ml-latest-small/ratings.csv.gz"


class Model(torch.nn.Module):
    """A score for a film after a history of films; film 0 is padding."""

    def __init__(self, films, columns=16):
        super().__init__()
        self.history = torch.nn.EmbeddingBag(films, columns, mode="mean", padding_idx=0)
        self.film = torch.nn.Embedding(films, columns)
        self.head = torch.nn.Sequential(
            torch.nn.Linear(2 * columns, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )

    def forward(self, history, film):
        return self.head(torch.cat([self.history(history), self.film(film)], 1)).squeeze(1)


def histories():
    """Returns (films, histories (n, 20), next films (n,)), in the order of time."""
    path = Path(os.environ.get("NESCIO_DATA") or "../shared/data") / _RATINGS
    seen = _ratings(path) if path.is_file() else _tastes()
    films = 1 + max(max(one) for one in seen)
    rows = np.zeros((len(seen), HISTORY), np.int64)
    for row, one in zip(rows, seen, strict=True):
        row[: len(one[:-1][-HISTORY:])] = one[:-1][-HISTORY:]
    return films, torch.from_numpy(rows), torch.tensor([one[-1] for one in seen])


def _ratings(path):
    """Returns the films that each user rated 4 and better, in order, numbered from 1."""
    with gzip.open(path, "rt") as file:
        lines = [line for line in csv.DictReader(file) if float(line["rating"]) >= 4]
    numbers = {film: i for i, film in enumerate(sorted({line["movieId"] for line in lines}), 1)}
    users = {}
    for line in sorted(lines, key=lambda line: int(line["timestamp"])):
        users.setdefault(line["userId"], []).append(numbers[line["movieId"]])
    return [films for films in users.values() if len(films) > 1]


def _tastes(users=300, films=2000, kinds=10):
    """Returns films of one kind for each user, popular ones more often."""
    rng = np.random.default_rng(4)
    lengths = rng.integers(2, 40, users)
    popular = [np.minimum(rng.zipf(1.3, n), films // kinds) - 1 for n in lengths]
    return [(1 + kinds * own + rng.integers(kinds)).tolist() for own in popular]


def trained(films, history, film, epochs=10, step=0.02):
    """Returns a model that was trained to tell the next film from a random one.

    A step follows the signs of the gradient: an optimizer of PyTorch takes seconds to import.
    """
    torch.manual_seed(1)
    model = Model(films)
    for _ in range(epochs):
        for own in torch.randperm(len(film)).split(64):
            scores = model(history[own], film[own]) - model(history[own], _others(films, len(own)))
            model.zero_grad()
            torch.nn.functional.softplus(-scores).mean().backward()
            with torch.no_grad():
                for weight in model.parameters():
                    weight.sub_(step * weight.grad.sign())
    return model.eval()


def share_above_others(model, films, history, film):
    """Returns the share of the next films that score higher than a random one."""
    torch.manual_seed(2)
    with torch.no_grad():
        better = model(history, film) > model(history, _others(films, len(film)))
    return better.float().mean()


def _others(films, count):
    return torch.randint(1, films, (count,))
