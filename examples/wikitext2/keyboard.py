"""A keyboard that looks up every word that is typed, and shows the likeliest next words."""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

import torch

from examples.common.measured import Phases, TimedModel
from examples.common.private import private_model
from examples.wikitext2.data import END, UNKNOWN
from examples.wikitext2.model import LanguageModel, State
from examples.wikitext2.saved import load
from nescio.errors import ArgumentError

_DAY = 86_400
_SHOWN = 5  # next words
_WIDTH = 16
_TOKENS = re.compile(r"<\w+>|'s\b|\w+|[^\w\s]")  # as the texts are cut
_STEPS = ("keys", "servers", "network", "decode", "model", "total")
_HEADINGS = ("keys", "servers", "HTTP", "check", "model", "all ms")


def type_words(folder: Path, lines: TextIO) -> None:
    """Looks up the words of lines with the model of an earlier run, until an empty line.

    `folder` is that of the run. Raises FileError for another folder, and the errors of the servers.
    """
    words, shape = load(folder)
    make = partial(LanguageModel, len(words), shape, device="meta")
    with private_model(make, folder / "separate", seconds=_DAY) as model:
        keyboard = Keyboard(model, words)
        print(f"two servers have the rows of {len(words):,} words; each word is one lookup")
        print("type a sentence; an empty line ends")
        for line in _lines(lines):
            keyboard.type(line)
        print(keyboard.summary())


def _lines(lines: TextIO) -> Iterator[str]:
    """Yields lines until an empty one; a terminal gets a prompt, other input is repeated."""
    terminal = lines.isatty()
    while True:
        if terminal:
            print("> ", end="", flush=True)
        text = lines.readline()
        if terminal and not text:
            print()
        line = text.strip()
        if not line:
            return
        if not terminal:
            print(f"> {_printable(line)}")
        yield line


class Keyboard:
    """Predicts the next word after each word that is typed, with private lookups."""

    def __init__(self, model: TimedModel, words: Sequence[str]) -> None:
        self._model, self._words = model, words
        self._numbers = {word: number for number, word in enumerate(words)}

    def type(self, line: str) -> None:
        """Looks up the words of a line, which begins a text, and prints what follows each."""
        print(" " * _WIDTH + "".join(f"{heading:>9}" for heading in _HEADINGS) + "   next")
        state: State | None = None
        for typed in [END, *_TOKENS.findall(line)]:
            number = self.number(typed)
            shown = _printable(typed)
            word = shown if number != self._numbers[UNKNOWN] else f"{shown} {UNKNOWN}"
            scores, state = self._model(torch.tensor([[number]]), None, state)
            print(
                f"{word[-_WIDTH:]:{_WIDTH}}{_times(self._model.calls[-1])}   {self._next(scores)}"
            )

    def number(self, word: str) -> int:
        """Returns the row of a word; that of <unk> for one that the vocabulary lacks."""
        lower = self._numbers.get(word.lower(), self._numbers[UNKNOWN])
        return self._numbers.get(word, lower)

    def _next(self, scores: torch.Tensor) -> str:
        """Returns the likeliest words, without <unk>."""
        chances = scores[0].exp()
        chances[self._numbers[UNKNOWN]] = 0
        found = torch.topk(chances, min(_SHOWN, len(self._words)))
        pairs = zip(found.values.tolist(), found.indices.tolist(), strict=True)
        return "  ".join(f"{self._words[number]} {chance:.0%}" for chance, number in pairs)

    def summary(self) -> str:
        """Returns what all lookups cost, and what a server saw."""
        requests = [r for table in self._model.tables.values() for r in table.requests]
        if not requests:
            return "no lookup: the servers saw nothing"
        sizes = sorted({(request.bytes_up, request.bytes_down) for request in requests})
        each = ", ".join(f"{up:,} bytes up and {down:,} down" for up, down in sizes)
        return f"{len(requests)} lookups; each server saw {each} for each, whatever the word"


def _printable(text: str) -> str:
    """Replaces control characters, which a terminal would obey."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _times(call: Phases) -> str:
    return "".join(f"{1000 * getattr(call, step):9.2f}" for step in _STEPS)


def standard_input() -> TextIO:
    """Returns standard input, in which bytes that are not text do no harm.

    Raises ArgumentError where it is closed.
    """
    if sys.stdin is None:
        raise ArgumentError("--type: found a closed standard input, expected lines of text")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin
