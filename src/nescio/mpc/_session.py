"""Preparing inferences and running them, with a store at each party.

    prepare(channel, public, path, 100)             prepare(channel, network, path, 100)
    client = Client(channel, public, path)          server = Server(channel, network, path)
    outputs = client.infer(inputs)                  server.serve()

At their first inference the parties tell each other which prepared inference is their next, and go
on from the later one; and how many inputs they take at once, of which the smaller number counts.
Inputs that run together use up one prepared inference each. Both parties mark these as used on
their disks before they use them: a party that loses the other, or its own power, loses the prepared
inferences of one batch, and never uses one twice.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np

from .. import _core
from .._arrays import as_count, as_threads
from ..errors import ArgumentError, FileError, ResourceError
from ..net import Channel, aborting
from . import _material as material
from ._agreement import MAX_BATCH, agree_to_infer, agree_to_prepare
from ._maps import Ring, check_ring
from ._network import Network
from ._offline import OfflineClient, OfflineServer
from ._online import infer, receive_inputs, serve
from ._public import PublicNetwork
from ._steps import Step, Steps
from ._store import MAX_COUNT, Role, Store
from ._store_writer import StoreWriter
from ._tables import TableMaker
from ._weights import PreparedWeights

_BATCH_BYTES = 1 << 28
_BATCH = 64


def prepare(
    channel: Channel,
    network: Network | PublicNetwork,
    path: str | os.PathLike[str],
    count: int,
    *,
    threads: int = 0,
    progress: Callable[[int], None] | None = None,
    weights: PreparedWeights | None = None,
) -> list[Step]:
    """Prepares `count` inferences with the other party, and writes this party's store.

    The server has a Network, the client its `public` part. `progress` is called with the number of
    inferences that are prepared; `threads` is the number of CPU threads, 0 for all. `weights` are
    the server's, to share them or to limit their memory; by default they are prepared here. Returns
    this party's counts of bytes, frames and rounds by phase. Raises FileError for a file that
    exists or cannot be written, MismatchError if the other party has another network or another
    count, ArgumentError for weights that are too large or of another network, and the errors of the
    channel.
    """
    as_count(count, "count", 1, MAX_COUNT)
    _check_kind(network, Network, PublicNetwork)
    role: Role = "server" if isinstance(network, Network) else "client"
    public = network.public if isinstance(network, Network) else network
    pool, steps = _core.ThreadPool(as_threads(threads)), Steps(channel)
    with _ending(channel):
        if Path(path).exists():
            raise FileError(f"{path} exists: use it, or choose another name")
        session = agree_to_prepare(channel, role, public, count)
        steps.end("agreement")
        contents = material.contents(network, session, count)
        with (
            StoreWriter(path, contents) as writer,
            TableMaker(channel, role, threads=threads) as maker,
        ):
            party: OfflineServer | OfflineClient
            if isinstance(network, Network):
                party = OfflineServer(channel, network, maker, pool, steps, weights=weights)
            else:
                party = OfflineClient(channel, network, maker, pool, steps)
            for number in range(1, count + 1):
                writer.add(material.encode(public, party.make()))
                steps.end("store")
                if progress is not None:
                    progress(number)
    return steps.found


class _Session:
    """A party's store, and its agreement with the other party's."""

    _role: Role

    def __init__(
        self,
        channel: Channel,
        network: PublicNetwork,
        path: str | os.PathLike[str],
        threads: int,
        batch: int,
    ) -> None:
        self._channel, self._network = channel, network
        self._pool = _core.ThreadPool(as_threads(threads))
        self._batch = batch_of(network, self._role, batch)
        self._following: int | None = None  # the next prepared inference of both, once agreed on
        self._room: material.Room | None = None
        self._steps = Steps(channel)
        with _ending(channel):
            self._store = Store(path)
            self._check_store(path)

    def _check_store(self, path: str | os.PathLike[str]) -> None:
        """Closes a store of another role or network, and raises FileError."""
        contents, plan = self._store.contents, self._network.digest
        if (contents.role, contents.plan) != (self._role, plan):
            self._store.close()
            raise FileError(
                f"{path}: found a store of a {contents.role} for network {contents.plan[:12]}, "
                f"expected one of a {self._role} for {plan[:12]}"
            )

    @property
    def left(self) -> int:
        """The number of prepared inferences that are left, after `agree` at both parties."""
        return self._store.contents.count - max(self._store.next, self._following or 0)

    @property
    def batch(self) -> int:
        """The most inputs that run together, after `agree` at both parties."""
        return self._batch

    @property
    def counts(self) -> list[Step]:
        """The counts of the last inference or batch: bytes, frames and rounds by phase, layer."""
        return self._steps.found

    def agree(self) -> None:
        """Agrees with the other party on `left` and `batch`; the first inference does this too.

        Raises MismatchError if the stores are of different preparations, and the errors of the
        channel. Does nothing after an inference.
        """
        if self._following is None:
            with _ending(self._channel):
                self._begin(0)

    def _begin(self, count: int = 1) -> int:
        """Returns the number of the first of `count` prepared inferences that both parties have."""
        self._steps = Steps(self._channel)
        if self._following is None:
            own = self._store.contents, self._store.next, self._batch
            self._following, self._batch = agree_to_infer(self._channel, self._role, *own)
            self._store.skip_to(self._following)
            self._steps.end("agreement")
        number = max(self._store.next, self._following)
        self._store.check(number, count)
        return number

    def _take(self, number: int, count: int) -> material.Room:
        """Takes prepared inferences from the store; the next call overwrites them in memory."""
        if self._room is None or self._room.count != count:
            self._room = None  # frees its memory first
            self._room = material.Room(self._network, self._role, count)
        self._store.use_all(number, self._room.parts)
        self._steps.end("store")
        return self._room

    def close(self) -> None:
        """Closes the store; the channel stays open."""
        self._room = None
        self._store.close()

    def __enter__(self) -> Self:
        """Returns the party."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the store."""
        self.close()


class Client(_Session):
    """The client: it has inputs, and learns the outputs and nothing else of the weights.

        with Client(channel, network.public, path) as client:
            outputs = client.infer(inputs)

    A channel serves one Client and one Server, for as many inferences as both have prepared. `path`
    is the client's store of `prepare`. `batch` is the most inputs that run together, which bounds
    the memory; 0 takes as many as 256 MiB of prepared inferences hold, up to 64. Semi-honest
    security: a client that deviates from the protocol can learn the weights, and a server that does
    can falsify outputs. Raises FileError for a store of another network.
    """

    _role: Role = "client"

    def __init__(
        self,
        channel: Channel,
        network: PublicNetwork,
        path: str | os.PathLike[str],
        *,
        threads: int = 0,
        batch: int = 0,
    ) -> None:
        _check_kind(network, PublicNetwork)
        super().__init__(channel, network, path, threads, batch)

    def infer(self, inputs: Ring) -> Ring:
        """Returns the outputs for one input (*inputs), integers modulo 2^32, dtype uint32.

        Raises ArgumentError for inputs of another shape, ResourceError if no prepared inference is
        left at one of the parties, MismatchError if the stores are of different preparations, and
        the errors of the channel.
        """
        check_ring(inputs, "inputs", self._network.inputs)
        found: Ring = self.infer_batch(inputs[None])[0]
        return found

    def infer_batch(self, inputs: Ring) -> Ring:
        """Returns the outputs (n, *outputs) for n inputs (n, *inputs), which run together.

        Together they take the rounds of one inference, and n prepared inferences. More than `batch`
        inputs run in several batches. Raises as `infer` does, and ResourceError, before any is
        used, if fewer prepared inferences are left than inputs.
        """
        check_ring(inputs, "inputs", ("n", *self._network.inputs))
        inputs = np.ascontiguousarray(inputs)
        found = np.empty((len(inputs), *self._network.layers[-1].outputs), np.uint32)
        if len(inputs):
            with _ending(self._channel):
                number = self._begin(len(inputs))
                for first in range(0, len(inputs), self._batch):
                    part = slice(first, first + self._batch)
                    found[part] = self._infer(number + first, inputs[part])
        return found

    def _infer(self, number: int, inputs: Ring) -> Ring:
        """Runs inputs together, with prepared inferences from `number` on."""
        own = self._take(number, len(inputs)).client()
        outputs = infer(self._channel, self._network, own, inputs, self._pool, steps=self._steps)
        self._store.wipe_behind()
        return outputs


class Server(_Session):
    """The server: it has the network, and learns nothing of inputs and outputs.

    `path` is the server's store of `prepare`, which is for the weights that the network then had.
    `batch` is the most inputs that a client may run together, as of Client. Raises as Client does,
    and FileError for a store for other weights.
    """

    _role: Role = "server"

    def __init__(
        self,
        channel: Channel,
        network: Network,
        path: str | os.PathLike[str],
        *,
        threads: int = 0,
        batch: int = 0,
    ) -> None:
        _check_kind(network, Network)
        self._whole = network
        super().__init__(channel, network.public, path, threads, batch)

    def _check_store(self, path: str | os.PathLike[str]) -> None:
        """Closes also a store for other weights: outputs would be wrong, and reveal the change."""
        super()._check_store(path)
        if self._store.contents.weights != self._whole.weights_digest:
            self._store.close()
            raise FileError(
                f"{path}: found a store for other weights of this network, expected one for these: "
                "prepare again at both parties"
            )

    def serve(self) -> int:
        """Serves one inference, or a batch of them; returns how many. Raises as Client.infer does.

        Raises PeerGoneError if the client leaves instead of asking for one, and MessageError for
        more inputs than `batch` or `left`: no prepared inference is then used up.
        """
        with _ending(self._channel):
            number = self._begin()
            most = min(self._batch, self._store.contents.count - number)
            inputs = receive_inputs(self._channel, self._network, most)
            self._steps.end("input")
            own = self._take(number, len(inputs)).server()
            serve(self._channel, self._whole, own, self._pool, inputs=inputs, steps=self._steps)
        self._store.wipe_behind()
        return len(inputs)


def batch_of(network: PublicNetwork, role: Role, batch: int = 0) -> int:
    """Returns a party's limit of inputs at once; for 0, by the memory that they need.

    Raises ArgumentError for limits out of range.
    """
    fit = max(1, _BATCH_BYTES // material.size(network, role))
    return as_count(batch, "batch", 0, MAX_BATCH) or min(fit, _BATCH)


@contextmanager
def _ending(channel: Channel) -> Iterator[None]:
    """Aborts a channel on an exception; the other party learns why a store ends the protocol."""
    with aborting(channel):
        try:
            yield
        except FileError:
            channel.abort("its store of prepared inferences cannot be read or written")
            raise
        except ResourceError:
            channel.abort("its prepared inferences were all used, or are too few")
            raise


def _check_kind(network: object, *kinds: type) -> None:
    """Raises ArgumentError for a network of another kind than a party needs."""
    if not isinstance(network, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ArgumentError(
            f"network: found {type(network).__name__}, expected {expected}: the server has a "
            "Network, the client its `public` part"
        )
