"""Shards, links and trees of the simulation, as arrays: one call for all shards of a batch."""

import numpy as np
import numpy.typing as npt

from .model import Cluster

__all__ = ["Link", "Shards", "gather", "scatter", "served"]

Times = npt.NDArray[np.float64]

_COUNTED = 16  # calls under way of a replica, at most


def served(arrivals: Times, seconds: Times | float, free: float) -> Times:
    """Returns when a server that is free at `free` ends each of the works, in their order."""
    work = np.broadcast_to(np.asarray(seconds, np.float64), arrivals.shape)
    done = np.cumsum(work)
    begins = np.maximum(np.maximum.accumulate(arrivals - (done - work)), free)
    return begins + done


class Shards:
    """The replicas of every shard. Each answers its calls in the order in which they were sent.

    A front calls the replica with the fewest calls under way, of any front. More than 16 count as
    16.
    """

    def __init__(self, cluster: Cluster, random: np.random.Generator) -> None:
        self._slow, self._random = cluster.stragglers, random
        shape = (cluster.work.shards, cluster.replicas)
        self._rows = np.arange(shape[0])
        self._free = np.zeros(shape)
        self.busy = np.zeros(shape)
        slow = random.random(shape) < self._slow.slow_nodes
        self._factor = np.where(slow, self._slow.slow_factor, 1.0)
        under_way = cluster.fronts * cluster.in_flight if cluster.replicas > 1 else 1
        self._ends = np.zeros((*shape, min(_COUNTED, under_way)))
        self._calls = np.zeros(shape, np.int64)

    def call(self, now: float, arrivals: Times, seconds: float) -> Times:
        """Calls one replica of every shard; returns when each has answered."""
        chosen = self._choose(now)
        at = self._rows, chosen
        work = seconds * self._factor[at] * self._stragglers()
        ends = np.maximum(arrivals, self._free[at]) + work
        self._free[at] = ends
        self.busy[at] += work
        self._ends[(*at, self._calls[at] % self._ends.shape[2])] = ends
        self._calls[at] += 1
        return ends

    def _choose(self, now: float) -> npt.NDArray[np.int64]:
        if self._free.shape[1] == 1:
            return np.zeros(len(self._rows), np.int64)
        waiting = np.count_nonzero(self._ends > now, axis=2)
        ties = self._random.random(waiting.shape)
        chosen: npt.NDArray[np.int64] = (waiting + ties / 2).argmin(axis=1)
        return chosen

    def _stragglers(self) -> Times:
        count = len(self._rows)
        factors = np.ones(count)
        if self._slow.sigma:
            factors = self._random.lognormal(0.0, self._slow.sigma, count)
        if self._slow.probability:
            slow = self._random.random(count) < self._slow.probability
            factors = np.where(slow, factors * self._slow.factor, factors)
        return factors


class Link:
    """Answers on their way into a front: they are received and added in the order of arrival."""

    def __init__(self) -> None:
        self._arrivals: Times = np.empty(0)
        self._seconds: Times = np.empty(0)
        self._free = 0.0
        self.busy = 0.0

    def expect(self, arrivals: Times, seconds: float) -> None:
        """Notes the answers of a batch, each of which takes some seconds."""
        self._arrivals = np.append(self._arrivals, arrivals)
        self._seconds = np.append(self._seconds, np.full(len(arrivals), seconds))
        self.busy += seconds * len(arrivals)

    def receive(self, until: float) -> float:
        """Receives what has arrived by a time; returns when the last of it has been added."""
        now = self._arrivals <= until
        order = np.argsort(self._arrivals[now], kind="stable")
        if len(order):
            arrivals, seconds = self._arrivals[now][order], self._seconds[now][order]
            self._free = float(served(arrivals, seconds, self._free)[-1])
            self._arrivals, self._seconds = self._arrivals[~now], self._seconds[~now]
        return self._free


def scatter(cluster: Cluster, start: float, keys: float) -> tuple[Times, float]:
    """Sends keys down to the shards; returns their arrivals, and when the front has sent all."""
    *below, top = cluster.levels
    sent = start + cluster.send_seconds(keys, cluster.link_share) * np.arange(1, top + 1)
    arrivals: Times = np.asarray(sent + cluster.hop, np.float64)
    for size in reversed(below):
        places = np.arange(size)
        delays = cluster.send_seconds(keys) * (places % cluster.tree + 1) + cluster.hop
        arrivals = arrivals[places // cluster.tree] + delays
    return arrivals, float(sent[-1])


def gather(cluster: Cluster, ends: Times, keys: float) -> Times:
    """Adds partial answers up the tree; returns when the front gets each of the last ones."""
    arrivals = ends + cluster.hop
    for size in cluster.levels[1:]:
        arrivals = _added(arrivals, size, cluster.tree, cluster.add_seconds(keys)) + cluster.hop
    return arrivals


def _added(arrivals: Times, groups: int, width: int, seconds: float) -> Times:
    """Returns when the adder of each group has the last sum."""
    padded = np.full(groups * width, -np.inf)
    padded[: len(arrivals)] = arrivals
    ordered = np.sort(padded.reshape(groups, width), axis=1)
    left = np.arange(width, 0, -1, dtype=np.float64) * seconds
    sums: Times = (ordered + left).max(axis=1)
    return sums
