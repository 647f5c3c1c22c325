"""Numbers and durations of the faults."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """Numbers and durations of the faults.

    `kills`, `fuzzed` requests and `connections` are numbers; `seconds` is the duration of a fault
    that lasts. `seed` chooses the instants.
    """

    kills: int = 200
    fuzzed: int = 1_000_000
    connections: int = 10_000
    seconds: float = 5.0
    seed: int = 1

    def options(self, folder: Path) -> list[str]:
        """Returns the options of the servers."""
        del folder
        return []


class SkippedError(Exception):
    """A fault that this machine does not permit."""
