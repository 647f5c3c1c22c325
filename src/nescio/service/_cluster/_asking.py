"""One batch at the shards: a replica of each is asked, and another one in place of one that fails.

While an answer is not there, its replica is pinged. Pings have a thread of their own in the actor:
a replica that computes answers them, for as long as its answer takes. A replica that is silent is
left out, and its part of the batch goes to another one with the same keys, at the same party.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import ResourceError
from ...pir._sharded import Part
from ._connect import Actor, Ray
from ._messages import Partial
from ._replica import Replica

LOOK_SECONDS = 0.25
"""The time after which answers that are not there are looked after, again and again."""

_SILENT_SECONDS = 1.0  # without a pong, of a shard with another replica
_ALONE_SECONDS = 5.0  # of a shard without: nobody else can answer
_ANSWER_SECONDS = 600.0  # with pongs: a mapped shard may read a disk for minutes
_RETURN_SECONDS = 3.0  # until a replica of several is back
_TRIES = 3  # of each replica: it may have been left out while its process had no time to reply
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Versions:
    """The id of a table's current version, and the test for ids of versions that it has had."""

    current: bytes
    is_known: Callable[[bytes], bool]

    def outdate(self, partial: Partial) -> bool:
        """Tests if a partial answer is of a shard that lacks changes."""
        older = partial.ident != self.current and self.is_known(partial.ident)
        return partial.fresh or older


@dataclass(slots=True, eq=False)
class _Call:
    """A call to a replica, and a ping that it has not answered."""

    replica: Replica
    answer: Actor
    begun: float
    ping: Actor = None
    pinged: float = 0.0


class Batch:
    """A batch of queries, `whole`, which is a list or a reference to one in the object store."""

    def __init__(
        self,
        ray: Ray,
        shards: Sequence[Sequence[Replica]],
        parts: Sequence[Part],
        versions: Versions,
        whole: object,
    ) -> None:
        self._ray = ray
        self._shards, self._parts = shards, parts
        self._versions = versions
        self._whole = whole
        self._tries: Counter[Replica] = Counter()
        self._calls: dict[int, _Call] = {}
        self._found: dict[int, Partial] = {}

    def answer(self) -> list[Partial]:
        """Returns the partial answers in the order of shards.

        Raises ResourceError if a shard has no replica that answers.
        """
        for number in range(len(self._shards)):
            self._ask(number)
        while self._calls:
            refs = [call.answer for call in self._calls.values()]
            ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=LOOK_SECONDS)
            done = set(ready)
            for number, call in list(self._calls.items()):
                why = self._take(number, call) if call.answer in done else self._look_after(call)
                if why is not None:
                    call.replica.fail(why)
                    self._ask(number)
        return [self._found[number] for number in range(len(self._shards))]

    def _ask(self, number: int) -> None:
        """Asks a replica of a shard, of those that answer."""
        self._calls.pop(number, None)
        replica = self._choose(number)
        self._tries[replica] += 1
        replica.asked += 1
        answer = replica.actor.answer.remote(self._whole)
        self._calls[number] = _Call(replica, answer, time.monotonic())

    def _choose(self, number: int) -> Replica:
        """Chooses the replica of a shard that this batch, and then all, have asked least.

        One that was left out and is back may be asked again, a few times.
        """
        own = self._shards[number]
        end = time.monotonic() + (_RETURN_SECONDS if len(own) > 1 else 0.0)
        while not (good := [one for one in own if self._may_ask(one)]):
            if time.monotonic() >= end:
                raise ResourceError(f"shard {number} has no replica that answers: try again later")
            time.sleep(_PAUSE_SECONDS)
        return min(good, key=lambda one: (self._tries[one], one.asked))

    def _may_ask(self, replica: Replica) -> bool:
        return replica.up and self._tries[replica] < _TRIES

    def _take(self, number: int, call: _Call) -> BaseException | str | None:
        """Notes an answer; returns why it cannot be used."""
        try:
            partial: Partial = self._ray.get(call.answer)
        except Exception as error:  # of the actor, of the node, of the shard's own code
            return error
        if partial.part != self._parts[number]:
            return f"found part {partial.part}, expected {self._parts[number]}"
        if partial.errors and self._versions.outdate(partial):
            return "it lacks changes"
        self._found[number] = partial
        del self._calls[number]
        return None

    def _look_after(self, call: _Call) -> str | None:
        """Pings a replica that has not answered; returns why it is not waited for any more."""
        now = time.monotonic()
        if now - call.begun > _ANSWER_SECONDS:
            return f"no answer in {_ANSWER_SECONDS:.0f} s"
        if call.ping is None:
            call.ping, call.pinged = call.replica.ping(), now
        elif self._ray.wait([call.ping], timeout=0)[0]:
            return self._pong(call)
        elif now - call.pinged > self._patience(call.replica):
            return f"it has not answered a ping for {now - call.pinged:.1f} s"
        return None

    def _pong(self, call: _Call) -> str | None:
        """Takes the result of a ping, which may be an error."""
        try:
            self._ray.get(call.ping)
        except Exception as error:
            return str(error)
        call.ping = None
        return None

    def _patience(self, replica: Replica) -> float:
        own = next(own for own in self._shards if replica in own)
        others = any(self._may_ask(one) for one in own if one is not replica)
        return _SILENT_SECONDS if others else _ALONE_SECONDS
