"""WikiText-2: three texts as numbers of words, and the streams that they are cut in."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from examples.common.files import find, missing, open_text
from nescio.errors import ArgumentError, FileError

Integers = npt.NDArray[np.int64]

UNKNOWN = "<unk>"
"""The word that stands for all words that the vocabulary lacks."""
END = "<eos>"
"""The word at the end of each line."""

_PARTS = ("train", "valid", "test")
_NAMES = ("wiki.{}.tokens", "{}.txt", "wiki.{}.txt")
_SETS = ("wikitext-2", "wikitext-2-v1")
_SOURCE = (
    "get train.txt, valid.txt and test.txt from https://github.com/pytorch/examples, folder "
    "word_language_model/data/wikitext-2, and name their folder with --data"
)


@dataclass(frozen=True)
class Texts:
    """Texts as numbers of words. `words` has the words, the most frequent of `train` first."""

    words: list[str]
    train: Integers
    valid: Integers
    test: Integers

    def counts(self) -> Integers:
        """Counts each word of the vocabulary in the text to train with."""
        return np.bincount(self.train, minlength=len(self.words))


def load(folder: Path) -> Texts:
    """Loads the three texts from their folder, or from the folder that has it.

    Takes wiki.train.tokens or train.txt, and the same of valid and test, gzipped or not. A line
    ends with the word <eos>. Words that are not in the first text become <unk>. Raises FileError,
    which says where to get the set.
    """
    for own in (folder, *(folder / name for name in _SETS)):
        paths = [find(own, [name.format(part) for name in _NAMES]) for part in _PARTS]
        found = [path for path in paths if path is not None]
        if len(found) == len(_PARTS):
            return _texts([_read(path) for path in found])
    expected = ", ".join(f"{part}.txt or wiki.{part}.tokens" for part in _PARTS)
    raise missing(folder, expected, _SOURCE)


def _read(path: Path) -> list[str]:
    """Reads the words of a text. Raises FileError for a text without words."""
    with open_text(path) as file:
        words = list(chain.from_iterable([*line.split(), END] for line in file))
    if len(words) == words.count(END):
        raise FileError(f"{path}: found no words, expected a text; get the data set again")
    return words


def _texts(texts: list[list[str]]) -> Texts:
    counts = Counter(texts[0])
    counts.setdefault(UNKNOWN, 0)
    words = sorted(counts, key=lambda word: (-counts[word], word))
    numbers = {word: number for number, word in enumerate(words)}
    unknown = numbers[UNKNOWN]
    train, valid, test = (
        np.array([numbers.get(word, unknown) for word in text], np.int64) for text in texts
    )
    return Texts(words, train, valid, test)


def streams(text: Integers, count: int, window: int) -> Integers:
    """Cuts a text in `count` streams of as many windows of words each: (count, length + 1).

    The last word of a stream begins the next one. Words at the end of the text that do not fill a
    window of every stream are left out. Raises ArgumentError for a text that is too short.
    """
    length = (len(text) - 1) // count // window * window
    if length < window:
        raise ArgumentError(
            f"--data: found a text of {len(text):,} words, expected {count * window + 1:,} or "
            f"more: {count} streams of {window} words and one that follows"
        )
    cut: Integers = text[length * np.arange(count)[:, None] + np.arange(length + 1)]
    return cut
