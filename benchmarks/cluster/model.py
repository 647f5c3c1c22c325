"""A cluster of one party: its shards, fronts, links and stragglers, and the loads by formula."""

from dataclasses import dataclass, field

from nescio.errors import ArgumentError

from .constants import Constants
from .costs import Node, Work

__all__ = ["Cluster", "Loads", "Stragglers"]


@dataclass(frozen=True)
class Stragglers:
    """Calls and machines that are slower than others.

    A call takes `factor` times as long with `probability`, and each call has a lognormal factor of
    median 1 whose logarithm has the standard deviation `sigma`. A share `slow_nodes` of the
    machines takes `slow_factor` times as long for every call.
    """

    probability: float = 0.0
    factor: float = 10.0
    sigma: float = 0.0
    slow_nodes: float = 0.0
    slow_factor: float = 2.0

    @property
    def mean(self) -> float:
        """The mean factor of a call, machines that are not slow."""
        return float(
            (1 + self.probability * (self.factor - 1)) * 2.718281828 ** (self.sigma**2 / 2)
        )


@dataclass(frozen=True)
class Loads:
    """The shares of what a part can do with full batches that the offered lookups need."""

    shards: float
    loop: float
    front_out: float
    front_in: float

    @property
    def front(self) -> float:
        """The largest load of a front."""
        return max(self.loop, self.front_out, self.front_in)

    @property
    def highest(self) -> float:
        """The largest of all."""
        return max(self.shards, self.front)


@dataclass(frozen=True)
class Cluster:
    """A group of fronts and the replicas of every shard that they share.

    A front is one process: an event loop, a batcher, and `link_share` of the link of its machine.
    It has at most `in_flight` batches of at most `batch_keys` lookups under way. With a `tree` of
    that width, machines forward keys to others and add their partial answers; 0 is no tree.
    `threads` of a shard of 0 is every core of the node. Shards that share the cores of a machine
    take `turns` times as long for a call as one that has them.
    """

    work: Work
    node: Node
    constants: Constants = field(default_factory=Constants)
    replicas: int = 1
    fronts: int = 1
    threads: int = 0
    window: float = 0.002
    batch_keys: int = 256
    in_flight: int = 2
    rows_per_request: int = 1
    tree: int = 0
    link_share: float = 1.0
    turns: float = 1.0
    stragglers: Stragglers = field(default_factory=Stragglers)

    def __post_init__(self) -> None:
        if self.tree and self.work.params.is_cut:
            raise ArgumentError("tree: found a table in bins, whose answers are not added")
        if self.tree == 1 or self.rows_per_request > self.batch_keys:
            raise ArgumentError(
                f"found a tree of width {self.tree} and {self.rows_per_request} rows a request, "
                f"expected a width of 0 or at least 2, and at most {self.batch_keys} rows"
            )
        if min(self.replicas, self.fronts, self.in_flight, self.rows_per_request) < 1:
            raise ArgumentError("replicas, fronts, batches and rows: expected at least one of each")

    @property
    def levels(self) -> tuple[int, ...]:
        """The machines of each level of the tree, the shards first: the front calls the last."""
        sizes = [self.work.shards]
        while self.tree and sizes[-1] > self.tree:
            sizes.append(-(-sizes[-1] // self.tree))
        return tuple(sizes)

    @property
    def batch_requests(self) -> int:
        """The requests of a full batch."""
        return max(1, self.batch_keys // self.rows_per_request)

    def seconds(self, keys: float) -> float:
        """Computes the time of a shard for a batch, stragglers aside."""
        own = self.work.seconds(self.constants, self.node, keys, self.threads)
        return (own + self.shard_seconds(keys)) * self.turns

    def shard_seconds(self, keys: float) -> float:
        """Computes the time in which a shard's process reads a call's keys and returns answers."""
        size = keys * (self.work.key_bytes + self.work.answer_bytes)
        return self.constants.shard_cpu_seconds + size * self.constants.shard_byte_seconds

    def send_seconds(self, keys: float, share: float = 1.0) -> float:
        """Computes the time between two calls of a caller with that share of a link."""
        return self._moved(keys * self.work.key_bytes, share, 0.0)

    def add_seconds(self, keys: float, share: float = 1.0) -> float:
        """Computes the time for one partial answer: its bytes arrive while others are added."""
        return self._moved(keys * self.work.answer_bytes, share, self.constants.add_seconds)

    def _moved(self, size: float, share: float, add_seconds: float) -> float:
        """Computes the time of a front for bytes: its link's, or its thread's if that is longer."""
        costs = self.constants
        wire = size / (costs.link_bytes_per_second * share)
        own = size * (costs.call_byte_seconds + add_seconds)
        return max(wire, own) + costs.call_cpu_seconds / 2

    @property
    def hop(self) -> float:
        """The latency of a call, one way."""
        return self.constants.link_seconds + self.constants.call_seconds / 2

    def loads(self, lookups_per_second: float) -> Loads:
        """Computes the loads at a rate of lookups of this group."""
        keys, calls = float(self.batch_keys), self.levels[-1]
        batches = lookups_per_second / keys
        slow = 1 + self.stragglers.slow_nodes * (self.stragglers.slow_factor - 1)
        own = batches / self.fronts
        return Loads(
            shards=batches * self.seconds(keys) * self.stragglers.mean * slow / self.replicas,
            loop=lookups_per_second
            / self.rows_per_request
            / self.fronts
            * self.constants.http_seconds,
            front_out=own * calls * self.send_seconds(keys, self.link_share),
            front_in=own * calls * self.add_seconds(keys, self.link_share),
        )

    def front_bytes(self) -> tuple[float, float]:
        """Returns the bytes of a lookup that a front sends to shards, and receives from them."""
        calls = self.levels[-1]
        return calls * self.work.key_bytes, calls * self.work.answer_bytes
