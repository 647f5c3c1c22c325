"""The deadline of a lookup or a connection, and what was done by then."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import ArgumentError, NescioError, ServerTimeoutError

_MAX_SECONDS = 86400.0


class Pending(NamedTuple):
    """A part of the connection that is not there yet: of which party, a sentence, a URL."""

    party: str
    text: str
    url: str


@dataclass
class _Waiting:
    """The request that a party has not answered: the last try, how many, its error if it failed."""

    url: str
    tries: int
    error: NescioError | None = None

    def __str__(self) -> str:
        last = f"at {self.url}" if self.error is None else f"failed: {self.error}"
        return f"did not answer ({self.tries} tries, the last {last})"


class Progress:
    """The deadline of one lookup (None: none), and for each party the request that it waits for.

    `missing` begins the error: the result that is not there at the deadline.
    """

    def __init__(self, seconds: float | None, missing: str = "no rows") -> None:
        if seconds is not None and not 0 < seconds <= _MAX_SECONDS:
            raise ArgumentError(f"deadline: found {seconds}, expected seconds up to a day, or None")
        self.seconds = seconds
        self.end = float("inf") if seconds is None else time.monotonic() + seconds
        self._missing = missing
        self._waiting: dict[str, _Waiting] = {}
        self._answered: list[str] = []

    @property
    def left(self) -> float:
        """The seconds until the deadline."""
        return max(self.end - time.monotonic(), 0.0)

    def asks(self, party: str, url: str) -> None:
        """Notes a try to get an answer of a party."""
        before = self._waiting.get(party)
        self._waiting[party] = _Waiting(url, 1 if before is None else before.tries + 1)

    def failed(self, party: str, error: NescioError) -> None:
        """Notes that the last try failed."""
        self._waiting[party].error = error

    def answered(self, party: str) -> None:
        """Notes a party's answer."""
        self._waiting.pop(party, None)
        self._answered.append(party)

    def error(self, fetching: Sequence[Pending]) -> ServerTimeoutError:
        """Describes what is missing at the deadline; `fetching` has what was then asked for."""
        asked = [f"{party} {waiting}" for party, waiting in self._waiting.items()]
        asked += [one.text for one in fetching if one.party not in self._waiting]
        asked += [f"{party} answered" for party in self._answered if party not in self._waiting]
        waiting = [one.url for one in self._waiting.values()] or [one.url for one in fetching]
        return ServerTimeoutError(
            f"{self._missing} within the deadline of {self.seconds:g} s: "
            f"{'; '.join(asked) or 'no tries'}; try again later, with a longer deadline, or name "
            "replicas of this party",
            url=waiting[0] if waiting else "",
        )
