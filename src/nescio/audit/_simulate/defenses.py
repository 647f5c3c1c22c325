"""What an operator can do about it, as changes to a simulated run.

none                nothing
update-noise:S      each user adds noise of S times an update's size to each update that it sends
sum-noise:S         noise of S times an update's size is added once to each round's sum
count-noise:K       each count is off by up to K, at random
coarse-counts:Q     counts are rounded to multiples of Q
hidden-counts:F     a share F of the counts is not collected
no-counts           counts are not collected at all
batched:B           users take part in fixed groups of B, all of a group or none
subset:F            each update holds a random share F of its entries, times 1 / F, the rest zero

Sizes are root mean squares. A defence that stops this attack need not stop another one.
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
    """A defence and its strength: see the module. Raises ArgumentError for one that is none."""

    name: str = "none"
    strength: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in DEFENSES:
            raise ArgumentError(
                f"defence: found {self.name!r}, expected one of {', '.join(DEFENSES)}"
            )
        if self.name in _PLAIN:
            return
        if not (math.isfinite(self.strength) and 0 < self.strength <= 1e6):
            raise ArgumentError(f"{self.name}: found {self.strength}, expected more than 0")
        if self.name in _WHOLE and self.strength != int(self.strength):
            raise ArgumentError(f"{self.name}: found {self.strength}, expected a whole number")
        if self.name in _SHARES and self.strength > 1:
            raise ArgumentError(f"{self.name}: found {self.strength}, expected a share, at most 1")

    @classmethod
    def parse(cls, text: str) -> "Defense":
        """A defence from text such as "none" or "update-noise:0.5"."""
        name, colon, strength = text.partition(":")
        if bool(colon) == (name in _PLAIN) and name in DEFENSES:
            form = name if name in _PLAIN else f"{name}:NUMBER"
            raise ArgumentError(f"defence: found {text!r}, expected {form}")
        try:
            return cls(name, float(strength) if colon else 0.0)
        except ValueError as error:
            if isinstance(error, ArgumentError):
                raise
            raise ArgumentError(f"{name}: found {strength!r}, expected a number") from error

    def __str__(self) -> str:
        return self.name if self.name in _PLAIN else f"{self.name}:{self.strength:g}"

    def take_part(self, users: int) -> IntArray:
        """(users,): the group that each user takes part with."""
        size = int(self.strength) if self.name == "batched" else 1
        return np.arange(users) // size

    def noise(self, participants: IntArray) -> FloatArray:
        """(rounds,): the standard deviation that is added to a round's sum, per size of an update.

        The zeros of `subset` are noise as well: an entry b g / F, with b 1 at a rate of F, has the
        mean g and the variance g^2 (1 - F) / F.
        """
        together = participants.astype(np.float64)
        if self.name == "update-noise":
            return np.asarray(self.strength * np.sqrt(together))
        if self.name == "sum-noise":
            return np.where(together > 0, self.strength, 0.0)
        if self.name == "subset":
            return np.asarray(np.sqrt((1 - self.strength) / self.strength * together))
        return np.zeros(len(participants))

    def counts(
        self, counts: IntArray, lengths: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray | None, int]:
        """What is collected of (users, windows) counts, and how far each may be off.

        `lengths`: (windows,), their rounds.
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
