"""The smallest cluster for a rate of lookups: equal groups, of which one is simulated."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .costs import NODES, Node
from .events import Outcome, open_loop
from .model import Cluster

__all__ = ["MAX_LOAD", "Size", "fits", "size"]

MAX_LOAD = 0.7
"""Of a part: what the offered lookups need of its capacity with full batches."""

FRONT = NODES["cpu16"]
"""The machine of fronts."""

_FRONTS_A_MACHINE = (1, 2, 4, 8, FRONT.cores)
_MAX_REPLICAS = 4  # of a group
_LOOKUPS = 60_000
_BATCHES_A_FRONT = 20
_BATCHES_A_REPLICA = 2  # under way: one is answered, and another waits
MOST_FRONTS = 200
"""Of a group that is simulated."""


@dataclass(frozen=True)
class Size:
    """A cluster of equal groups that share nothing: each answers an equal part of all lookups.

    A larger group would share its replicas among more fronts, and wait less: one group's latency is
    an upper bound.
    """

    cluster: Cluster
    groups: int
    fronts_a_machine: int
    lookups_per_second: float

    @property
    def group_rate(self) -> float:
        """The lookups a second of one group."""
        return self.lookups_per_second / self.groups

    @property
    def replicas(self) -> int:
        """The replicas of every shard."""
        return self.groups * self.cluster.replicas

    @property
    def fronts(self) -> int:
        """The front processes."""
        return self.groups * self.cluster.fronts

    @property
    def shard_machines(self) -> int:
        """The machines that hold rows."""
        return self.replicas * self.cluster.work.shards

    @property
    def machines(self) -> int:
        """All machines of one party."""
        return self.shard_machines + math.ceil(self.fronts / self.fronts_a_machine)

    @property
    def is_simulated(self) -> bool:
        """False if a group has so many fronts that a run would not reach a steady state."""
        return self.cluster.fronts <= MOST_FRONTS

    def run(self, *, seed: int = 1, max_batches: int = 1500) -> Outcome:
        """Simulates one group."""
        cluster = self.cluster
        batches = max(max_batches, _BATCHES_A_FRONT * cluster.fronts)
        lookups = max(_LOOKUPS, batches * cluster.rows_per_request)
        return open_loop(cluster, self.group_rate, lookups, seed=seed, max_batches=batches)


def fits(cluster: Cluster) -> bool:
    """Checks that a shard is in the memory of a node, a tenth of which is for other things."""
    node: Node = cluster.node
    return cluster.work.table_bytes <= 0.9 * node.memory_bytes


def size(cluster: Cluster, lookups_per_second: float, extra: float = 1.0) -> Size:
    """Returns the cluster with the fewest machines whose loads are below MAX_LOAD.

    `extra` times as many replicas make answers faster. The replicas and fronts of `cluster` do not
    count.
    """
    one = replace(cluster, replicas=1, fronts=1)
    replicas = math.ceil(one.loads(lookups_per_second).shards / MAX_LOAD * extra)
    groups = math.ceil(replicas / _MAX_REPLICAS)
    own = math.ceil(replicas / groups)
    choices = _fronts(replace(one, replicas=own), lookups_per_second, groups)
    return min(choices, key=lambda choice: choice.machines)


def _fronts(cluster: Cluster, lookups_per_second: float, groups: int) -> Iterator[Size]:
    """Yields a size for each number of fronts that share the link of a machine."""
    for shared in _FRONTS_A_MACHINE:
        own = replace(cluster, link_share=1 / shared)
        load = own.loads(lookups_per_second / groups).front
        under_way = math.ceil(_BATCHES_A_REPLICA * cluster.replicas / cluster.in_flight)
        fronts = max(math.ceil(load / MAX_LOAD), under_way)
        yield Size(replace(own, fronts=fronts), groups, shared, lookups_per_second)
