"""Clients of a PlanServer: preparing inferences, and running them from one store to the next."""

import os
import re
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..._arrays import as_count, as_threads
from ...errors import ArgumentError, FileError, ResourceError
from ...net import Channel
from .._maps import Ring
from .._plans.model import PrivateModel
from .._plans.plan import PublicPlan
from .._session import Client, batch_of, prepare
from .._steps import Step
from .._store import MAX_COUNT, Store
from ._request import Request, plan_digest, wait_for_server

__all__ = ["RemoteModel", "RemotePlan"]

_IDLE_SECONDS = 5.0  # after which a connection is made again: the server may have left the old one

Report = Callable[[int], None]


class RemotePlan:
    """The plan of a PlanServer, for a client with its public part.

        remote = RemotePlan(public, lambda: Channel.connect("model.example", 9760, tls=True))
        remote.prepare("client.store", 100)
        with remote.open("client.store", refill=20) as model:
            outputs = model(inputs)

    `connect` makes a channel to the server; also in other threads, for preparations in the
    background. `batch` is the most inputs that run together, as of `Client`. Security model as
    there: the channel should use TLS.
    """

    def __init__(
        self,
        public: PublicPlan,
        connect: Callable[[], Channel],
        *,
        threads: int = 0,
        batch: int = 0,
    ) -> None:
        self.public, self._connect, self._threads = public, connect, as_threads(threads)
        self.batch = batch_of(public.network, "client", batch)
        self._digest = plan_digest(public)

    def prepare(
        self, path: str | os.PathLike[str], count: int, *, progress: Report | None = None
    ) -> list[Step]:
        """Prepares `count` inferences with the server, in a new store.

        `progress` is called with the number of inferences that are prepared. The store has its name
        once both parties' stores are complete. Returns the counts of bytes, rounds and times by
        phase. Raises FileError for a file that exists or cannot be written, PeerRefusedError if
        the server refuses, and the errors of `connect` and the channel.
        """
        as_count(count, "count", 1, MAX_COUNT)
        _check_new(Path(path))
        with self._connect() as channel:
            return self.prepare_on(channel, Path(path), count, progress)

    def prepare_on(
        self, channel: Channel, path: Path, count: int, progress: Report | None
    ) -> list[Step]:
        """Prepares on a new channel."""
        new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
        try:
            Request(self._digest, "prepare", count).send(channel)
            network = self.public.network
            steps = prepare(channel, network, new, count, threads=self._threads, progress=progress)
            wait_for_server(channel)
            os.link(new, path)  # fails if the name was taken meanwhile
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}") from error
        finally:
            new.unlink(missing_ok=True)
        return steps

    def open(
        self, path: str | os.PathLike[str], *, refill: int = 0, progress: Report | None = None
    ) -> "RemoteModel":
        """Opens a store, and those beside it that refilling made, for inferences.

        With `refill`, as many more inferences are prepared in the background when fewer than this
        are left, in a new store: PATH.2, PATH.3 and so on. Raises FileError if no store is there,
        and for a store of another plan.
        """
        return RemoteModel(self, Path(path), refill, progress)

    def connect(self) -> Channel:
        """Returns a new channel to the server."""
        return self._connect()

    def infer_on(self, channel: Channel, path: Path) -> Client:
        """Returns a client for a store on a new channel."""
        options = {"threads": self._threads, "batch": self.batch}
        client = Client(channel, self.public.network, path, **options)
        try:
            Request(self._digest, "infer", session=_session(client)).send(channel)
        except BaseException:
            client.close()
            raise
        return client


class RemoteModel(PrivateModel):
    """A PrivateModel of a RemotePlan: it goes from one store to the next, and prepares more.

    Inputs that run together are of one store.
    `counts` adds up all inferences since it was opened. An idle connection is made again. A context
    manager: it ends with the preparation in the background, unless an exception breaks that off.
    """

    def __init__(
        self, remote: RemotePlan, path: Path, refill: int, progress: Report | None
    ) -> None:
        self._public = remote.public
        self._client: _Stores  # type: ignore[assignment]  # the same methods
        self._client = _Stores(remote, path, as_count(refill, "refill", 0, MAX_COUNT), progress)

    def __exit__(self, kind: object = None, *_: object) -> None:
        """Closes the store, after the preparation in the background."""
        self._client.close(cancel=kind is not None)


class _Stores:
    """A client's stores, one after the other, as one."""

    def __init__(
        self, remote: RemotePlan, path: Path, refill: int, progress: Report | None
    ) -> None:
        self._remote, self._path, self._refill_at = remote, path, refill
        self._progress = progress
        self._waiting: dict[Path, int] = {}  # the inferences that are left in each store
        self._steps: dict[tuple[str, int], Step] = {}
        self._client: Client | None = None
        self._channel: Channel | None = None
        self._own = path
        self._used_at = 0.0
        self._refill: _Refill | None = None
        for one in _stores(path):
            self._waiting[one] = _left(one, remote.public)
        if not self._waiting:
            raise FileError(f"{path} does not exist, expected a store: prepare inferences first")

    @property
    def left(self) -> int:
        """The prepared inferences of all stores."""
        return sum(self._waiting.values())

    @property
    def counts(self) -> list[Step]:
        """The counts of all inferences, by phase and layer."""
        return list(self._steps.values())

    @property
    def batch(self) -> int:
        """The most inputs that run together."""
        return self._remote.batch

    def infer_batch(self, inputs: Ring) -> Ring:
        """Returns the outputs for inputs, from the next prepared inferences."""
        found = [np.empty((0, *self._remote.public.network.layers[-1].outputs), np.uint32)]
        while (done := sum(map(len, found))) < len(inputs):
            some = inputs[done : done + max(1, min(self.batch, self.left))]
            self._refill_if_low(len(some) - 1)
            found.append(self._infer(some))
        return np.concatenate(found)

    def _infer(self, inputs: Ring) -> Ring:
        """Runs as many inputs together as the store has prepared inferences for."""
        client = self._ready()
        try:
            outputs = client.infer_batch(inputs[: min(client.left, client.batch)])
        finally:
            self._waiting[self._own] = client.left
        self._used_at = time.monotonic()
        self._add(client.counts)
        return outputs

    def _ready(self) -> Client:
        """Returns a client of a store that is not used up, on an open channel."""
        idle = time.monotonic() - self._used_at > _IDLE_SECONDS
        if self._client is not None and self._channel is not None:
            if self._client.left and not idle and not self._channel.closed:
                return self._client
            self._leave()
        self._own = self._next()
        self._channel = self._remote.connect()
        try:
            self._client = self._remote.infer_on(self._channel, self._own)
            self._client.agree()
        except BaseException:
            self._leave()
            raise
        self._add(self._client.counts)
        return self._client

    def _next(self) -> Path:
        """Returns the first store that is not used up, and removes those before it."""
        while not self.left and self._refill is not None:
            self._add_refill(self._refill)
        for path, left in list(self._waiting.items()):
            if left:
                return path
            if self.left:
                path.unlink(missing_ok=True)
                del self._waiting[path]
        raise ResourceError(f"{self._path}: all prepared inferences were used; prepare more")

    def _add(self, steps: list[Step]) -> None:
        for step in steps:
            key = step.phase, step.layer
            old = self._steps.get(key)
            self._steps[key] = step if old is None else _sum(old, step)

    def _refill_if_low(self, before: int) -> None:
        """Begins a preparation if fewer are left than wanted, for the last input of a batch."""
        if self._refill is not None and self._refill.succeeded:  # else its error is for later
            self._add_refill(self._refill)
        if self._refill is None and self.left - before < self._refill_at:
            path = new_path(self._path)
            self._refill = _Refill(self._remote, path, self._refill_at, self._progress)
            self._refill.start()

    def _add_refill(self, refill: "_Refill") -> None:
        """Waits for a preparation in the background. Raises its error."""
        self._refill = None
        refill.finish()
        self._waiting[refill.path] = refill.count

    def _leave(self) -> None:
        """Ends the connection."""
        if self._client is not None:
            self._client.close()
        if self._channel is not None:
            self._channel.close()
        self._client = self._channel = None

    def close(self, *, cancel: bool = False) -> None:
        """Ends the connection and the preparation in the background. Raises the latter's error."""
        self._leave()
        if self._refill is not None:
            if cancel:
                self._refill.cancel()
            else:
                self._add_refill(self._refill)


class _Refill(threading.Thread):
    """A preparation in the background."""

    def __init__(self, remote: RemotePlan, path: Path, count: int, progress: Report | None) -> None:
        super().__init__(daemon=True)
        self.path, self.count = path, count
        self._remote, self._progress = remote, progress
        self._channel: Channel | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Prepares, and keeps an error for `finish`."""
        try:
            with self._remote.connect() as channel:
                self._channel = channel
                self._remote.prepare_on(channel, self.path, self.count, self._progress)
        except Exception as error:  # also of the caller's `connect`
            self._error = error

    @property
    def succeeded(self) -> bool:
        """True after the end of a preparation without an error."""
        return not self.is_alive() and self._error is None

    def finish(self) -> None:
        """Waits for the end. Raises the error of the preparation; an interruption cancels it."""
        try:
            self.join()
        except BaseException:
            self.cancel()
            raise
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """Breaks the preparation off; its files are removed."""
        if self._channel is not None:
            self._channel.interrupt()
            self.join(_IDLE_SECONDS)


def new_path(path: Path) -> Path:
    """Returns the first free name among PATH, PATH.2, PATH.3 and so on."""
    number = 1
    while (found := _numbered(path, number)).exists():
        number += 1
    return found


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.name}.{number}")


def _stores(path: Path) -> list[Path]:
    """Lists the stores that are there: PATH, PATH.2, PATH.3 and so on, some of which may lack."""
    numbers = [1] if path.is_file() else []
    with suppress(OSError):
        for one in path.parent.iterdir():
            found = re.fullmatch(re.escape(path.name) + r"\.([2-9]|[1-9][0-9]{1,8})", one.name)
            if found:
                numbers.append(int(found[1]))
    return [_numbered(path, number) for number in sorted(numbers)]


def _left(path: Path, public: PublicPlan) -> int:
    """Returns the inferences that are left in a store. Raises FileError for one of another plan."""
    with Store(path) as store:
        found = store.contents
        if (found.role, found.plan) != ("client", public.network.digest):
            raise FileError(
                f"{path}: found a store of a {found.role} for network {found.plan[:12]}, expected "
                f"one of a client for {public.network.digest[:12]}"
            )
        return store.left


def _check_new(path: Path) -> None:
    if path.exists():
        raise FileError(f"{path} exists: use it, or choose another name")
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"{path} cannot be written: its folder does not exist")


def _session(client: Client) -> str:
    return client._store.contents.session


def _sum(one: Step, other: Step) -> Step:
    counts = one.counts.plus(other.counts)
    seconds = one.seconds + other.seconds
    return Step(one.phase, one.layer, counts, seconds, one.cpu_seconds + other.cpu_seconds)
