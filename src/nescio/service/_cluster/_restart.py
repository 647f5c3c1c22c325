"""The rolling restart of a table: its head, then its replicas one at a time, while it is served.

The processes that are started load the release that is installed then. The head is first: it
starts the replicas, and knows what those of its own release can do. Fronts are processes of
`nescio serve`, which their operator restarts one after the other.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from ...errors import ArgumentError, NescioError, ResourceError
from ._admin import call, head_of, status
from ._connect import Ray, import_ray
from ._found import HeadArguments
from ._head import start_head
from ._messages import ReplicaStatus
from ._starting import start_seconds, wait_opened

_GONE_SECONDS = 60.0
_PAUSE_SECONDS = 0.2


def restart(table: str, *, force: bool = False, say: Callable[[str], None] = print) -> None:
    """Restarts the actors of a table, one at a time; returns when the last one is back.

    With `force` also if a shard has a single replica, whose lookups are refused meanwhile. Raises
    ArgumentError without it, and ResourceError if an actor does not come back: those that have not
    been restarted then go on.
    """
    before = status(table)
    _check(table, before, force)
    ray = import_ray()
    arguments = HeadArguments(*call(table, "arguments"))
    seconds = start_seconds(arguments.shards)
    _restart_head(ray, arguments, seconds, say)
    say(f"the head of {table} is back")
    for one in sorted(status(table), key=lambda one: one.name.rpartition("-")[2]):
        renewed = call(table, "renew", one.name)
        if isinstance(renewed, NescioError):  # it was ended meanwhile, by `scale` or short waits
            say(f"{one.name}: {renewed}")
            continue
        _wait(lambda name=renewed: _is_back(table, name), f"replica {renewed}", seconds)  # type: ignore[misc]
        say(f"{renewed} is in the place of {one.name}")


def _check(table: str, found: list[ReplicaStatus], force: bool) -> None:
    down = [one.name for one in found if not one.up and one.needed]
    if down and not force:
        raise ResourceError(
            f"replica {down[0]} is not up: wait until `nescio cluster status` shows all of them, "
            "or give --force"
        )
    shards = [one.shard for one in found if one.up]
    single = [shard for shard in set(shards) if shards.count(shard) < 2]
    if single and not force:
        raise ArgumentError(
            f"shard {single[0]} of table {table!r} has a single replica: lookups are refused while "
            "it restarts; `nescio cluster scale --replicas 2` first, or give --force"
        )


def _restart_head(
    ray: Ray, arguments: HeadArguments, seconds: float, say: Callable[[str], None]
) -> None:
    table = arguments.name
    count = len(status(table))
    ray.kill(head_of(ray, table))
    _wait(lambda: not _has_head(ray, table), "the end of the head", _GONE_SECONDS)
    head = start_head(ray, *arguments)
    state = wait_opened(ray, table, head.state.remote, arguments.shards, say)
    if isinstance(state, NescioError):
        raise state
    _wait(lambda: _all_up(table, count), "the replicas at the new head", seconds)


def _has_head(ray: Ray, table: str) -> bool:
    try:
        head_of(ray, table)
    except ArgumentError:
        return False
    return True


def _all_up(table: str, count: int) -> bool:
    found = status(table)
    return len(found) >= count and all(one.up for one in found if one.needed)


def _is_back(table: str, name: str) -> bool:
    """Tests if a replica is up, and all fronts ask it."""
    if not any(one.up for one in status(table) if one.name == name):
        return False
    return bool(call(table, "is_asked", name))


def _wait(done: Callable[[], bool], what: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        with suppress(ResourceError):  # the head is busy for the moment
            if done():
                return
        if time.monotonic() > end:
            raise ResourceError(f"waited {seconds:.0f} s for {what}: see `nescio cluster status`")
        time.sleep(_PAUSE_SECONDS)
