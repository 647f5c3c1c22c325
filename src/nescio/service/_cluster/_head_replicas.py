"""The replicas of a table's shards as its head has them: started, brought up, watched, ended.

A replica is `up` while it has the current version and answers pings. One that is started waits
until a node has the memory for it; it is not named to fronts before it has been up once. A head
that starts again finds the replicas that run by their names.
"""

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ResourceError
from ...pir._sharded import HeadTable
from ._connect import Actor, Ray
from ._journal import HeadJournal
from ._messages import PROTOCOL, ReplicaStatus, ShardInfo
from ._placement import Placement
from ._replica import Replica
from ._shard import ShardOptions, ShardSource, start_shard

_LOG = logging.getLogger(__name__)
_CALL_SECONDS = 30.0
_PING_SECONDS = 1.0
_PAUSE_SECONDS = 0.1
_START_PAUSE_SECONDS = 2.0
_RESTART_PAUSE_SECONDS = 30.0  # a file of another build is read in vain each time
_STEP_CHANGES = 256  # that a replica makes at once, while others are made


@dataclass(slots=True, eq=False, kw_only=True)
class HeadReplica(Replica):
    """An actor that holds a shard; `seen` if it has been up since it was started.

    `thawed` tells that it no longer keeps a version for a checkpoint of an earlier head; `current`
    is the table's version when the ping was sent.
    """

    number: int
    seen: bool = False
    thawed: bool = False
    ping_ref: Actor = None
    pinged: float = 0.0
    current: bytes = b""
    next_restart: float = 0.0


class HeadReplicas:
    """All replicas of a table's shards, at least some of each. `changed` is told of new names."""

    def __init__(  # noqa: PLR0917 - of one caller
        self,
        ray: Ray,
        name: str,
        shards: Sequence[ShardSource],
        options: ShardOptions,
        least: int,
        changed: Callable[[], None],
    ) -> None:
        self.ray = ray
        self._name = name
        self.sources = shards
        self._options = options
        self._changed = changed
        self._least = least
        self._placement = Placement(ray)
        self._stopped = False
        self.table: HeadTable
        self.journal: HeadJournal
        running = self._running()
        self._next = [max(own, default=-1) + 1 for own in running]
        count = max(least, *map(len, running))
        self.shards = [
            [self._start(number, one, seen=True) for one in own]
            for number, own in enumerate(running)
        ]
        self.scale(count)

    def _running(self) -> list[list[int]]:
        """Lists the numbers of the replicas of each shard that run, from before this head."""
        pattern = re.compile(re.escape(self._name) + r"/shard-(\d+)-replica-(\d+)")
        found: list[list[int]] = [[] for _ in self.sources]
        for name in self.ray.util.list_named_actors():
            match = pattern.fullmatch(name)
            if match and int(match[1]) < len(found):
                found[int(match[1])].append(int(match[2]))
        return [sorted(own) for own in found]

    def _start(self, shard: int, number: int, *, seen: bool = False) -> HeadReplica:
        name = f"{self._name}/shard-{shard}-replica-{number}"
        return HeadReplica(name, self._actor(name, shard), up=False, number=number, seen=seen)

    def _actor(self, name: str, shard: int) -> Actor:
        source = self.sources[shard]
        return start_shard(self.ray, name, shard, source, self._options, self._placement)

    # Numbers of replicas

    @property
    def all(self) -> list[HeadReplica]:
        """All replicas."""
        return [one for own in self.shards for one in own]

    @property
    def count(self) -> int:
        """The replicas of the shard that has most."""
        return max(map(len, self.shards))

    @property
    def starting(self) -> int:
        """The replicas that have not been up yet."""
        return sum(not one.seen for one in self.all)

    def names(self) -> list[list[str]]:
        """Returns the names of the replicas of each shard that have been up."""
        return [[one.name for one in own if one.seen] for own in self.shards]

    def scale(self, count: int) -> list[HeadReplica]:
        """Starts replicas until each shard has as many; returns those to end, of the others.

        Those that have never been up are ended first. The caller holds `changing`.
        """
        ended: list[HeadReplica] = []
        made: list[list[HeadReplica]] = []
        for own in self.shards:
            kept = sorted(own, key=lambda one: (not one.seen, one.number))
            ended += kept[count:]
            made.append(kept[:count])
        for size in range(count):  # one of each shard first: memory may not hold all
            for shard, own in enumerate(made):
                if len(own) <= size:
                    own.append(self._new(shard))
        self.shards = made
        return ended

    def _new(self, shard: int) -> HeadReplica:
        """Starts a replica under a name that none had before: fronts hold actors by their names."""
        number = self._next[shard]
        self._next[shard] += 1
        return self._start(shard, number)

    def take_out(self, name: str) -> tuple[int, HeadReplica]:
        """Takes out a replica with a name, which fronts then leave; returns its shard too.

        Raises ResourceError if no replica has the name. The caller holds `changing`.
        """
        for shard, own in enumerate(self.shards):
            for one in own:
                if one.name == name:
                    self.shards[shard] = [other for other in own if other is not one]
                    return shard, one
        raise ResourceError(f"the table has no replica {name}")

    def add(self, shard: int) -> HeadReplica:
        """Starts another replica of a shard. The caller holds `changing`."""
        made = self._new(shard)
        self.shards[shard] = [made, *self.shards[shard]]
        return made

    def end(self) -> None:
        """Ends all replicas, for good."""
        self._stopped = True
        self.kill(self.all)

    def kill(self, replicas: Sequence[HeadReplica]) -> None:
        """Ends replicas."""
        for one in replicas:
            self.ray.kill(one.actor)
            self._placement.forget(one.name)

    def one_each(self) -> list[HeadReplica]:
        """Returns a replica of each shard that is up. Raises ResourceError if one has none."""
        found = [next((one for one in own if one.up), None) for own in self.shards]
        if None in found:
            raise no_replica(found.index(None))
        return [one for one in found if one is not None]

    # Replicas that start, and come back

    def restart(self, replica: HeadReplica) -> None:
        """Lets Ray start a replica again, from its file."""
        self.ray.kill(replica.actor, no_restart=False)

    def pulse(self) -> None:
        """Pings all replicas; leaves out those that do not answer, and brings up others."""
        replicas, now = self.all, time.monotonic()
        for one in replicas:
            if one.ping_ref is None:
                one.current = self.table.params.id
                one.ping_ref, one.pinged = one.ping(), now
        refs = [one.ping_ref for one in replicas]
        ready, _ = self.ray.wait(refs, num_returns=len(refs), timeout=_PAUSE_SECONDS)
        done = set(ready)
        for one in replicas:
            if one.ping_ref in done:
                ref, one.ping_ref = one.ping_ref, None
                self._heard(one, ref)
            elif time.monotonic() - one.pinged > _PING_SECONDS:
                one.fail("it does not answer")
        self.start_ended()
        self._placement.spread(self.shards)

    def start_ended(self) -> None:
        """Starts replicas that Ray does not start again."""
        for shard, own in enumerate(self.shards):
            for one in own:
                if one.ended:
                    self._start_again(one, shard)

    def _start_again(self, replica: HeadReplica, shard: int) -> None:
        """Starts a replica that Ray does not start again, at most once in some seconds."""
        if self._stopped or time.monotonic() < replica.next_start:
            return
        replica.next_start = time.monotonic() + _START_PAUSE_SECONDS
        try:
            replica.actor, replica.ended = self._actor(replica.name, shard), False
        except Exception as error:
            _LOG.warning("replica %s does not start: %s", replica.name, error)

    def _heard(self, replica: HeadReplica, ref: Actor) -> None:
        try:
            ident: bytes = self.ray.get(ref)
        except Exception as error:
            died = isinstance(error, self.ray.exceptions.ActorDiedError)
            replica.ended = died and not replica.up  # what was up may be started by Ray
            replica.fail(error)
            return
        if not replica.up:
            self._bring_up(replica, ident)
            return
        with self.table.try_changing() as free:
            current = self.table.params.id  # a change since the ping says nothing of the replica
            if free and ident != current == replica.current:
                replica.fail("it has the rows of another version")

    def _bring_up(self, replica: HeadReplica, ident: bytes) -> None:
        """Sends a replica the changes that it lacks; it is up then. Leaves it out if that fails."""
        try:
            if not self._speaks(replica):
                return
            node = self.ray.get(replica.actor.node.remote(), timeout=_CALL_SECONDS)
            self._placement.note(replica.name, node)
            while len(updates := self.journal.since(ident) or ()) > _STEP_CHANGES:
                ident = self._make(replica, updates[:_STEP_CHANGES])
            with self.table.changing():
                if self.journal.since(ident) is None:
                    if not self._identify(replica):
                        return
                    ident = self.journal.base.params.id
                if missing := self.journal.since(ident):
                    self._make(replica, missing)
                replica.up = True
        except Exception as error:
            _LOG.debug("replica %s is not back: %s", replica.name, error)
            return
        if not replica.seen:
            replica.seen = True
            self._changed()

    def _make(self, replica: HeadReplica, updates: Sequence[Any]) -> bytes:
        made: bytes = self.ray.get(replica.actor.make.remote(updates), timeout=_CALL_SECONDS)
        return made

    def _speaks(self, replica: HeadReplica) -> bool:
        """Tests if a replica is of a release that this one understands."""
        found = self.ray.get(replica.actor.protocol.remote(), timeout=_CALL_SECONDS)
        if found != PROTOCOL:
            _LOG.error(
                "replica %s has protocol %s, expected %d: drain the table, and start it with one "
                "release",
                replica.name,
                found,
                PROTOCOL,
            )
            return False
        if not replica.thawed:
            self.ray.get(replica.actor.thaw.remote(), timeout=_CALL_SECONDS)
            replica.thawed = True
        return True

    def _identify(self, replica: HeadReplica) -> bool:
        """Gives a fresh replica the base's parameters; lets another one start again.

        Returns False if the replica has to start again first, or has other rows.
        """
        info: ShardInfo = self.ray.get(replica.actor.info.remote(), timeout=_CALL_SECONDS)
        base = self.journal.base
        if not info.fresh:
            if time.monotonic() > replica.next_restart:
                replica.next_restart = time.monotonic() + _RESTART_PAUSE_SECONDS
                _LOG.warning(
                    "replica %s has rows of another version: it is restarted", replica.name
                )
                self.restart(replica)
            return False
        if not np.array_equal(info.tops, base.tops[info.part.first : info.part.end]):
            why = "it does not reach the data folder" if base.files else "its file has changed"
            _LOG.error("replica %s has other rows than the data folder: %s", replica.name, why)
            return False
        self.ray.get(replica.actor.identify.remote(base.params), timeout=_CALL_SECONDS)
        return True

    # State

    def status(self) -> list[list[ReplicaStatus]]:
        """Describes each replica of each shard."""
        refs = {one: one.actor.info.remote() for one in self.all}
        ready, _ = self.ray.wait(list(refs.values()), num_returns=len(refs), timeout=_PING_SECONDS)
        done = set(ready)
        return [
            [
                self._described(shard, one, refs[one] if refs[one] in done else None)
                for one in own
                if one in refs
            ]
            for shard, own in enumerate(self.shards)
        ]

    def _described(self, shard: int, replica: HeadReplica, ref: Actor) -> ReplicaStatus:
        info = None
        if ref is not None:
            try:
                info = self.ray.get(ref)
            except Exception as error:
                _LOG.debug("replica %s: %s", replica.name, error)
        state = "up" if replica.up and info is not None else "down" if replica.seen else "starting"
        if state == "starting" and not self._placement.is_placed(replica.name):
            state = "waiting"
        own = self.shards[shard]
        needed = replica in own[: self._least]
        return ReplicaStatus(shard, replica.name, state, info, needed)


def no_replica(shard: int) -> ResourceError:
    """Makes the error for a shard without a replica that is up."""
    return ResourceError(f"shard {shard} has no replica that answers: try again later")
