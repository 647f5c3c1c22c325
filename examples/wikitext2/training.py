"""The training of the language model: its first rows, and backpropagation through time."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch

from examples.wikitext2.model import COLUMNS, LanguageModel

Integers = npt.NDArray[np.int64]

_BATCH = 64  # parts of the text
_NEAR = 4  # words on each side that first rows are made from
_SPREAD = 0.3  # the standard deviation of first rows
_WARM = 0.05  # the part of the training in which the rate grows
_CLIP = 1.0


def start_from(model: LanguageModel, text: Integers) -> None:
    """Sets the rows to singular vectors of the words' neighborhoods, and biases to frequencies.

    So words that occur near the same words begin with similar rows: a few epochs are too few to
    learn that. The matrix has the positive pointwise mutual information of the words of `text`.
    """
    words = model.words.num_embeddings
    counts = np.bincount(text, minlength=words)
    size = min(COLUMNS, words)
    vectors, sizes, _ = torch.svd_lowrank(_information(text, words), size, niter=2)
    vectors = vectors * sizes.sqrt()
    with torch.no_grad():
        model.words.weight[:, :size] = _SPREAD * vectors / vectors.std()
        groups = [counts[begin:end].sum() for begin, end in pairwise(model.output.cutoffs)]
        shares = 1 + np.concatenate([counts[: model.output.cutoffs[0]], groups])
        model.output.head.bias.copy_(torch.from_numpy(np.log(shares / shares.sum())))


def _information(text: Integers, words: int) -> torch.Tensor:
    """Returns the positive pointwise mutual information of words and their neighbors, sparse."""
    pairs = [text[:-near] * words + text[near:] for near in range(1, _NEAR + 1)]
    weights = [np.full(len(own), 1 / near) for near, own in enumerate(pairs, 1)]
    keys, places = np.unique(np.concatenate(pairs), return_inverse=True)
    once = np.bincount(places, np.concatenate(weights))
    at = np.concatenate([[keys // words, keys % words], [keys % words, keys // words]], axis=1)
    values = torch.from_numpy(np.concatenate([once, once]).astype(np.float32))
    found = torch.sparse_coo_tensor(
        torch.from_numpy(at), values, (words, words), check_invariants=True
    ).coalesce()
    (row, column), values = found.indices(), found.values()
    total = torch.zeros(words).index_add_(0, row, values)
    smoothed = total**0.75
    expected = total[row] * smoothed[column] / smoothed.sum()
    information = torch.log(values / expected).clamp(min=0)
    return torch.sparse_coo_tensor(
        found.indices(), information, (words, words), is_coalesced=True, check_invariants=True
    )


def train(
    model: LanguageModel,
    text: Integers,
    *,
    epochs: int,
    window: int,
    rate: float,
    seed: int,
    progress: Callable[[str], None],
) -> None:
    """Trains the model on parts of a text at once, a window of each in every step.

    The state is carried from window to window; gradients are not. The rate grows at first, and then
    falls to 0. Each epoch begins at another word.
    """
    random = np.random.default_rng(seed)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=rate, betas=(0.9, 0.99), fused=True)
    steps = epochs * max(1, (len(text) - 1 - window) // _BATCH // window)
    done = 0
    model.train()
    for epoch in range(epochs):
        total, state = 0.0, None
        first = done
        for words, following in _windows(text[random.integers(0, window) :], _BATCH, window):
            for group in optimizer.param_groups:
                group["lr"] = rate * _schedule(done / steps)
            scores, state = model(words, following, state)
            state = state[0].detach(), state[1].detach()
            loss = -scores.mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, _CLIP)
            optimizer.step()
            total, done = total + float(loss.detach()), done + 1
        mean = np.exp(total / (done - first))
        progress(f"epoch {epoch + 1} of {epochs}: perplexity {mean:.1f} of the training text")
    model.eval()


def _windows(
    text: Integers, batch: int, window: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields windows (batch, window) of parts of a text, and the same a word later."""
    length = (len(text) - 1) // batch
    size = batch * length
    words, following = (
        torch.from_numpy(text[begin : begin + size].reshape(batch, length)) for begin in (0, 1)
    )
    for begin in range(0, length - window + 1, window):
        yield words[:, begin : begin + window], following[:, begin : begin + window]


def _schedule(done: float) -> float:
    """Returns the factor of the rate after a part of the training."""
    return min(1.0, done / _WARM, max(0.0, (1 - done) / (1 - _WARM)))
