"""Preparing inferences and running them, with a store at each party.

    prepare(channel, public, path, 100)             prepare(channel, network, path, 100)
    client = Client(channel, public, path)          server = Server(channel, network, path)
    outputs = client.infer(inputs)                  server.serve()

At their first inference the parties tell each other which prepared inference is their next, and go
on from the later one. Both mark one as used on their disks before they use it: a party that loses
the other, or its own power, loses one prepared inference, and never uses one twice.
"""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from .. import _core
from .._arrays import as_count, as_threads, shown
from ..errors import ArgumentError, FileError, MismatchError, ResourceError
from ..net import Channel, aborting
from . import _material as material
from ._maps import Ring, check_ring
from ._network import Network
from ._offline import OfflineClient, OfflineServer
from ._online import infer, receive_inputs, serve
from ._public import PublicNetwork
from ._steps import Step, Steps
from ._store import MAX_COUNT, Role, Store, StoreWriter
from ._tables import TableMaker

_PROTOCOL = 3
_MAX_HELLO = 1024
_NONCE_BYTES = 32
_DIFFERENT = {
    "plan": ("different networks", "give the client the bytes of network.public.to_bytes()"),
    "count": ("different counts", "pass one count to both parties"),
    "session": ("stores of different preparations", "use the two stores of one preparation"),
}

Fields = dict[str, Any]


def prepare(
    channel: Channel,
    network: Network | PublicNetwork,
    path: str | os.PathLike[str],
    count: int,
    *,
    threads: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[Step]:
    """Prepares `count` inferences with the other party, and writes this party's store.

    The server has a Network, the client its `public` part. `progress` is called with the number of
    inferences that are prepared; `threads` is the number of CPU threads, 0 for all. Returns this
    party's counts of bytes, frames and rounds by phase. Raises FileError for a file that exists or
    cannot be written, MismatchError if the other party has another network or another count,
    ArgumentError for weights that are too large, and the errors of the channel.
    """
    as_count(count, "count", 1, MAX_COUNT)
    _check_kind(network, Network, PublicNetwork)
    role: Role = "server" if isinstance(network, Network) else "client"
    public = network.public if isinstance(network, Network) else network
    pool, steps = _core.ThreadPool(as_threads(threads)), Steps(channel)
    with _ending(channel):
        if Path(path).exists():
            raise FileError(f"{path} exists: use it, or choose another name")
        session = _agree_to_prepare(channel, role, public, count)
        steps.end("agreement")
        contents = material.contents(network, session, count)
        with (
            StoreWriter(path, contents) as writer,
            TableMaker(channel, role, threads=threads) as maker,
        ):
            party: OfflineServer | OfflineClient
            if isinstance(network, Network):
                party = OfflineServer(channel, network, maker, pool, steps)
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
    ) -> None:
        self._channel, self._network = channel, network
        self._pool = _core.ThreadPool(as_threads(threads))
        self._agreed = False
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
        """The number of prepared inferences that this party has left."""
        return self._store.left

    @property
    def counts(self) -> list[Step]:
        """The counts of the last inference: bytes, frames and rounds by phase and layer."""
        return self._steps.found

    def _begin(self) -> int:
        """Returns the number of the next prepared inference, the same one at both parties."""
        self._steps = Steps(self._channel)
        number = self._store.next
        if not self._agreed:
            number = self._agree()
            self._steps.end("agreement")
        self._store.check(number)
        self._agreed = True
        return number

    def _part(self, number: int) -> bytearray:
        """Takes a prepared inference from the store."""
        part = self._store.use(number)
        self._steps.end("store")
        return part

    def _agree(self) -> int:
        """Agrees with the other party on the next prepared inference that both have."""
        contents = self._store.contents
        own = {"plan": contents.plan, "session": contents.session}
        theirs = _exchange(self._channel, self._role, "NEXT", {**own, "next": self._store.next})
        for name, mine in own.items():
            if _differ(theirs.get(name), mine):
                raise _different(name, theirs.get(name), mine)
        other = theirs.get("next")
        if type(other) is not int or not 0 <= other <= contents.count:
            raise _mismatch("the next prepared inference", other, f"0 to {contents.count}")
        return max(self._store.next, other)

    def close(self) -> None:
        """Closes the store; the channel stays open."""
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
    is the client's store of `prepare`. Semi-honest security: a client that deviates from the
    protocol can learn the weights, and a server that does can falsify outputs. Raises FileError
    for a store of another network.
    """

    _role: Role = "client"

    def __init__(
        self,
        channel: Channel,
        network: PublicNetwork,
        path: str | os.PathLike[str],
        *,
        threads: int = 0,
    ) -> None:
        _check_kind(network, PublicNetwork)
        super().__init__(channel, network, path, threads)

    def infer(self, inputs: Ring) -> Ring:
        """Returns the outputs for one input (*inputs), integers modulo 2^32, dtype uint32.

        Raises ArgumentError for inputs of another shape, ResourceError if no prepared inference is
        left at one of the parties, MismatchError if the stores are of different preparations, and
        the errors of the channel.
        """
        check_ring(inputs, "inputs", self._network.inputs)
        batch = np.ascontiguousarray(inputs)[None]
        with _ending(self._channel):
            own = material.decode_client(self._network, self._part(self._begin()))
            outputs = infer(self._channel, self._network, own, batch, self._pool, steps=self._steps)
        self._store.wipe_behind()
        found: Ring = outputs[0]
        return found


class Server(_Session):
    """The server: it has the network, and learns nothing of inputs and outputs.

    `path` is the server's store of `prepare`, which is for the weights that the network then had.
    Raises as Client does, and FileError for a store for other weights.
    """

    _role: Role = "server"

    def __init__(
        self,
        channel: Channel,
        network: Network,
        path: str | os.PathLike[str],
        *,
        threads: int = 0,
    ) -> None:
        _check_kind(network, Network)
        self._whole = network
        super().__init__(channel, network.public, path, threads)

    def _check_store(self, path: str | os.PathLike[str]) -> None:
        """Closes also a store for other weights: outputs would be wrong, and reveal the change."""
        super()._check_store(path)
        if self._store.contents.weights != self._whole.weights_digest:
            self._store.close()
            raise FileError(
                f"{path}: found a store for other weights of this network, expected one for these: "
                "prepare again at both parties"
            )

    def serve(self) -> None:
        """Serves one inference. Raises as Client.infer does.

        Raises PeerGoneError if the client leaves instead of asking for one, and uses none up.
        """
        with _ending(self._channel):
            number = self._begin()
            inputs = receive_inputs(self._channel, self._network, 1)
            self._steps.end("input")
            own = material.decode_server(self._network, self._part(number))
            serve(self._channel, self._whole, own, self._pool, inputs=inputs, steps=self._steps)
        self._store.wipe_behind()


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
            channel.abort("its prepared inferences were all used")
            raise


def _check_kind(network: object, *kinds: type) -> None:
    """Raises ArgumentError for a network of another kind than a party needs."""
    if not isinstance(network, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ArgumentError(
            f"network: found {type(network).__name__}, expected {expected}: the server has a "
            "Network, the client its `public` part"
        )


def _agree_to_prepare(channel: Channel, role: Role, network: PublicNetwork, count: int) -> str:
    """Compares networks and counts; returns the digest of both parties' nonces."""
    own = {"plan": network.digest, "count": count}
    nonce = secrets.token_hex(_NONCE_BYTES)
    theirs = _exchange(channel, role, "PREP", {**own, "nonce": nonce})
    for name, mine in own.items():
        if _differ(theirs.get(name), mine):
            raise _different(name, theirs.get(name), mine)
    other = theirs.get("nonce")
    if not isinstance(other, str) or not re.fullmatch(f"[0-9a-f]{{{2 * _NONCE_BYTES}}}", other):
        raise _mismatch("the other party's nonce", other, f"{2 * _NONCE_BYTES} hexadecimal digits")
    pair = (nonce, other) if role == "client" else (other, nonce)
    return hashlib.sha256(json.dumps(pair).encode()).hexdigest()


def _exchange(channel: Channel, role: Role, kind: str, own: Fields) -> Fields:
    """Sends some fields and receives the other party's; the client sends first."""
    message = json.dumps({"protocol": _PROTOCOL, "role": role, **own}).encode()
    if role == "client":
        channel.send(kind, message)
    theirs = _parsed(channel.receive_at_most(kind, _MAX_HELLO))
    if role == "server":
        channel.send(kind, message)
    other = "server" if role == "client" else "client"
    for name, expected in (("protocol", _PROTOCOL), ("role", other)):
        if _differ(theirs.get(name), expected):
            raise _mismatch(f"the other party's {name}", theirs.get(name), expected)
    return theirs


def _parsed(data: bytearray) -> Fields:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _mismatch("the other party's message", bytes(data[:16]), "a JSON object")
    return found


def _differ(found: object, expected: object) -> bool:
    """Compares types too: in Python, True and 1.0 equal 1."""
    return type(found) is not type(expected) or found != expected


def _different(name: str, found: object, expected: object) -> MismatchError:
    what, advice = _DIFFERENT[name]
    error = _mismatch(what, found, expected)
    return MismatchError(f"{error}: {advice}", found=error.found, expected=error.expected)


def _mismatch(what: str, found: object, expected: object) -> MismatchError:
    text = f"{what}: found {shown(found)}, expected {shown(expected)}"
    return MismatchError(text, found=shown(found), expected=shown(expected))
