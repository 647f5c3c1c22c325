"""The number of replicas by the queue time of a table's fronts: the policy, without clocks or Ray.

The queue time is the mean seconds from the arrival of a request at a front to the begin of its
batch, over all fronts. It is what more replicas shorten: a batch waits because those before it keep
all replicas of a shard busy.
"""

import threading
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

WINDOW_SECONDS = 5.0
"""Reports of fronts count for so long: a front that ended is forgotten after it."""


class Report(NamedTuple):
    """The report of a front each second: requests whose batch began, the sum of their seconds.

    `up` has the names of the replicas that it asks.
    """

    requests: int
    seconds: float
    up: Collection[str] = ()


class Queues:
    """The reports of all fronts of the last seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: deque[tuple[float, str, Report]] = deque()

    def add(self, now: float, front: str, report: Report) -> None:
        """Notes the report of a front."""
        with self._lock:
            self._reports.append((now, front, report))

    def seconds(self, now: float) -> float | None:
        """Returns the mean queue time; 0 if nothing was asked, None if no front has reported."""
        found = self._recent(now)
        if not found:
            return None
        requests = sum(report.requests for _, report in found)
        return sum(report.seconds for _, report in found) / max(1, requests)

    def all_ask(self, now: float, replica: str) -> bool:
        """Tests if all fronts that have reported ask a replica, by their latest reports."""
        return all(replica in report.up for report in dict(self._recent(now)).values())

    def _recent(self, now: float) -> list[tuple[str, Report]]:
        with self._lock:
            while self._reports and self._reports[0][0] < now - WINDOW_SECONDS:
                self._reports.popleft()
            return [(front, report) for _, front, report in self._reports]


@dataclass(frozen=True, slots=True)
class Policy:
    """When a replica of each shard is added or ended, one at a time.

    One is added if the queue time has been above `target` for `up_seconds`; one is ended if it has
    been below `low` of it for `down_seconds`. After either, nothing happens for `rest_seconds`.
    """

    least: int
    most: int
    target: float
    low: float = 0.25
    up_seconds: float = 5.0
    down_seconds: float = 300.0
    rest_seconds: float = 30.0


@dataclass(slots=True)
class Autoscaler:
    """Applies a policy to the queue times that `wanted` gets, about one a second."""

    policy: Policy
    _above: float | None = field(default=None, init=False)
    _below: float | None = field(default=None, init=False)
    _rests_until: float = field(default=float("-inf"), init=False)

    def wanted(self, now: float, queue: float | None, replicas: int, starting: int) -> int:
        """Returns the replicas of each shard that there should be; those that there are, mostly.

        `queue` is the queue time, `starting` the number of replicas that have not been up yet:
        while there are any, none is added. More replicas than `most`, which a person has set, stay
        while the queue time is not low.
        """
        policy = self.policy
        above = queue is not None and queue > policy.target
        below = queue is not None and queue < policy.low * policy.target
        self._above = (now if self._above is None else self._above) if above else None
        self._below = (now if self._below is None else self._below) if below else None
        if now < self._rests_until:
            return replicas
        if self._above is not None and now - self._above >= policy.up_seconds:
            if starting or replicas >= policy.most:
                return replicas
            return self._changed(now, replicas + 1)
        if self._below is not None and now - self._below >= policy.down_seconds:
            if replicas <= policy.least:
                return replicas
            return self._changed(now, replicas - 1)
        return replicas

    def _changed(self, now: float, replicas: int) -> int:
        self._above = self._below = None
        self._rests_until = now + self.policy.rest_seconds
        return replicas
