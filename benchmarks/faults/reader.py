"""Clients that look up rows all the time, and compare each with the model."""

import threading
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from nescio.errors import NescioError
from nescio.service import RemoteTable

from .model import Model
from .party import TABLE

_MOST_ROWS = 8
_PAUSE_SECONDS = 0.02


class Reader(threading.Thread):
    """Looks up random rows until `stop`.

    A lookup is tried for at most `timeout` seconds, and once: each failure is counted under the
    name of its error.
    """

    def __init__(
        self,
        model: Model,
        urls: Sequence[str | Sequence[str]],
        *,
        timeout: float = 3.0,
        seed: int = 0,
    ) -> None:
        super().__init__(name=f"reader-{seed}", daemon=True)
        self.lookups = 0
        self.wrong = 0
        self.behind = 0  # changes, at most
        self.saw: Counter[str] = Counter()
        self.texts: dict[str, str] = {}  # of the first error of each name
        self.outage = 0.0
        self.latencies: list[float] = []
        self._model = model
        self._urls = list(urls)
        self._timeout = timeout
        self._random = np.random.default_rng(seed)
        self._stopping = threading.Event()
        self._renewing = threading.Event()
        self._remote: RemoteTable | None = None
        self._last = 0.0

    @property
    def refused(self) -> int:
        """The number of lookups that returned no rows."""
        return self.saw.total()

    def run(self) -> None:
        """Looks up rows until `stop`."""
        self._last = time.monotonic()
        while not self._stopping.is_set():
            try:
                self._lookup()
            except NescioError as error:
                self.saw[type(error).__name__] += 1
                self.texts.setdefault(type(error).__name__, str(error))
                self._stopping.wait(_PAUSE_SECONDS)
        self.outage = max(self.outage, time.monotonic() - self._last)
        self._close()

    def stop(self) -> None:
        """Ends the thread after its current lookup."""
        self._stopping.set()
        self.join()

    def reconnect(self) -> None:
        """Makes the next lookup one of a new client; called from the thread itself only."""
        self._close()
        self._remote = RemoteTable(
            self._urls, TABLE, timeout=self._timeout, retries=0, insecure_generator=True
        )

    def renew(self) -> None:
        """Makes the next lookup one of a new client; called from any thread."""
        self._renewing.set()

    def _lookup(self) -> None:
        if self._remote is None or self._renewing.is_set():
            self._renewing.clear()
            self.reconnect()
        assert self._remote is not None
        count = self._random.integers(1, _MOST_ROWS + 1)
        indices = self._random.integers(self._model.rows, size=count)
        first = self._model.done
        begun = time.monotonic()
        rows = self._remote.lookup(indices)
        now = time.monotonic()
        seen = self._model.judge(indices, rows, first)
        self.lookups += 1
        self.wrong += not seen.right
        self.behind = max(self.behind, seen.behind)
        self.outage = max(self.outage, now - self._last)
        self.latencies.append(now - begun)
        self._last = now

    def _close(self) -> None:
        if self._remote is not None:
            self._remote.close()
            self._remote = None
