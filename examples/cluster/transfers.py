"""Oblivious transfers of one delta, from many sessions: a Ray actor of each party for each.

The sender's program draws delta and gives it to its workers. A session that fails ends all of
them, and the next attempt has another delta. Otherwise a receiver that guesses a bit of delta in
the check of each session, and begins a session again after a wrong guess, learns a bit with every
attempt. For the same reason the first calls of all sessions come one after the other, and nothing
is used before all sessions have ended well (docs/ot.md).
"""

import argparse
import os
import secrets
import time
from pathlib import Path
from typing import Any

import numpy as np

from examples.cluster.nodes import cluster
from examples.cluster.options import Address, connecting, listening
from examples.cluster.preparing import Made
from examples.cluster.totals import Totals, show
from nescio.errors import ChannelError, ConsistencyError, FileError, NescioError
from nescio.net import Channel
from nescio.ot import Receiver, Sender

_BATCH = 1 << 21
_PAUSE_SECONDS = 1.0


class SenderWorker:
    """One session of the sender."""

    def __init__(self, address: Address, threads: int, malicious: bool) -> None:
        self._address = address
        self._options: dict[str, Any] = {"threads": threads, "malicious": malicious}

    def begin(self, delta: Any) -> None:  # noqa: ANN401 - an array, given by Ray
        """Waits for the receiver's worker, and makes the session's first call.

        Delta is the argument of a call and not of the actor, whose arguments Ray stores.
        """
        with self._address.listener() as listener:
            self._channel = listener.accept()
        self._party = Sender(self._channel, delta=delta, **self._options)
        self._party.extend(1)

    def make(self, count: int, path: str | None) -> Made:
        """Makes `count` OTs, and waits until the receiver has its half."""
        begin, done = time.perf_counter(), 0
        rows = None if path is None else private_rows(f"{path}.r.npy.new", (count, 2), "<u8")
        while done < count:
            some = min(_BATCH, count - done)
            found = self._party.extend(some)
            if rows is not None:
                rows[done : done + some] = found
            done += some
        self._channel.receive("KEPT", 0)
        return ended(self._party, self._channel, begin)


class ReceiverWorker:
    """One session of the receiver."""

    def __init__(self, address: Address, threads: int, malicious: bool) -> None:
        self._address = address
        self._options: dict[str, Any] = {"threads": threads, "malicious": malicious}

    def begin(self, _: None) -> None:
        """Connects to the sender's worker, and makes the session's first call."""
        self._channel = self._address.connect()
        self._party = Receiver(self._channel, **self._options)
        self._party.extend(1)

    def make(self, count: int, path: str | None) -> Made:
        """Makes `count` OTs, and tells the sender when this half is complete."""
        begin, done = time.perf_counter(), 0
        if path is not None:
            rows = private_rows(f"{path}.t.npy.new", (count, 2), "<u8")
            bits = private_rows(f"{path}.choices.npy.new", (count,), "u1")
        while done < count:
            some = min(_BATCH, count - done)
            choices, found = self._party.extend(some)
            if path is not None:
                rows[done : done + some] = found
                bits[done : done + some] = choices
            done += some
        self._channel.send("KEPT", b"")
        return ended(self._party, self._channel, begin)


def ended(party: Sender | Receiver, channel: Channel, begin: float) -> Made:
    """Closes a session, which overwrites its secrets, and returns its bytes and time."""
    party.close()
    channel.close()
    counts = channel.counts
    return Made(counts.sent_bytes, counts.received_bytes, time.perf_counter() - begin)


def private_rows(path: str, shape: tuple[int, ...], kind: str) -> Any:  # noqa: ANN401 - a memmap
    """Creates a .npy file that its owner alone can read, and maps it."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return np.lib.format.open_memmap(path, "w+", np.dtype(kind), shape)


def send(arguments: argparse.Namespace) -> int:
    """Runs the sender's sessions."""
    return _run(arguments, SenderWorker, listening(arguments))


def receive(arguments: argparse.Namespace) -> int:
    """Runs the receiver's sessions."""
    return _run(arguments, ReceiverWorker, connecting(arguments))


def _run(arguments: argparse.Namespace, kind: type, addresses: list[Address]) -> int:
    """Makes all OTs; after a failed session, from the start and with another delta."""
    paths = _paths(arguments.out, len(addresses))
    with cluster(arguments.ray, arguments.workers * arguments.threads):
        import ray  # noqa: PLC0415 - after the environment was set

        for attempt in range(arguments.retries + 1):
            delta = new_delta() if kind is SenderWorker else None
            try:
                totals = _attempt(arguments, kind, addresses, delta, paths)
                break
            except ConsistencyError:
                raise  # the other party cheats: no further attempt
            except (NescioError, ray.exceptions.RayError) as error:
                reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
            print(f"a session failed, so all end, and delta is gone: {reason}", flush=True)
            if attempt == arguments.retries:
                raise ChannelError(f"no attempt of {attempt + 1} went well; no OT was kept")
            time.sleep(_PAUSE_SECONDS)
    _publish(paths, delta)
    totals.again = attempt
    show(totals, as_json=arguments.json)
    return 0


def _attempt(
    arguments: argparse.Namespace,
    kind: type,
    addresses: list[Address],
    delta: object,
    paths: list[str | None],
) -> Totals:
    """Makes all OTs with new sessions, which end here in any case. Raises what one of them did."""
    import ray  # noqa: PLC0415

    own: Any = ray.remote(kind).options(num_cpus=arguments.threads, max_restarts=0)
    threads, malicious = arguments.threads, arguments.malicious
    actors = [own.remote(address, threads, malicious) for address in addresses]
    counts = [len(part) for part in np.array_split(np.empty(arguments.n, bool), len(actors))]
    totals, complete = Totals(), False
    try:
        for actor in actors:
            ray.get(actor.begin.remote(delta))
        calls = zip(actors, counts, paths, strict=True)
        running = [actor.make.remote(count, path) for actor, count, path in calls]
        while running:
            done, running = ray.wait(running, num_returns=1)
            totals.add(0, *ray.get(done[0]))
        totals.transfers, complete = arguments.n, True
    finally:
        for actor in actors:
            ray.kill(actor)
        if not complete:
            _remove(paths)
    return totals


def new_delta() -> Any:  # noqa: ANN401 - an array
    """Draws 127 secret bits; the lowest bit is one."""
    delta = np.frombuffer(secrets.token_bytes(16), np.uint64).copy()
    delta[0] |= np.uint64(1)
    return delta


def _paths(out: Path | None, workers: int) -> list[str | None]:
    """Returns the beginnings of the names of the parts' files. Raises FileError."""
    if out is None:
        return [None] * workers
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise FileError(f"{out} has files, expected a new or empty folder")
    return [str(out.absolute() / f"part-{number:03}") for number in range(workers)]


def _new_files(paths: list[str | None]) -> list[Path]:
    beginnings = [Path(path) for path in paths if path is not None]
    return [one for path in beginnings for one in path.parent.glob(f"{path.name}.*.npy.new")]


def _remove(paths: list[str | None]) -> None:
    for one in _new_files(paths):
        one.unlink(missing_ok=True)


def _publish(paths: list[str | None], delta: object) -> None:
    """Names the files once all sessions have ended well; the sender's delta comes first."""
    if delta is not None and paths[0] is not None:
        private_rows(str(Path(paths[0]).with_name("delta.npy")), (2,), "<u8")[:] = delta
    for one in _new_files(paths):
        one.rename(one.with_suffix(""))
