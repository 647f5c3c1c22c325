"""The replicas of all shards as a front asks them: one of each shard for every batch.

A replica that fails, is behind or does not answer in time is left out until it answers a ping with
the current version. Its part of the batch goes to another replica of the shard, with the same keys,
at the same party. A batch is answered only by partial answers that have each part of the table once
and are of the version that its queries name.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import ResourceError
from ...pir._sharded import Part
from ._connect import Actor, Ray
from ._messages import Partial

_LOG = logging.getLogger(__name__)
_ANSWER_SECONDS = 20.0
_PING_SECONDS = 1.0
_PAUSE_SECONDS = 0.1
_INLINE_BYTES = 64 << 10  # larger batches are stored once, and read by all shards of a node


@dataclass(slots=True, eq=False)
class Replica:
    """An actor that holds a shard."""

    name: str
    actor: Actor
    up: bool = True
    asked: int = 0

    def fail(self, why: BaseException | str) -> None:
        """Leaves the replica out from now on."""
        if self.up:
            _LOG.warning("replica %s is left out: %s", self.name, why)
        self.up = False


class Replicas:
    """All replicas of a table's shards."""

    def __init__(self, ray: Ray, parts: Sequence[Part]) -> None:
        self._ray = ray
        self.parts = parts
        self.shards: Sequence[Sequence[Replica]] = [[] for _ in parts]
        self._current = b""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="nescio-replicas", daemon=True)
        self._thread.start()

    def update(self, names: Sequence[Sequence[str]], current: bytes) -> None:
        """Notes the names of all replicas, and the id of the current version.

        A replica that is new here answers once it answers a ping with that id.
        """
        known = {one.name: one for own in self.shards for one in own}
        self._current = current
        self.shards = [[known.get(name) or self._new(name) for name in own] for own in names]

    def _new(self, name: str) -> Replica:
        return Replica(name, self._ray.get_actor(name), up=False)

    def stop(self) -> None:
        """Ends the thread that looks for replicas that are back, before Ray ends."""
        self._stopped.set()
        self._thread.join()

    @property
    def missing(self) -> list[int]:
        """The shards without a replica that is up."""
        return [i for i, own in enumerate(self.shards) if not any(one.up for one in own)]

    def answer(self, queries: Sequence[bytes]) -> list[Partial]:
        """Asks one replica of each shard; returns the partial answers in the order of shards.

        Raises ResourceError if a shard has no replica that answers.
        """
        whole: object = queries
        if len(self.shards) > 1 and sum(map(len, queries)) > _INLINE_BYTES:
            whole = self._ray.put(queries)
        found: dict[int, Partial] = {}
        tried: set[Replica] = set()
        while len(found) < len(self.shards):
            asked = {
                number: self._choose(number, tried)
                for number in range(len(self.shards))
                if number not in found
            }
            self._collect(asked, whole, found)
            tried.update(asked.values())
        return [found[number] for number in range(len(self.shards))]

    def _choose(self, number: int, tried: set[Replica]) -> Replica:
        """Chooses the replica of a shard that has been asked least."""
        good = [one for one in self.shards[number] if one.up and one not in tried]
        if not good:
            raise ResourceError(f"shard {number} has no replica that answers: try again later")
        return min(good, key=lambda one: one.asked)

    def _collect(self, asked: dict[int, Replica], whole: object, found: dict[int, Partial]) -> None:
        """Asks replicas at the same time; notes answers, and replicas that fail."""
        refs = {}
        for number, replica in asked.items():
            replica.asked += 1
            refs[number] = replica.actor.answer.remote(whole)
        ready, _ = self._ray.wait(
            list(refs.values()), num_returns=len(refs), timeout=_ANSWER_SECONDS
        )
        done = set(ready)
        for number, ref in refs.items():
            if ref not in done:
                asked[number].fail(f"no answer in {_ANSWER_SECONDS:.0f} s")
                continue
            try:
                partial: Partial = self._ray.get(ref)
            except Exception as error:  # of the actor, of the node, of the shard's own code
                asked[number].fail(error)
                continue
            if partial.part != self.parts[number]:
                asked[number].fail(f"found part {partial.part}, expected {self.parts[number]}")
                continue
            found[number] = partial

    def _watch(self) -> None:
        """Lets replicas answer again that are back, and have the current version."""
        while not self._stopped.wait(_PAUSE_SECONDS):
            for replica in [one for own in self.shards for one in own if not one.up]:
                try:
                    ident = self._ray.get(replica.actor.ping.remote(), timeout=_PING_SECONDS)
                except Exception:  # noqa: S112 - the actor is not back yet
                    continue
                if ident == self._current:
                    replica.up = True
                    _LOG.info("replica %s answers", replica.name)
            if self._stopped.is_set():
                return


def wait_for(work: Callable[[], bool], seconds: float) -> bool:
    """Waits until `work` returns True; returns False after some seconds."""
    end = time.monotonic() + seconds
    while not work():
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
