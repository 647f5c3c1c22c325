"""The client's cluster: tasks that prepare the parts of all inferences, each in a store."""

import argparse
import re
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from examples.cluster.nodes import cluster
from examples.cluster.options import Address, connecting
from examples.cluster.totals import Totals, show, transfers_of
from nescio.errors import ChannelError, FileError, NescioError
from nescio.mpc import PublicPlan, RemotePlan

_PAUSE_SECONDS = 0.5


@dataclass
class Part:
    """Inferences that one task prepares, in a store of their own."""

    number: int
    path: Path
    count: int
    failures: int = 0


class Made(NamedTuple):
    """Bytes and time of a part."""

    sent_bytes: int
    received_bytes: int
    seconds: float


def prepare_part(public: bytes, path: str, count: int, address: Address, threads: int) -> Made:
    """Prepares a part with a worker of the server's cluster, in a Ray task.

    The store has its name once both parties' stores are complete. A task that fails or is killed
    leaves no store, and its part begins again with new keys, delta and masks.
    """
    begin = time.perf_counter()
    steps = RemotePlan(PublicPlan.from_bytes(public), address.connect, threads=threads).prepare(
        path, count
    )
    sent = sum(step.counts.sent_bytes for step in steps)
    received = sum(step.counts.received_bytes for step in steps)
    return Made(sent, received, time.perf_counter() - begin)


def parts_of(path: Path, count: int, size: int) -> list[Part]:
    """Cuts `count` inferences into parts; their stores are PATH, PATH.2, PATH.3 and so on."""
    found = []
    for number, first in enumerate(range(0, count, size), 1):
        own = path if number == 1 else path.with_name(f"{path.name}.{number}")
        found.append(Part(number, own, min(size, count - first)))
    return found


class Preparation:
    """Runs the tasks of all parts, a task for each worker at a time."""

    def __init__(self, arguments: argparse.Namespace, public: PublicPlan) -> None:
        import ray  # noqa: PLC0415 - after the environment was set

        self._ray: Any = ray
        self._arguments, self._addresses = arguments, connecting(arguments)
        self._public = public.to_bytes()
        self._task = ray.remote(prepare_part).options(
            num_cpus=arguments.threads, max_retries=0, scheduling_strategy="SPREAD"
        )
        self._transfers = transfers_of(public.network)
        self._running: dict[Any, tuple[int, Part]] = {}
        self.totals, self.lost = Totals(), list[Part]()

    def run(self, parts: list[Part]) -> None:
        """Prepares the parts; those that fail too often are in `lost`."""
        waiting = deque(parts)
        free = list(range(len(self._addresses)))
        while waiting or self._running:
            while waiting and free:
                self._start(free.pop(0), waiting.popleft())
            done, _ = self._ray.wait(list(self._running), num_returns=1)
            slot, part = self._running.pop(done[0])
            free.append(slot)
            if not self._finish(done[0], part):
                waiting.append(part)
        self.lost.sort(key=lambda part: part.number)

    def _start(self, slot: int, part: Part) -> None:
        """Starts a part with the worker of the same number, or with the next after a failure."""
        address = self._addresses[(slot + part.failures) % len(self._addresses)]
        path, threads = str(part.path), self._arguments.threads
        task = self._task.remote(self._public, path, part.count, address, threads)
        self._running[task] = slot, part

    def _finish(self, task: object, part: Part) -> bool:
        """Counts a part that has ended; returns False if it must begin again."""
        try:
            made = self._ray.get(task)
        except (NescioError, self._ray.exceptions.RayError) as error:
            remove_broken(part.path)
            return self._failed(part, error)
        self.totals.add(part.count, made.sent_bytes, made.received_bytes, made.seconds)
        self.totals.transfers += part.count * self._transfers
        print(f"part {part.number}: {part.count:,} inferences are in {part.path}", flush=True)
        return True

    def _failed(self, part: Part, error: Exception) -> bool:
        """Says why a part failed; returns True if it is given up, or complete in spite of it."""
        if part.path.exists():  # the worker was lost after the end
            print(f"part {part.number}: its worker was lost after it was complete", flush=True)
            return True
        part.failures += 1
        self.totals.again += 1
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        if part.failures > self._arguments.retries:
            self.lost.append(part)
            print(f"part {part.number} failed, and is given up: {reason}", flush=True)
            return True
        print(f"part {part.number} failed, and begins again: {reason}", flush=True)
        time.sleep(_PAUSE_SECONDS)
        return False


def remove_broken(path: Path) -> None:
    """Removes the incomplete files of a part whose task has ended, by their exact names."""
    own = re.compile(re.escape(path.name) + r"\.[0-9a-f]{8}\.new(\.[0-9a-f]{8}\.part)?")
    for one in list(path.parent.iterdir()):
        if own.fullmatch(one.name):
            one.unlink(missing_ok=True)


def prepare(arguments: argparse.Namespace) -> int:
    """Prepares all parts that have no store yet. Raises ChannelError if some could not be."""
    public = _read(arguments.public)
    path: Path = arguments.store.absolute()
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist")
    parts = parts_of(path, arguments.count, arguments.part)
    missing = [part for part in parts if not part.path.exists()]
    if len(missing) < len(parts):
        print(f"{len(parts) - len(missing)} parts have stores from before", flush=True)
    for part in missing:
        remove_broken(part.path)
    with cluster(arguments.ray, arguments.workers * arguments.threads):
        work = Preparation(arguments, public)
        work.run(missing)
    show(work.totals, as_json=arguments.json)
    if work.lost:
        numbers = ", ".join(str(part.number) for part in work.lost)
        raise ChannelError(
            f"parts {numbers} failed {arguments.retries + 1} times each; the others are complete: "
            "run the same command again to prepare the rest"
        )
    return 0


def _read(path: Path) -> PublicPlan:
    """Reads the public part of a plan. Raises FileError."""
    try:
        return PublicPlan.from_bytes(path.read_bytes())
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
