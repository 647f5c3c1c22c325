"""Thresholds of the grade, checked when they are made."""

from dataclasses import dataclass

from ..errors import ArgumentError

__all__ = ["Thresholds"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of the grade.

    `broken`: the log is broken if more than this fraction of the participating users have an update
    with a relative error of at most `usable`. `chance`: the log is at risk if chance gives its
    columns with at most this probability. Raises ArgumentError if a value is out of range.
    """

    broken: float = 0.0
    usable: float = 1.0
    chance: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 <= self.broken < 1:
            raise ArgumentError(
                f"broken: found {self.broken}, expected a fraction, 0 or more, below 1"
            )
        if not 0 < self.usable <= 1e9:
            raise ArgumentError(f"usable: found {self.usable}, expected an error of more than 0")
        if not 0 < self.chance < 1:
            raise ArgumentError(f"chance: found {self.chance}, expected a probability")
