"""One party of a private layer, in its own process: the offline phase, then the online phase."""

import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import NamedTuple, Protocol

import numpy as np

from ... import _core
from ..._arrays import ByteArray
from ...mpc._activation import ClientLookups, ServerLookups
from ...mpc._maps import Ring
from ...mpc._offline import OfflineClient, OfflineServer
from ...mpc._online import ClientMaterial, ServerMaterial, infer, serve
from ...mpc._store import Role
from ...mpc._tables import TableMaker, Tables
from ...net import Channel
from ..parties import connect, meet, parse_link, reporting
from .cases import SHIFT, Inputs, Product, Task
from .floors import floors

__all__ = ["Phase", "Report", "run_party"]


class Phase(NamedTuple):
    """One party's part of a phase; `rounds` counts how often it waited for the other one."""

    seconds: float
    cpu_seconds: float
    sent_bytes: int
    rounds: int


class Report(NamedTuple):
    """Both phases of an inference, and the party's numbers, which are checked."""

    offline: Phase
    online: Phase
    numbers: Ring


class _Party(Protocol):
    """A party of a layer. `online` returns the numbers that the check needs."""

    def offline(self) -> None:
        """Prepares one inference."""

    def online(self) -> Ring:
        """Runs it."""


def run_party(role: str, pipe: Connection, port: int | None, task: Task) -> None:
    """Runs inferences, the first one cold, and sends a report after each.

    The server first sends the port that it chose, and last the floors of this machine. After each
    report a party waits for a message, while the results are checked. An error is sent instead.
    """
    with reporting(pipe):
        with connect(pipe, port, parse_link(task.link)) as channel:
            party = _PARTIES[task.layer != "relu", role](channel, task)
            for _ in range(1 + task.repeat):
                offline, _ = _timed(channel, party.offline)
                online, numbers = _timed(channel, party.online)
                pipe.send(Report(offline, online, numbers))
                pipe.recv()
        if role == "server":
            pipe.send(floors(task))


def _timed(channel: Channel, work: Callable[[], Ring | None]) -> tuple[Phase, Ring]:
    meet(channel)
    before, processor, begin = channel.counts, time.process_time(), time.perf_counter()
    numbers = work()
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    counts = channel.counts.since(before)
    phase = Phase(seconds, processor, counts.sent_bytes, counts.rounds)
    return phase, np.empty(0, np.uint32) if numbers is None else numbers


class _Lookups:
    """The part of both parties of a ReLU."""

    def __init__(self, channel: Channel, task: Task, role: Role) -> None:
        self._channel, self._count = channel, task.elements
        self._activation, self._inputs = task.activation, Inputs.of(task)
        self._pool = _core.ThreadPool(task.threads)
        self._maker = TableMaker(channel, role, threads=task.threads)
        self._tables: Tables

    def _make(self) -> None:
        bits, outputs = self._activation.bits, self._activation.outputs
        self._tables = self._maker.make(self._count, bits, outputs)

    def _receive(self, kind: str, size: int) -> ByteArray:
        return np.frombuffer(self._channel.receive(kind, size), np.uint8)


class _LookupServer(_Lookups):
    def __init__(self, channel: Channel, task: Task) -> None:
        super().__init__(channel, task, "server")
        self._share = self._inputs.values - self._inputs.client
        self._places: ByteArray

    def offline(self) -> None:
        """Makes tables, and receives the client's places."""
        self._make()
        size = _core.lut_message_bytes((self._activation.bits, 0, 0), self._count)
        self._places = self._receive("PLAC", size)

    def online(self) -> Ring:
        """Returns the results plus the client's mask."""
        steps = ServerLookups(self._activation, self._tables, SHIFT, self._places, self._pool)
        self._channel.send("ASKS", steps.turn(self._share))
        return steps.results(self._receive("ANSW", steps.entry_bytes + 4 * self._count))


class _LookupClient(_Lookups):
    def __init__(self, channel: Channel, task: Task) -> None:
        super().__init__(channel, task, "client")
        self._mask: Ring = np.empty(self._count, np.uint32)

    def offline(self) -> None:
        """Makes tables, draws the mask of the results, and sends the places."""
        _core.fill_random(self._mask.view(np.uint8))
        self._make()
        self._channel.send("PLAC", self._steps().places)

    def online(self) -> Ring:
        """Returns the mask."""
        steps = self._steps()
        asked = self._receive("ASKS", steps.place_bytes + steps.entry_bytes)
        self._channel.send("ANSW", steps.turn(asked, self._mask))
        return self._mask

    def _steps(self) -> ClientLookups:
        share = self._inputs.client
        return ClientLookups(self._activation, self._tables, SHIFT, share, self._pool)


class _ProductServer:
    def __init__(self, channel: Channel, task: Task) -> None:
        self._channel, self._network = channel, Product(task).network
        self._pool = _core.ThreadPool(task.threads)
        maker = TableMaker(channel, "server", threads=task.threads)
        self._offline = OfflineServer(channel, self._network, maker, self._pool)
        self._material: ServerMaterial

    def offline(self) -> None:
        """Answers the client's encryptions."""
        self._material = self._offline.make()

    def online(self) -> Ring:
        """Multiplies the masked input; the client has the numbers."""
        serve(self._channel, self._network, self._material, self._pool)
        return np.empty(0, np.uint32)


class _ProductClient:
    def __init__(self, channel: Channel, task: Task) -> None:
        own = Product(task)
        self._channel, self._inputs = channel, own.inputs
        self._network = own.network.public
        self._pool = _core.ThreadPool(task.threads)
        maker = TableMaker(channel, "client", threads=task.threads)
        self._offline = OfflineClient(channel, self._network, maker, self._pool)
        self._material: ClientMaterial

    def offline(self) -> None:
        """Encrypts a mask of the input."""
        self._material = self._offline.make()

    def online(self) -> Ring:
        """Returns the outputs."""
        found = infer(self._channel, self._network, self._material, self._inputs, self._pool)
        return found.reshape(-1)


_PARTIES: dict[tuple[bool, str], Callable[[Channel, Task], _Party]] = {
    (False, "server"): _LookupServer,
    (False, "client"): _LookupClient,
    (True, "server"): _ProductServer,
    (True, "client"): _ProductClient,
}
