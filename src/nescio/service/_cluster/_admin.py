"""Commands to the heads of tables on a cluster: their state, their replicas, their end."""

import time
from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError, NescioError, ResourceError
from ._connect import HEAD, Actor, Ray, head_name, import_ray
from ._messages import CheckpointState, ReplicaStatus

_CALL_SECONDS = 60.0
_PAUSE_SECONDS = 0.1


def tables() -> list[str]:
    """Lists the tables that have a head on the cluster."""
    ray = import_ray()
    found: Sequence[str] = ray.util.list_named_actors()
    return sorted(name.removesuffix(HEAD) for name in found if name.endswith(HEAD))


def status(table: str) -> list[ReplicaStatus]:
    """Describes all replicas of a table's shards."""
    found: list[list[ReplicaStatus]] = call(table, "status")
    return [one for own in found for one in own]


def scale(table: str, replicas: int) -> None:
    """Starts or ends replicas, until each shard has as many. Raises the head's refusal."""
    _accepted(call(table, "scale", replicas))


def checkpoint(table: str, seconds: float = 3600.0) -> CheckpointState:
    """Writes the rows of a table to files now, in place of its journal; waits until that is done.

    Raises ResourceError if it fails, or takes longer.
    """
    before = checkpoint_state(table)
    _accepted(call(table, "begin_checkpoint"))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        state = checkpoint_state(table)
        if state.taken > before.taken:
            return state
        if not state.active:
            raise ResourceError(
                f"no checkpoint of table {table!r} was taken: the log of its head says why"
            )
        time.sleep(_PAUSE_SECONDS)
    raise ResourceError(f"the checkpoint of table {table!r} takes longer than {seconds:.0f} s")


def checkpoint_state(table: str) -> CheckpointState:
    """Describes the journal of a table, and its checkpoints."""
    state: CheckpointState = _accepted(call(table, "checkpoint_state"))
    return state


def drain(table: str) -> None:
    """Ends all actors of a table. Its data folder stays."""
    call(table, "drain")
    ray = import_ray()
    ray.kill(head_of(ray, table))


def head_of(ray: Ray, table: str) -> Actor:
    """Finds the head of a table. Raises ArgumentError if the cluster has no such table."""
    try:
        return ray.get_actor(head_name(table))
    except ValueError as error:
        known = ", ".join(tables()) or "none"
        raise ArgumentError(
            f"table {table!r} is not on the cluster, found {known}: check the name, and --party"
        ) from error


def _accepted(found: Any) -> Any:  # noqa: ANN401 - any method's
    """Returns what a head has returned. Raises it if it is an error."""
    if isinstance(found, NescioError):
        raise found
    return found


def call(table: str, method: str, *arguments: object) -> Any:  # noqa: ANN401 - any method's
    """Calls a method of the head of a table. Raises ResourceError if it does not answer."""
    ray = import_ray()
    head = head_of(ray, table)
    try:
        return ray.get(getattr(head, method).remote(*arguments), timeout=_CALL_SECONDS)
    except Exception as error:
        raise ResourceError(f"the head of table {table!r} does not answer: {error}") from error
