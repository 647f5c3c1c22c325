"""Budgets of keys a second for each client: token buckets."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from .. import _quotas as refuse

_MAX_CLIENTS = 1 << 16


class Budgets:
    """Counts the keys that clients may still spend.

    A bucket holds the keys of one second. A request is admitted if the bucket is not empty, and
    takes its keys, also those that the bucket lacks. So a client's rate is its budget on the long
    run, and exceeds it by at most a second's keys and one request. The budgets of the latest 65,536
    clients are remembered.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def check(self, client: Hashable, rate: float) -> None:
        """Raises RefusedError if a client has nothing left."""
        level, _ = self._now(client, rate)
        if level <= 0:
            raise refuse.over_budget(rate, -level / rate)

    def spend(self, client: Hashable, rate: float, keys: int) -> None:
        """Takes keys from a client's budget. Raises RefusedError if it has nothing left."""
        self.check(client, rate)
        level, now = self._now(client, rate)
        self._levels[client] = level - keys, now
        self._levels.move_to_end(client)
        if len(self._levels) > _MAX_CLIENTS:
            self._levels.popitem(last=False)

    def _now(self, client: Hashable, rate: float) -> tuple[float, float]:
        now = self._clock()
        level, then = self._levels.get(client, (rate, now))
        return min(rate, level + (now - then) * rate), now
