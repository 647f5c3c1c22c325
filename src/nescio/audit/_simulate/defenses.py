"""Defenses of the operator, as changes to a simulated run.

none                no defense
update-noise:S      each user adds noise of S times an update's size to each update
sum-noise:S         noise of S times an update's size is added once to each round's sum
count-noise:K       each count is randomly off by up to K
coarse-counts:Q     counts are rounded to multiples of Q
hidden-counts:F     a fraction F of the counts is not collected
no-counts           counts are not collected
batched:B           users take part in fixed groups of B, all of a group or none
subset:F            each update keeps a random fraction F of its entries, scaled by 1 / F

Sizes are root mean squares. A defense that stops this attack need not stop another one.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import ArgumentError
from .._arrays import IntArray

__all__ = ["DEFENSES", "Defense"]

FloatArray = npt.NDArray[np.float64]

DEFENSES = (
    "none",
    "update-noise",
    "sum-noise",
    "count-noise",
    "coarse-counts",
    "hidden-counts",
    "no-counts",
    "batched",
    "subset",
)
_PLAIN = ("none", "no-counts")
_WHOLE = ("count-noise", "coarse-counts", "batched")
_SHARES = ("hidden-counts", "subset")


@dataclass(frozen=True, slots=True)
class Defense:
    """A defense and its strength, as listed in the module. Raises ArgumentError if invalid."""

    name: str = "none"
    strength: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in DEFENSES:
            raise ArgumentError(
                f"defense: found {self.name!r}, expected one of {', '.join(DEFENSES)}"
            )
        if self.name in _PLAIN:
            return
        if not (math.isfinite(self.strength) and 0 < self.strength <= 1e6):
            raise ArgumentError(f"{self.name}: found {self.strength}, expected more than 0")
        if self.name in _WHOLE and self.strength != int(self.strength):
            raise ArgumentError(f"{self.name}: found {self.strength}, expected a whole number")
        if self.name in _SHARES and self.strength > 1:
            raise ArgumentError(
                f"{self.name}: found {self.strength}, expected a fraction, at most 1"
            )

    @classmethod
    def parse(cls, text: str) -> "Defense":
        """Parses text such as "none" or "update-noise:0.5"."""
        name, colon, strength = text.partition(":")
        if bool(colon) == (name in _PLAIN) and name in DEFENSES:
            form = name if name in _PLAIN else f"{name}:NUMBER"
            raise ArgumentError(f"defense: found {text!r}, expected {form}")
        try:
            return cls(name, float(strength) if colon else 0.0)
        except ValueError as error:
            if isinstance(error, ArgumentError):
                raise
            raise ArgumentError(f"{name}: found {strength!r}, expected a number") from error

    def __str__(self) -> str:
        return self.name if self.name in _PLAIN else f"{self.name}:{self.strength:g}"

    def take_part(self, users: int) -> IntArray:
        """(users,): the group with which each user takes part."""
        size = int(self.strength) if self.name == "batched" else 1
        return np.arange(users) // size

    def noise(self, participants: IntArray) -> FloatArray:
        """(rounds,): standard deviation added to a round's sum, relative to the size of an update.

        The zeros of `subset` act as noise: an entry b g / F, where b is 1 with probability F, has
        the mean g and the variance g^2 (1 - F) / F.
        """
        per_round = participants.astype(np.float64)
        if self.name == "update-noise":
            return np.asarray(self.strength * np.sqrt(per_round))
        if self.name == "sum-noise":
            return np.where(per_round > 0, self.strength, 0.0)
        if self.name == "subset":
            return np.asarray(np.sqrt((1 - self.strength) / self.strength * per_round))
        return np.zeros(len(participants))

    def counts(
        self, counts: IntArray, lengths: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray | None, int]:
        """Returns the counts collected out of (users, windows), and the largest error of each.

        `lengths`: (windows,), the rounds of each window.
        """
        if self.name == "no-counts":
            return None, 0
        if self.name == "hidden-counts":
            return np.where(rng.random(counts.shape) < self.strength, -1, counts), 0
        step = int(self.strength)
        if self.name == "count-noise":
            moved = counts + rng.integers(-step, step, counts.shape, endpoint=True)
            return np.clip(moved, 0, lengths), step
        if self.name == "coarse-counts":
            return np.minimum((counts + step // 2) // step * step, lengths), step // 2
        return counts, 0
