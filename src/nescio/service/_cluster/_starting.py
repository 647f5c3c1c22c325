"""The start of a table's shards: the room that they need, the time that it may take, how far it is.

Ray lets an actor wait for ever that no node has the room for.
"""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ResourceError
from ._connect import Actor, Ray
from ._failure import cause_of, is_at_start
from ._placement import Room
from ._replica import PING_GROUP
from ._replicas import wait_for
from ._shard import ShardOptions, ShardSource

_LEAST_SECONDS = 600.0
_BYTES_PER_SECOND = 20e6  # of a disk that all shards read at the same time, and check
_FREE_SECONDS = 10.0  # until Ray has freed what a table had that was drained
_SAY_SECONDS = 10.0
_PING_SECONDS = 1.0
_BACK_SECONDS = 60.0  # for a head that has just been killed
_PAUSE_SECONDS = 0.1


def start_seconds(sources: Sequence[ShardSource]) -> float:
    """Returns the time in which all shards of a table read their rows, in seconds."""
    return _LEAST_SECONDS + sum(one.part.bytes(one.params) for one in sources) / _BYTES_PER_SECOND


def running(ray: Ray, name: str) -> dict[str, int]:
    """Returns the shard of each replica of a table that runs, by the replica's name."""
    pattern = re.compile(re.escape(name) + r"/shard-(\d+)-replica-\d+")
    found = map(pattern.fullmatch, ray.util.list_named_actors())
    return {match[0]: int(match[1]) for match in found if match}


def check_room(ray: Ray, name: str, sources: Sequence[ShardSource], own: ShardOptions) -> None:
    """Raises ResourceError if the cluster has no room for a replica of each shard of a table."""
    present = set(running(ray, name).values())
    rooms = [own.room(source) for shard, source in enumerate(sources) if shard not in present]
    if not rooms:
        return
    nodes = [Room.of(node["Resources"]) for node in ray.nodes() if node["Alive"]]
    needed = Room(max(one.memory for one in rooms), own.cards)
    if not any(node.holds([needed]) for node in nodes):
        largest = Room(
            max((one.memory for one in nodes), default=0),
            max((one.cards for one in nodes), default=0),
        )
        raise ResourceError(
            f"table {name!r}: found nodes of at most {_text(largest)}, expected {_text(needed)} "
            "for a shard: cut the table into more shards, or add a larger node"
        )
    whole = Room(sum(one.memory for one in rooms), sum(one.cards for one in rooms))
    if not wait_for(lambda: Room.of(ray.available_resources()).holds(rooms), _FREE_SECONDS):
        raise ResourceError(
            f"table {name!r}: found {_text(Room.of(ray.available_resources()))} that are free on "
            f"{len(nodes)} nodes, expected {_text(whole)} for {len(rooms)} shards: add nodes, or "
            "drain other tables"
        )


def wait_opened(
    ray: Ray,
    name: str,
    call: Callable[[], Actor],
    sources: Sequence[ShardSource],
    say: Callable[[str], None],
) -> Any:  # noqa: ANN401 - any method's
    """Calls a method of a head that reads its shards, also while Ray starts the head again.

    Says how far the shards are. Raises ResourceError if the head ends, or takes too long.
    """
    back = time.monotonic() + _BACK_SECONDS
    while True:
        ref = call()
        _wait(ray, name, ref, sources, say)
        try:
            return ray.get(ref)
        except Exception as error:
            restarts = isinstance(error, ray.exceptions.RayActorError) and not is_at_start(error)
            if not restarts or time.monotonic() > back:
                why = cause_of(error)
                raise ResourceError(f"table {name!r}: its head did not start: {why}") from error
        time.sleep(_PAUSE_SECONDS)


def _wait(
    ray: Ray, name: str, ref: Actor, sources: Sequence[ShardSource], say: Callable[[str], None]
) -> None:
    """Waits until a head has answered. Raises ResourceError if it takes too long."""
    begin, limit = time.monotonic(), 2 * start_seconds(sources)
    while not ray.wait([ref], timeout=_SAY_SECONDS)[0]:
        seconds = time.monotonic() - begin
        if seconds > limit:
            raise ResourceError(
                f"table {name!r}: it has not been opened in {limit:.0f} s: see `nescio cluster "
                "status` and Ray's logs"
            )
        read = _loaded(ray, name)
        say(f"table {name}: {read} of {len(sources)} shards have their rows, {seconds:.0f} s")


def _loaded(ray: Ray, name: str) -> int:
    """Counts the shards with a replica that answers."""
    asked = {}
    for replica, shard in running(ray, name).items():
        try:
            ping = ray.get_actor(replica).ping.options(concurrency_group=PING_GROUP)
        except ValueError:  # it has ended
            continue
        asked[ping.remote()] = shard
    if not asked:
        return 0
    ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_PING_SECONDS)
    return len({asked[ref] for ref in ready if _has_answered(ray, ref)})


def _has_answered(ray: Ray, ref: Actor) -> bool:
    try:
        ray.get(ref)
    except Exception:
        return False
    return True


def _text(room: Room) -> str:
    cards = f" and {room.cards:g} GPUs" if room.cards else ""
    return f"{room.memory:,.0f} bytes of memory{cards}"
