"""The verdict of an audit."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Grade", "Verdict"]

Grade = Literal["safe", "at risk", "broken"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade, the users behind it, and the reasons in words.

    `users` took part. `unique` and `ambiguous` count their certificates; `clear` counts columns
    that fit far better than chance allows; `usable` counts users whose update was recovered or can
    be estimated within the threshold.
    """

    grade: Grade
    users: int
    unique: int
    usable: int
    ambiguous: int
    clear: int
    reasons: tuple[str, ...]

    @property
    def code(self) -> int:
        """The exit code: 0 for safe, 1 for at risk, 2 for broken."""
        return ("safe", "at risk", "broken").index(self.grade)
