"""The stores of a client of a PlanServer, one after the other, and preparing more of them."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import FileError, ResourceError
from ...net import Channel
from .._maps import Ring
from .._session import Client
from .._steps import Step
from ._files import left_in, new_path, remove_used_up, stores_of
from ._request import is_gone

if TYPE_CHECKING:
    from ._remote import RemotePlan

__all__ = ["Report", "Stores"]

_IDLE_SECONDS = 5.0  # after which a connection is made again: the server may have left the old one

Report = Callable[[int], None]


class Stores:
    """A client's stores, one after the other, as one."""

    def __init__(
        self, remote: "RemotePlan", path: Path, refill: int, progress: Report | None
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
        for one in stores_of(path):
            self._waiting[one] = left_in(one, remote.public)
        self._found_empty = {one for one, left in self._waiting.items() if not left}
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
        none = np.empty((0, *self._remote.public.network.layers[-1].outputs), np.uint32)
        return np.concatenate([none, *self.infer_each(inputs)])

    def infer_each(self, inputs: Ring) -> Iterator[Ring]:
        """Yields the outputs for the next inputs that ran together, until all are there."""
        done = 0
        while done < len(inputs):
            some = inputs[done : done + max(1, min(self.batch, self.left))]
            self._refill_if_low(len(some) - 1)
            found = self._infer(some)
            done += len(found)
            if len(found):  # the other party may have used the rest of a store
                yield found

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
        except BaseException as error:
            self._leave()
            if not is_gone(error) or not self._has_other(self._own):
                raise
            return self._ready()
        self._add(self._client.counts)
        return self._client

    def _has_other(self, gone: Path) -> bool:
        """Leaves a store out whose other half the server does not have, if there is another."""
        others = any(left for path, left in self._waiting.items() if path != gone)
        if others or self._refill is not None:
            del self._waiting[gone]
            return True
        return False

    def _next(self) -> Path:
        """Returns the first store that is not used up, and removes those that are."""
        while (found := self._first()) is None:
            if self._refill is None:
                text = f"{self._path}: all prepared inferences were used; prepare more"
                raise ResourceError(text)
            self._add_refill(self._refill)
        for path in [path for path, left in self._waiting.items() if not left]:
            if path in self._found_empty:
                self._remote.retire(path)
            remove_used_up(path)
            del self._waiting[path]
        return found

    def _first(self) -> Path | None:
        """Returns the first store that is not used up, also by other processes.

        Raises FileError if no store is left but one that cannot be opened.
        """
        problem: FileError | None = None
        for path in [path for path, left in self._waiting.items() if left]:
            try:
                left = left_in(path, self._remote.public) if path.is_file() else 0
            except FileError as error:  # such as one that another process uses
                problem = error
                continue
            self._waiting[path] = left
            if left:
                return path
        if problem is not None and self._refill is None:
            raise problem
        return None

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

    def __init__(
        self, remote: "RemotePlan", path: Path, count: int, progress: Report | None
    ) -> None:
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


def _sum(one: Step, other: Step) -> Step:
    counts = one.counts.plus(other.counts)
    seconds = one.seconds + other.seconds
    return Step(one.phase, one.layer, counts, seconds, one.cpu_seconds + other.cpu_seconds)
