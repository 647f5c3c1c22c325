"""Commands to the heads of tables on a cluster: their state, their replicas, their end."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import ArgumentError, ResourceError
from ._connect import Actor, Ray, import_ray
from ._messages import ShardInfo

_CALL_SECONDS = 60.0
_HEAD = "/head"


class ReplicaStatus(NamedTuple):
    """A replica: its shard, its name, whether it answers, and what it says of itself."""

    shard: int
    name: str
    up: bool
    info: ShardInfo | None


def tables() -> list[str]:
    """Lists the tables that have a head on the cluster."""
    ray = import_ray()
    found: Sequence[str] = ray.util.list_named_actors()
    return sorted(name.removesuffix(_HEAD) for name in found if name.endswith(_HEAD))


def status(table: str) -> list[ReplicaStatus]:
    """Describes all replicas of a table's shards."""
    found = _call(table, "status")
    return [ReplicaStatus(shard, *one) for shard, own in enumerate(found) for one in own]


def scale(table: str, replicas: int) -> None:
    """Starts or ends replicas, until each shard has as many."""
    _call(table, "scale", replicas)


def drain(table: str) -> None:
    """Ends all actors of a table. Its data folder stays."""
    _call(table, "drain")
    ray = import_ray()
    ray.kill(_head(ray, table))


def _head(ray: Ray, table: str) -> Actor:
    try:
        return ray.get_actor(table + _HEAD)
    except ValueError as error:
        known = ", ".join(tables()) or "none"
        raise ArgumentError(
            f"table {table!r} is not on the cluster, found {known}: check the name, and --party"
        ) from error


def _call(table: str, method: str, *arguments: object) -> Any:  # noqa: ANN401 - any method's
    ray = import_ray()
    head = _head(ray, table)
    try:
        return ray.get(getattr(head, method).remote(*arguments), timeout=_CALL_SECONDS)
    except Exception as error:
        raise ResourceError(f"the head of table {table!r} does not answer: {error}") from error
