"""A replica of a shard, as fronts and the head of its table see it."""

import logging
from dataclasses import dataclass

from ._connect import Actor
from ._failure import cause_of

_LOG = logging.getLogger(__name__)

PING_GROUP = "ping"
"""The threads of an actor that answer pings, also while all others compute."""


@dataclass(slots=True, eq=False)
class Replica:
    """An actor that holds a shard.

    One that has `ended` is not started again by Ray; its head starts it, from `next_start` on.
    """

    name: str
    actor: Actor
    up: bool = True
    asked: int = 0
    ended: bool = False
    next_start: float = 0.0

    def ping(self) -> Actor:
        """Asks for the id of the version that the shard has; returns the reference of the reply."""
        return self.actor.ping.options(concurrency_group=PING_GROUP).remote()

    def fail(self, why: BaseException | str) -> None:
        """Leaves the replica out from now on."""
        if self.up:
            text = why if isinstance(why, str) else cause_of(why)
            _LOG.warning("replica %s is left out: %s", self.name, text)
        self.up = False
