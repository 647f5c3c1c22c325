"""Numbers and durations of the faults."""

import math
from dataclasses import dataclass

from .party import DATA


@dataclass(frozen=True)
class Settings:
    """Numbers and durations of the faults.

    `kills`, `fuzzed` requests and `connections` are numbers; `seconds` is the duration of a fault
    that lasts. `seed` chooses the instants. Kills of replicas end after `limit` seconds.
    """

    kills: int = 200
    fuzzed: int = 1_000_000
    connections: int = 10_000
    seconds: float = 5.0
    seed: int = 1
    limit: float = math.inf

    @property
    def options(self) -> list[str]:
        """The options of the servers."""
        return ["--data", DATA]


class SkippedError(Exception):
    """A fault that this machine does not permit."""
