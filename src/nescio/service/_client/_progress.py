"""The deadline of a lookup, and what was done by then."""

import time
from collections.abc import Sequence

from ...errors import ArgumentError, ServerTimeoutError

_MAX_SECONDS = 86400.0


class Progress:
    """The deadline of one lookup (None: none), and for each party the request that it waits for."""

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and not 0 < seconds <= _MAX_SECONDS:
            raise ArgumentError(f"deadline: found {seconds}, expected seconds up to a day, or None")
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds
        self._waiting: dict[str, tuple[str, int]] = {}
        self._answered: list[str] = []

    def asks(self, party: str, url: str) -> None:
        """Notes a try to get an answer of a party."""
        _, tries = self._waiting.get(party, ("", 0))
        self._waiting[party] = url, tries + 1

    def answered(self, party: str) -> None:
        """Notes a party's answer."""
        self._waiting.pop(party, None)
        self._answered.append(party)

    def check_wait(self, seconds: float) -> None:
        """Raises ServerTimeoutError if the deadline would pass during a wait."""
        if self._end is not None and time.monotonic() + seconds > self._end:
            raise self.error([])

    def error(self, fetching: Sequence[tuple[str, str]]) -> ServerTimeoutError:
        """Describes what is missing at the deadline; `fetching` has parties and URLs then asked."""
        asked = [
            f"{party} did not answer ({tries} tries, the last at {url})"
            for party, (url, tries) in self._waiting.items()
        ]
        asked += [
            f"{party} did not describe its table ({url})"
            for party, url in fetching
            if party not in self._waiting
        ]
        asked += [f"{party} answered" for party in self._answered if party not in self._waiting]
        waiting = [url for url, _ in self._waiting.values()] or [url for _, url in fetching]
        return ServerTimeoutError(
            f"no rows within the deadline of {self.seconds:g} s: {'; '.join(asked) or 'no tries'}; "
            "look up again later, with a longer deadline, or name replicas of this party",
            url=waiting[0] if waiting else "",
        )
