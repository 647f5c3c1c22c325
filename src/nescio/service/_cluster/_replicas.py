"""The replicas of all shards as a front asks them: one of each shard for every batch.

A replica that fails, is silent or lacks changes is left out until it answers a ping with the
current version: see _asking.py. A batch is answered only by partial answers that have each part of
the table once and are of the version that its queries name.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...pir._sharded import Part
from ._asking import Batch, Versions
from ._connect import Ray
from ._messages import Partial
from ._replica import Replica

_LOG = logging.getLogger(__name__)
_PING_SECONDS = 1.0
_PAUSE_SECONDS = 0.1
_INLINE_BYTES = 64 << 10  # larger batches are stored once, and read by all shards of a node


class Replicas:
    """All replicas of a table's shards."""

    def __init__(self, ray: Ray, parts: Sequence[Part]) -> None:
        self._ray = ray
        self.parts = parts
        self.shards: Sequence[Sequence[Replica]] = [[] for _ in parts]
        self._versions = Versions(b"", lambda _: False)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="nescio-replicas", daemon=True)
        self._thread.start()

    def update(
        self, names: Sequence[Sequence[str]], current: bytes, is_known: Callable[[bytes], bool]
    ) -> None:
        """Notes the names of all replicas, and the ids of the current and of known versions.

        A replica that is new here answers once it answers a ping with the current id.
        """
        before = {one.name: one for own in self.shards for one in own}
        self._versions = Versions(current, is_known)
        self.shards = [[before.get(name) or self._new(name) for name in own] for own in names]

    def _new(self, name: str) -> Replica:
        """Makes a replica, whose actor may not be there: it is looked for again later."""
        replica = Replica(name, None, up=False)
        self._look_up(replica)
        return replica

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
        return Batch(self._ray, self.shards, self.parts, self._versions, whole).answer()

    def _watch(self) -> None:
        """Lets replicas answer again that are back, and have the current version."""
        while not self._stopped.wait(_PAUSE_SECONDS):
            down = [one for own in self.shards for one in own if not one.up]
            for replica in down:
                if replica.actor is None:
                    self._look_up(replica)
            pings = {one: one.ping() for one in down if one.actor is not None}
            end = time.monotonic() + _PING_SECONDS
            for replica, ping in pings.items():
                try:
                    left = max(0.0, end - time.monotonic())
                    ident = self._ray.get(ping, timeout=left)
                except Exception as error:  # the actor is not back yet
                    self._find_again(replica, error)
                    continue
                if ident == self._versions.current:
                    self._bring_up(replica)

    def _bring_up(self, replica: Replica) -> None:
        """Lets a replica answer, as often as those that have answered meanwhile."""
        own = next((own for own in self.shards if replica in own), ())
        others = [one.asked for one in own if one.up]
        replica.asked = max(replica.asked, min(others, default=0))
        replica.up = True
        _LOG.info("replica %s answers", replica.name)

    def _find_again(self, replica: Replica, error: Exception) -> None:
        """Looks for another actor of a replica's name, if the replica's own one has ended."""
        if isinstance(error, self._ray.exceptions.ActorDiedError):
            self._look_up(replica)

    def _look_up(self, replica: Replica) -> None:
        with suppress(ValueError):  # its head has not started one, or has ended it
            replica.actor = self._ray.get_actor(replica.name)


def wait_for(work: Callable[[], bool], seconds: float) -> bool:
    """Waits until `work` returns True; returns False after some seconds."""
    end = time.monotonic() + seconds
    while not work():
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
