"""The circuit breaker of one server: when a client that can ask another one leaves it alone."""

import time
from collections.abc import Callable
from typing import Literal

FAILURES = 3
FIRST_PAUSE = 1.0
MAX_PAUSE = 30.0


class Breaker:
    """Counts the failures of one server in a row.

    After a failure the server is left alone for 1 second, twice as long after each further one, at
    most 30, or as long as it asks for. After 3 failures it is `open`: not even the last resort of a
    lookup. When the pause is over it is `half-open`: one probe, which is not a lookup, decides. Any
    success closes it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.failures = 0
        self._until = 0.0

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        """The state; a closed breaker may have failures, and then others are asked first."""
        if self.failures < FAILURES:
            return "closed"
        return "half-open" if self.is_due else "open"

    @property
    def is_due(self) -> bool:
        """True if the server has failed, and its pause is over: time for a probe."""
        return self.failures > 0 and self._clock() >= self._until

    def succeeded(self) -> None:
        """Notes an answer."""
        self.failures = 0

    def failed(self, after: float = 0.0) -> None:
        """Notes a failure; the server may have asked to be left alone for `after` seconds."""
        pause = min(MAX_PAUSE, max(after, FIRST_PAUSE * 2 ** min(self.failures, 5)))
        self.failures += 1
        self._until = self._clock() + pause
