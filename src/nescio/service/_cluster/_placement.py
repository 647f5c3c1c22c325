"""The nodes on which the replicas of a table's shards start.

Replicas of one shard have different nodes, if the cluster has as many with the memory for them; of
these nodes, the one with the fewest replicas of the table is taken. The node is a wish, not a
condition: Ray starts a replica on another one if that node has ended, or has no memory left.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._connect import Ray
from ._replica import Replica

_SPREAD_SECONDS = 5.0  # from one replica that moves to another node to the next


@dataclass(frozen=True, slots=True)
class Room:
    """Memory in bytes, and GPUs: those of a node, or those that a replica needs."""

    memory: float
    cards: float = 0

    @classmethod
    def of(cls, resources: Mapping[str, float]) -> "Room":
        """Returns the room of Ray's resources."""
        return cls(resources.get("memory", 0), resources.get("GPU", 0))

    def holds(self, needs: Sequence["Room"]) -> bool:
        """Tests if all of these fit."""
        memory, cards = sum(one.memory for one in needs), sum(one.cards for one in needs)
        return memory <= self.memory and cards <= self.cards


@dataclass(frozen=True, slots=True)
class Placed:
    """A replica on a node."""

    shard: int
    node: str
    room: Room


def choose_node(
    nodes: Mapping[str, Room], placed: Sequence[Placed], shard: int, room: Room
) -> str | None:
    """Chooses the node of a new replica of a shard; None if it fits none."""

    def replicas(node: str) -> tuple[int, int, str]:
        own = [one for one in placed if one.node == node]
        return sum(one.shard == shard for one in own), len(own), node

    fitting = [
        node
        for node, free in nodes.items()
        if free.holds([room, *(one.room for one in placed if one.node == node)])
    ]
    return min(fitting, key=replicas, default=None)


def crowded(nodes: Mapping[str, Room], placed: Mapping[str, Placed]) -> str | None:
    """Finds a replica that shares its node with another one of its shard, and need not."""
    for name, one in placed.items():
        others = [other for key, other in placed.items() if key != name]
        if any(other.shard == one.shard and other.node == one.node for other in others):
            better = choose_node(nodes, others, one.shard, one.room)
            own = {other.node for other in others if other.shard == one.shard}
            if better is not None and better not in own:
                return name
    return None


class Placement:
    """The nodes of all replicas of a table, by their names."""

    def __init__(self, ray: Ray) -> None:
        self._ray = ray
        self._needs: dict[str, tuple[int, Room]] = {}
        self._placed: dict[str, Placed] = {}
        self._next_spread = 0.0

    def strategy(self, name: str, shard: int, room: Room) -> Any:  # noqa: ANN401 - of Ray
        """Chooses the node of a replica that starts; returns Ray's strategy for it."""
        from ray.util.scheduling_strategies import (  # noqa: PLC0415 - in an actor
            NodeAffinitySchedulingStrategy,
        )

        self.forget(name)
        self._needs[name] = shard, room
        node = choose_node(self._nodes(), list(self._placed.values()), shard, room)
        if node is None:
            return "SPREAD"
        self.note(name, node)
        return NodeAffinitySchedulingStrategy(node, soft=True, _spill_on_unavailable=True)

    def note(self, name: str, node: str) -> None:
        """Notes the node on which a replica is."""
        self._placed[name] = Placed(self._needs[name][0], node, self._needs[name][1])

    def is_placed(self, name: str) -> bool:
        """Tests if a replica is on a node, or starts on one that has had the memory for it."""
        return name in self._placed

    def forget(self, name: str) -> None:
        """Forgets a replica that has ended."""
        self._placed.pop(name, None)

    def spread(self, replicas: Sequence[Sequence[Replica]]) -> None:
        """Ends a replica that shares its node with another one of its shard, and need not.

        Its head starts it on another node; the shard goes on with the other replica. Ray starts
        replicas on any node after theirs has ended.
        """
        if time.monotonic() < self._next_spread:
            return
        self._next_spread = time.monotonic() + _SPREAD_SECONDS
        if all(one.up for own in replicas for one in own):
            name = crowded(self._nodes(), self._placed)
            for replica in [one for own in replicas for one in own if one.name == name]:
                replica.fail("it shares its node with another one, and moves")
                self._ray.kill(replica.actor)

    def _nodes(self) -> dict[str, Room]:
        """Returns the nodes that are alive, and all that they have."""
        return {
            one["NodeID"]: Room.of(one["Resources"]) for one in self._ray.nodes() if one["Alive"]
        }
