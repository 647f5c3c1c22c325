"""One party of the OT benchmark, in its own process."""

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from ..._arrays import Array, ByteArray
from ..._device import parse_device_list
from ...net import Channel, Link
from ...ot import Receiver, Sender
from ...ot._party import FamilyName
from ..parties import connect, meet, reporting


@dataclass(frozen=True, slots=True)
class Task:
    """The work of a party: extend by `n` OTs once cold and then `warm` times."""

    n: int
    output: str  # "cot", "rot"
    family: FamilyName
    parameters: str | None
    malicious: bool
    threads: int
    device: str
    link: Link | None
    warm: int


def run_party(role: str, pipe: Connection, port: int | None, task: Task, memory: str) -> None:
    """Extends by OTs, writes them into shared memory, and sends a report after each call.

    The sender first sends the port that it chose. After each report the party waits for a message,
    while the OTs are checked. An error is sent instead of a report.
    """
    shared = SharedMemory(memory)
    try:
        with reporting(pipe), connect(pipe, port, task.link) as channel:
            party: Sender | Receiver = _party(role, task, channel)
            for _ in range(1 + task.warm):
                report = _timed(party, task, channel, whole(shared))
                pipe.send(report)
                pipe.recv()
    finally:
        shared.close()


def whole(memory: SharedMemory) -> ByteArray:
    """Returns all bytes of a shared memory."""
    assert memory.buf is not None  # because it is open
    return np.frombuffer(memory.buf, np.uint8)


def _party(role: str, task: Task, channel: Channel) -> Sender | Receiver:
    options: dict[str, Any] = {
        "family": task.family,
        "parameters": task.parameters,
        "malicious": task.malicious,
        "threads": task.threads,
        "devices": [str(place) for place in parse_device_list(task.device)] or None,
    }
    return Sender(channel, **options) if role == "sender" else Receiver(channel, **options)


def _timed(party: Sender | Receiver, task: Task, channel: Channel, shared: Array) -> dict[str, Any]:
    meet(channel)
    before, steps = channel.counts, party.seconds
    begin = time.perf_counter()
    drawn = party.extend_random(task.n) if task.output == "rot" else party.extend(task.n)
    seconds = time.perf_counter() - begin
    _publish(party, drawn, shared)
    counts = channel.counts.since(before)
    return {
        "seconds": seconds,
        "sent_bytes": counts.sent_bytes,
        "sent_by_kind": dict(counts.sent_by_kind),
        "rounds": counts.rounds,
        "steps": {k: s - steps.get(k, 0.0) for k, s in party.seconds.items()},
    }


def _publish(party: Sender | Receiver, drawn: Array | tuple[Array, ...], shared: Array) -> None:
    """Writes delta (of the sender) and all outputs into shared memory, where they are checked."""
    parts = list(drawn) if isinstance(drawn, tuple) else [drawn]
    if isinstance(party, Sender):
        parts.insert(0, party.delta)
    at = 0
    for part in parts:
        host = part if isinstance(part, np.ndarray) else part.to_host()
        raw = host.reshape(-1).view(np.uint8)
        shared[at : at + len(raw)] = raw
        at += len(raw)
