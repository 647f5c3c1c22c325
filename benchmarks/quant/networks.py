"""The networks of the experiments and their training. Needs PyTorch.

Trained networks are kept in the cache folder of the user. The file name depends on all settings.
"""

import hashlib
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.nn import functional

from nescio.errors import ArgumentError

from .data import Digits, Images, Labels, Text

_EVALUATED = 500  # images at a time
_GRADIENT = 0.25

Network = TypeVar("Network", bound=torch.nn.Module)


@dataclass(frozen=True)
class DigitSettings:
    """Settings for training on MNIST: three layers, the first two with `hidden` units."""

    hidden: int = 4096
    epochs: int = 4
    batch: int = 256
    rate: float = 1e-3
    images: int | None = None


@dataclass(frozen=True)
class TextSettings:
    """Settings for training on text: an LSTM with `hidden` units and word vectors of that size."""

    hidden: int = 256
    epochs: int = 3
    batch: int = 64
    steps: int = 35
    rate: float = 2e-3
    dropout: float = 0.2
    cutoffs: tuple[int, ...] = (2000, 10000)
    words: int | None = None


class LanguageModel(torch.nn.Module):
    """Embedding, LSTM, and adaptive softmax, which gives exact probabilities of all words.

    Source: Grave, Joulin, Cisse, Grangier and Jegou, "Efficient softmax approximation for GPUs"
    (2017). The thesis used a full softmax.
    """

    def __init__(self, words: int, settings: TextSettings) -> None:
        super().__init__()
        hidden = settings.hidden
        self.embedding = torch.nn.Embedding(words, hidden)
        self.lstm = torch.nn.LSTM(hidden, hidden)
        self.dropout = torch.nn.Dropout(settings.dropout)
        cutoffs = [cutoff for cutoff in settings.cutoffs if cutoff < words]
        self.decoder = torch.nn.AdaptiveLogSoftmaxWithLoss(hidden, words, cutoffs or [words // 2])
        torch.nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor, state: Any) -> Any:  # noqa: ANN401
        """Returns the mean loss for the targets, both (steps, batch), and the next state."""
        vectors = self.dropout(self.embedding(tokens))
        outputs, state = self.lstm(vectors, state)
        loss = self.decoder(self.dropout(outputs).flatten(0, 1), targets.flatten()).loss
        return loss, state


def digit_network(hidden: int) -> torch.nn.Sequential:
    """Returns linear layers fc1, fc2 and fc3 with ReLUs in between."""
    layers = OrderedDict[str, torch.nn.Module]()
    sizes = (28 * 28, hidden, hidden, 10)
    for i, (inputs, outputs) in enumerate(pairwise(sizes), 1):
        layers[f"fc{i}"] = torch.nn.Linear(inputs, outputs)
        if i < 3:
            layers[f"relu{i}"] = torch.nn.ReLU()
    return torch.nn.Sequential(layers)


def trained_digits(data: Digits, settings: DigitSettings, cache: Path | None) -> torch.nn.Module:
    """Returns the float32 network, from the cache or trained."""

    def make() -> torch.nn.Module:
        torch.manual_seed(0)
        return digit_network(settings.hidden)

    return _cached(
        "mnist", settings, cache, make, lambda model: train_digits(model, data, settings)
    )


def train_digits(model: torch.nn.Module, data: Digits, settings: DigitSettings) -> None:
    """Trains a network in place with Adam and a learning rate that falls to zero."""
    torch.manual_seed(1)
    images, labels = map(torch.from_numpy, data.train)
    steps = -(-len(images) // settings.batch)
    optimizer = torch.optim.Adam(model.parameters(), settings.rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.02, steps * settings.epochs)
    model.train()
    for epoch in range(settings.epochs):
        begin = time.perf_counter()
        for chosen in torch.randperm(len(images)).split(settings.batch):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            schedule.step()
        _say(epoch, settings.epochs, float(loss.detach()), begin)
    model.eval()


def accuracy(model: Callable[..., Any], images: Images, labels: Labels) -> float:
    """Returns the fraction of images that a network classifies correctly."""
    right = 0
    with torch.inference_mode():
        for first in range(0, len(images), _EVALUATED):
            part = slice(first, first + _EVALUATED)
            found = model(torch.from_numpy(images[part])).argmax(1)
            right += int((found == torch.from_numpy(labels[part])).sum())
    return right / len(images)


def trained_text(data: Text, settings: TextSettings, cache: Path | None) -> LanguageModel:
    """Returns the float32 network, from the cache or trained."""

    def make() -> LanguageModel:
        torch.manual_seed(0)
        return LanguageModel(data.words, settings)

    return _cached(
        "wikitext", settings, cache, make, lambda model: _train_text(model, data, settings)
    )


def _train_text(model: LanguageModel, data: Text, settings: TextSettings) -> None:
    """Trains in place with Adam, a learning rate that falls to zero, and clipped gradients."""
    columns = _columns(data.train, settings.batch)
    pieces = math.ceil((len(columns) - 1) / settings.steps)
    optimizer = torch.optim.Adam(model.parameters(), settings.rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.02, pieces * settings.epochs)
    for epoch in range(settings.epochs):
        model.train()
        begin, state, total = time.perf_counter(), None, 0.0
        for tokens, targets in _pieces(columns, settings.steps):
            optimizer.zero_grad()
            loss, state = model(tokens, targets, state)
            state = tuple(part.detach() for part in state)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), _GRADIENT)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        _say(epoch, settings.epochs, total / pieces, begin)
    model.eval()


def perplexity(model: Callable[..., Any], words: Labels, batch: int, steps: int = 35) -> float:
    """Returns the exponential of the mean loss per word, with the text in `batch` columns."""
    columns, state, total, count = _columns(words, batch), None, 0.0, 0
    with torch.inference_mode():
        for tokens, targets in _pieces(columns, steps):
            loss, state = model(tokens, targets, state)
            total += float(loss) * targets.numel()
            count += targets.numel()
    return math.exp(total / count)


def _columns(words: Labels, batch: int) -> torch.Tensor:
    """Cuts the text into columns, (length, batch), and drops the rest."""
    length = len(words) // batch
    if length < 2:
        raise ArgumentError(f"text: found {len(words)} words, expected {2 * batch} at least")
    return torch.from_numpy(words[: length * batch].reshape(batch, length).T.copy())


def _pieces(columns: torch.Tensor, steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for first in range(0, len(columns) - 1, steps):
        last = min(first + steps, len(columns) - 1)
        yield columns[first:last], columns[first + 1 : last + 1]


def _cached(
    task: str,
    settings: Any,  # noqa: ANN401 - a dataclass
    cache: Path | None,
    make: Callable[[], Network],
    train: Callable[[Network], None],
) -> Network:
    """Returns a network with weights from the cache, or trains it and writes it there."""
    model = make()
    described = json.dumps(asdict(settings), sort_keys=True)
    mark = hashlib.sha256(described.encode()).hexdigest()[:12]
    path = None if cache is None else cache / f"{task}-{settings.hidden}-{mark}.safetensors"
    if path is not None and path.exists():
        try:
            model.load_state_dict(load_file(path))
        except (OSError, RuntimeError, SafetensorError) as error:
            raise ArgumentError(
                f"{path}: found a file that is not this network ({error}), expected one that "
                "--cache wrote; move it away, or name another folder"
            ) from error
        model.eval()
        return model
    print(f"training {task}: {described}", flush=True)
    train(model)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(model.state_dict(), path, {"settings": described})
    return model


def _say(epoch: int, epochs: int, loss: float, begin: float) -> None:
    seconds = time.perf_counter() - begin
    print(f"  epoch {epoch + 1} of {epochs}: loss {loss:.3f}, {seconds:.0f} s", flush=True)
