"""Perplexities of counting: how well a text is predicted without a network."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from examples.wikitext2.data import Integers

Floats = npt.NDArray[np.float64]

_DISCOUNT = 0.75


def unigram(train: Integers, test: Integers, words: int) -> float:
    """Returns the perplexity of `test` by the frequencies of words in `train`, each plus one.

    `test` is a text, or streams of text (n, length + 1), whose first words are not predicted.
    """
    counts = np.bincount(train, minlength=words) + 1.0
    return _perplexity(counts[test[..., 1:]] / counts.sum())


def bigram(train: Integers, test: Integers, words: int) -> float:
    """Returns the perplexity of `test`, a text or streams of text, by pairs of words in `train`.

    Pairs are smoothed by interpolated Kneser-Ney: a part of each count goes to all words, by the
    number of different words that they follow.
    """
    keys, counts = np.unique(train[:-1] * words + train[1:], return_counts=True)
    firsts = np.bincount(train[:-1], minlength=words)
    different = np.bincount(keys // words, minlength=words)
    preceded = np.bincount(keys % words, minlength=words) + 1.0
    before, after = test[..., :-1].ravel(), test[..., 1:].ravel()
    common = (preceded / preceded.sum())[after]
    seen = np.maximum(firsts[before], 1)
    own = np.maximum(_counts(keys, counts, before * words + after) - _DISCOUNT, 0) / seen
    rest = np.where(firsts[before] > 0, _DISCOUNT * different[before] / seen, 1.0)
    return _perplexity(own + rest * common)


def _counts(keys: Integers, counts: npt.NDArray[Any], wanted: Integers) -> Integers:
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found: Integers = np.where(keys[at] == wanted, counts[at], 0)
    return found


def _perplexity(probabilities: Floats) -> float:
    return math.exp(-float(np.log(probabilities).mean()))
