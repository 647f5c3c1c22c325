"""Data and networks of `python -m benchmarks.quant models`. Needs PyTorch."""

import argparse
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch

from .data import Digits, Text, folder, read_digits, read_text
from .networks import (
    DigitSettings,
    LanguageModel,
    TextSettings,
    perplexity,
    trained_digits,
    trained_text,
)

THESIS_UNITS = 2048
_QUICK_IMAGES, _QUICK_WORDS = 400, 3000


class Setup:
    """Data and networks, read and trained on first use."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.quick, self.full = bool(arguments.quick), bool(arguments.full)
        self.seconds = float(arguments.seconds)
        self._data = arguments.data
        self._cache = Path(arguments.cache) if arguments.cache else None
        self._digit_settings, self._text_settings, self._retraining = _settings(arguments)

    @cached_property
    def digits(self) -> Digits:
        """MNIST."""
        most = _QUICK_IMAGES if self.quick else None
        return read_digits(folder(self._data, "mnist"), most)

    @cached_property
    def text(self) -> Text:
        """WikiText-2."""
        return read_text(folder(self._data, "wikitext2"), _QUICK_WORDS if self.quick else None)

    @cached_property
    def digit_network(self) -> torch.nn.Module:
        """The float32 network for MNIST."""
        return trained_digits(self.digits, self._digit_settings, self._cache)

    @cached_property
    def small_digit_network(self) -> torch.nn.Module:
        """The smaller float32 network for Table 3.4."""
        return trained_digits(self.digits, self._retraining, self._cache)

    @cached_property
    def language_model(self) -> LanguageModel:
        """The float32 network for WikiText-2."""
        return trained_text(self.text, self._text_settings, self._cache)

    @property
    def retraining(self) -> DigitSettings:
        """The settings of Table 3.4."""
        return self._retraining

    def perplexity(self, model: object) -> float:
        """Returns the perplexity of a model on the test set."""
        assert callable(model)
        return perplexity(model, self.text.test, batch=16 if self.quick else 64)

    @property
    def about(self) -> str:
        """A description of the networks, for titles."""
        digits, text, again = self._digit_settings, self._text_settings, self._retraining
        return (
            f"MNIST: hidden {digits.hidden}, {digits.epochs} epochs (Table 3.4: hidden "
            f"{again.hidden}, {again.epochs} epochs); WikiText-2: LSTM {text.hidden}, "
            f"{text.epochs} epochs"
        )


def _settings(
    arguments: argparse.Namespace,
) -> tuple[DigitSettings, TextSettings, DigitSettings]:
    digits, text, again = DigitSettings(), TextSettings(), DigitSettings(hidden=1024, epochs=3)
    if arguments.full:
        digits, again = replace(digits, epochs=20), DigitSettings(epochs=100)
        text = TextSettings(hidden=THESIS_UNITS, epochs=40, dropout=0.5)
    if arguments.quick:
        digits = again = DigitSettings(hidden=32, epochs=1, batch=32, images=_QUICK_IMAGES)
        text = TextSettings(hidden=16, epochs=1, batch=8, cutoffs=(50, 200), words=_QUICK_WORDS)
    if arguments.hidden:
        digits = replace(digits, hidden=arguments.hidden)
    if arguments.units:
        text = replace(text, hidden=arguments.units)
    if arguments.epochs:
        digits = replace(digits, epochs=arguments.epochs)
        text = replace(text, epochs=arguments.epochs)
        again = replace(again, epochs=arguments.epochs)
    return digits, text, again
