"""The discrete events of a cluster: a batch starts, its last answer arrives, it is done."""

import heapq
import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .machines import Link, Shards, Times, gather, scatter, served
from .model import Cluster

__all__ = ["Outcome", "closed_loop", "open_loop"]

_PAUSE = 0.5  # of a batch's time, for which the next one waits for requests that come back
_WORTH = 2 / 3  # of the requests that wait already, that must come back
_LAST, _DONE = 0, 1  # events of a batch: its last answer is at the front; all answers are added


@dataclass(frozen=True)
class Outcome:
    """A run: when each request was sent and answered, by front, and the work of the parts.

    Rates and shares are over the time from the first request to the last answer.
    """

    cluster: Cluster
    sent: Times
    answered: Times
    batches: int
    busy: float
    link_busy: float

    @property
    def seconds(self) -> float:
        """The duration of the run."""
        return float(self.answered.max() - self.sent.min())

    @property
    def latencies(self) -> Times:
        """The times of the requests that were sent after the first fifth of the run."""
        late = self.sent >= self.sent.min() + 0.2 * (self.sent.max() - self.sent.min())
        latencies: Times = (self.answered - self.sent)[late]
        return latencies

    def quantile(self, share: float) -> float:
        """Returns a quantile of the latencies in seconds."""
        return float(np.quantile(self.latencies, share))

    @property
    def lookups_per_second(self) -> float:
        """The lookups that were answered in a second."""
        return len(self.sent) * self.cluster.rows_per_request / self.seconds

    @property
    def keys_per_batch(self) -> float:
        """The mean lookups of a batch."""
        return len(self.sent) * self.cluster.rows_per_request / self.batches

    @property
    def front_bytes_per_second(self) -> tuple[float, float]:
        """The bytes that one front sends to shards, and receives from them, in a second."""
        out, back = self.cluster.front_bytes()
        rate = self.lookups_per_second / self.cluster.fronts
        return out * rate, back * rate

    @property
    def shard_bytes_per_second(self) -> tuple[float, float]:
        """The bytes of keys and of answers of one replica of a shard in a second."""
        rate = self.lookups_per_second / self.cluster.replicas
        return self.cluster.work.key_bytes * rate, self.cluster.work.answer_bytes * rate


class _Batch(NamedTuple):
    """The requests of a batch: a range of those of its front."""

    first: int
    end: int
    start: float


@dataclass(eq=False)
class _Front:
    """A front: its requests in the order in which its event loop has read them, and its links."""

    sent: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)
    next: int = 0
    taken_at: float = -math.inf
    under_way: int = 0
    plan: int = 0
    loop_free: float = 0.0
    up_free: float = 0.0
    link: Link = field(default_factory=Link)
    pause_end: float = -math.inf
    answered: int = 0

    def arrive(self, sent: Times, http_seconds: float) -> None:
        """Reads requests, each of which takes the event loop some time."""
        ready = served(sent, http_seconds, self.loop_free)
        self.loop_free = float(ready[-1])
        self.sent.extend(sent.tolist())
        self.ready.extend(ready.tolist())
        self.done.extend([math.nan] * len(sent))


class _Run:
    """The events of one run. `clients` of 0 is an open loop."""

    def __init__(self, cluster: Cluster, random: np.random.Generator, requests: int) -> None:
        self.cluster, self.left = cluster, requests
        self.shards = Shards(cluster, random)
        self.fronts = [_Front() for _ in range(cluster.fronts)]
        self.events: list[tuple[float, int, int, int, _Batch | None]] = []
        self.count = self.batches = 0

    def run(self, *, closed: bool, max_batches: float = math.inf) -> Outcome:
        """Handles events until none is left."""
        for number in range(len(self.fronts)):
            self._plan(number, 0.0)
        while self.events:
            now, _, number, plan, batch = heapq.heappop(self.events)
            front = self.fronts[number]
            if batch is None:
                if plan == front.plan and self.batches < max_batches:
                    self._start(number, now)
            elif plan == _LAST:
                self._push(max(now, front.link.receive(now)), number, _DONE, batch)
            else:
                self._finish(number, now, batch, closed=closed)
        return self._outcome()

    def _push(self, time: float, number: int, plan: int, batch: _Batch | None) -> None:
        self.count += 1
        heapq.heappush(self.events, (time, self.count, number, plan, batch))

    def _plan(self, number: int, now: float) -> None:
        """Plans the next batch of a front, in place of an earlier plan."""
        front, limit = self.fronts[number], self.cluster.batch_requests
        front.plan += 1
        if front.under_way >= self.cluster.in_flight or front.next == len(front.ready):
            return
        last = front.next + limit - 1
        if front.under_way:  # a further one begins only if it is full
            if last < len(front.ready):
                self._push(max(front.ready[last], now), number, front.plan, None)
            return
        first = front.ready[front.next]
        begin = first if first <= front.taken_at else first + self.cluster.window
        begin = max(begin, self._pause(front, now))
        if last < len(front.ready):
            begin = min(begin, front.ready[last])
        self._push(max(begin, first, now), number, front.plan, None)

    def _pause(self, front: _Front, now: float) -> float:
        """Returns until when the batch waits for clients that got their answers, as the service."""
        returned = len(front.ready) - front.next
        before = returned - front.answered
        if now >= front.pause_end or front.answered <= _WORTH * before:
            return -math.inf
        return min(front.pause_end, front.ready[-1])

    def _start(self, number: int, now: float) -> None:
        front, cluster = self.fronts[number], self.cluster
        waiting = bisect_right(front.ready, now) - front.next
        size = min(waiting, cluster.batch_requests)
        keys = float(size * cluster.rows_per_request)
        arrivals, front.up_free = scatter(cluster, max(now, front.up_free), keys)
        ends = self.shards.call(now, arrivals, cluster.seconds(keys))
        answers = gather(cluster, ends, keys)
        front.link.expect(answers, cluster.add_seconds(keys, cluster.link_share))
        batch = _Batch(front.next, front.next + size, now)
        front.next, front.taken_at = batch.end, now
        front.under_way += 1
        self.batches += 1
        self._push(float(answers.max()), number, _LAST, batch)
        self._plan(number, now)

    def _finish(self, number: int, now: float, batch: _Batch, *, closed: bool) -> None:
        front, size = self.fronts[number], batch.end - batch.first
        front.done[batch.first : batch.end] = [now] * size
        front.under_way -= 1
        again = min(size, self.left) if closed else 0
        if again:
            self.left -= again
            costs = self.cluster.constants
            sent: Times = np.asarray(now + costs.client_seconds * np.arange(again), np.float64)
            front.arrive(sent, costs.http_seconds)
            front.answered, front.pause_end = again, now + _PAUSE * (now - batch.start)
        self._plan(number, now)

    def _outcome(self) -> Outcome:
        sent = np.concatenate([np.array(front.sent[: front.next]) for front in self.fronts])
        done = np.concatenate([np.array(front.done[: front.next]) for front in self.fronts])
        span = float(done.max() - sent.min())
        return Outcome(
            self.cluster,
            sent,
            done,
            self.batches,
            float(self.shards.busy.mean()) / span,
            max(front.link.busy for front in self.fronts) / span,
        )


def open_loop(
    cluster: Cluster,
    lookups_per_second: float,
    lookups: int,
    *,
    seed: int = 1,
    max_batches: float = math.inf,
) -> Outcome:
    """Simulates lookups that arrive at random, however long answers take.

    After `max_batches` no batch starts, and requests that wait then are left out.
    """
    random = np.random.default_rng(seed)
    run = _Run(cluster, random, 0)
    mean = cluster.rows_per_request * cluster.fronts / lookups_per_second
    each = max(1, lookups // cluster.rows_per_request // cluster.fronts)
    for front in run.fronts:
        front.arrive(np.cumsum(random.exponential(mean, each)), cluster.constants.http_seconds)
    return run.run(closed=False, max_batches=max_batches)


def closed_loop(cluster: Cluster, clients: int, requests: int, *, seed: int = 1) -> Outcome:
    """Simulates clients that each send the next request as soon as they have an answer."""
    random = np.random.default_rng(seed)
    run = _Run(cluster, random, max(0, requests - clients))
    for number, front in enumerate(run.fronts):
        own = len(range(number, clients, len(run.fronts)))
        if own:
            front.arrive(np.zeros(own), cluster.constants.http_seconds)
    return run.run(closed=True)
