"""The server of a plan: a thread for each client, and a store for each preparation."""

import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from ..._arrays import as_count, as_threads
from ...errors import ChannelError, NescioError, PeerGoneError
from ...net import Channel, Listener, aborting
from .. import _material as material
from .._agreement import MAX_BATCH
from .._blas import one_blas_thread
from .._plans.plan import Plan
from .._session import Server, prepare
from .._store import Store
from .._weights import DEFAULT_BYTES, PreparedWeights
from ._arrivals import MAX_ARRIVALS, Arrival, Arrivals
from ._folder import StoreFolder
from ._request import OTHER_WEIGHTS, RefusalError, Request, confirm, plan_digest, receive_request

__all__ = ["PlanServer", "Served", "ServiceLimits"]

_ENDING = 8  # connections that end
_PAUSE_SECONDS = 0.05
_END_SECONDS = 10.0
_ANY_SESSION = 64 * "0"


@dataclass(frozen=True)
class ServiceLimits:
    """The limits of a PlanServer; a client that exceeds one is refused and told so.

    `clients` are connections at the same time, of which `clients_per_address` may come from one
    address (of IPv6, from one network of 64 bits; 0: any number). `prepared` are inferences in one
    preparation, `bytes` those of all stores together. `batch` are inputs that a client has run
    together, as of `Server`: clients then send them in smaller batches. `weight_bytes` is the
    memory of transformed weights, which all preparations share (`PreparedWeights`).
    """

    clients: int = 16
    prepared: int = 1000
    bytes: int = 16 << 30
    batch: int = 0
    weight_bytes: int = DEFAULT_BYTES
    clients_per_address: int = 0

    def __post_init__(self) -> None:
        """Raises ArgumentError for limits that are no numbers, or out of range."""
        as_count(self.clients, "max_clients", 1, 4096)
        as_count(self.prepared, "max_prepared", 1, 1 << 20)
        as_count(self.bytes, "max_bytes", 1, 1 << 60)
        as_count(self.batch, "max_batch", 0, MAX_BATCH)
        as_count(self.weight_bytes, "max_weight_bytes", 0, 1 << 60)
        as_count(self.clients_per_address, "max_clients_per_address", 0, 4096)


class Served(NamedTuple):
    """A connection that has ended: what a client did, and never what it asked.

    `what` is "prepare", "infer" or, without a valid request, "-". `inferences` were prepared or
    made. `problem` is an error's text; None if the client left between two inferences.
    """

    client: int
    what: str
    inferences: int
    sent_bytes: int
    received_bytes: int
    seconds: float
    problem: str | None


class PlanServer:
    """Serves a plan to several clients at once; each of them has stores of its own in `folder`.

        with Channel.listener("0.0.0.0", 9760, tls_cert=cert, tls_key=key) as listener:
            with nescio.mpc.PlanServer(plan, listener, "stores") as server:
                server.run()

    Clients are `RemotePlan`s. Every client has a thread. One that is silent for the listener's
    timeout is left, as is one without a request after 10 seconds. `report` gets a Served for each
    connection, in its thread. Security model as in `Server`: anybody who can connect can ask,
    unless the listener has `tls_ca`. Raises FileError if the folder cannot be used, or another
    server uses it.
    """

    def __init__(
        self,
        plan: Plan,
        listener: Listener,
        folder: str | os.PathLike[str],
        *,
        limits: ServiceLimits | None = None,
        threads: int = 0,
        report: Callable[[Served], None] | None = None,
    ) -> None:
        self._plan, self._listener, self._report = plan, listener, report
        self._arrivals = Arrivals(listener)
        self._limits, self._threads = limits or ServiceLimits(), as_threads(threads)
        self._digest = plan_digest(plan.public)
        self._folder = StoreFolder(folder, self._limits.bytes)
        self._weights = _SharedWeights(plan, self._limits.weight_bytes, self._threads)
        self._lock = threading.Lock()
        self._running: set[threading.Thread] = set()
        self._clients: dict[Channel, str] = {}  # those with a request, and their addresses
        self._stopping = False
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)

    @property
    def digest(self) -> str:
        """The digest of the public plan, which clients name in their requests."""
        return self._digest

    def run(self) -> None:
        """Serves clients until `stop` is called; then ends all connections.

        NumPy's linear algebra has one thread meanwhile, in the whole process.
        """
        with one_blas_thread():
            self._run()

    def _run(self) -> None:
        client = 0
        while not self._stopping:
            if not self._wait():
                continue
            try:
                arrival = self._arrivals.accept()
            except ChannelError:  # the client has left, or there are no more descriptors
                time.sleep(_PAUSE_SECONDS)
                continue
            client += 1
            thread = threading.Thread(target=self._serve, args=(client, arrival), daemon=True)
            with self._lock:
                self._running.add(thread)
            thread.start()
        self._end_all()

    def stop(self) -> None:
        """Makes `run` return; a signal handler or another thread may call it."""
        self._stopping = True
        self._wake_up()

    def _wake_up(self) -> None:
        with suppress(OSError):  # it is awake, or closed
            self._wake.send(b"w")

    def _wait(self) -> bool:
        """Waits for a connection, or to be woken; closes those that are late."""
        left = self._arrivals.expire()
        with self._lock:
            full = len(self._running) >= self._limits.clients + MAX_ARRIVALS + _ENDING
        with selectors.DefaultSelector() as selector:
            woken = selector.register(self._woken, selectors.EVENT_READ)
            if not full:
                selector.register(self._listener, selectors.EVENT_READ)
            ready = [key for key, _ in selector.select(left)]
        if woken in ready:
            self._woken.recv(4096)
        return len(ready) > (woken in ready) and not self._stopping

    def _end_all(self) -> None:
        """Breaks all connections, and waits until their threads have removed what is incomplete."""
        end = time.monotonic() + _END_SECONDS
        self._arrivals.close()
        with self._lock:
            running, clients = list(self._running), list(self._clients)
        for channel in clients:
            channel.interrupt()
        for thread in running:
            thread.join(max(0.0, end - time.monotonic()))

    def _serve(self, client: int, arrival: Arrival) -> None:
        """Serves one connection, to its end, and reports it."""
        one = _Connection(self._plan, self._folder, self._limits, self._threads, self._weights)
        begin, problem = time.perf_counter(), None
        try:
            with arrival.open() as channel:
                one.receive(channel, self._digest)
                self._check_room(channel, arrival)
                one.run(channel)
        except (NescioError, OSError) as error:
            problem = arrival.problem or str(error)
        except Exception as error:
            problem = f"internal error ({type(error).__name__}: {error})"
        finally:
            self._arrivals.leave(arrival)
            with self._lock:
                self._running.discard(threading.current_thread())
                if one.channel is not None:
                    self._clients.pop(one.channel, None)
            self._wake_up()
        if self._report is not None:
            self._report(one.served(client, time.perf_counter() - begin, problem))

    def _check_room(self, channel: Channel, arrival: Arrival) -> None:
        """Makes an arrival a client. Refuses it if there are too many, or if the server stops."""
        limits = self._limits
        of_address = limits.clients_per_address or limits.clients
        with self._lock:
            text = None
            if list(self._clients.values()).count(arrival.address) >= of_address:
                text = f"your address has {of_address} clients, its most: try again later"
            if len(self._clients) >= limits.clients:
                text = f"the server has {limits.clients} clients, its most: try again later"
            if text is None:
                self._clients[channel] = arrival.address
        if text is not None:
            channel.abort(text)
            raise RefusalError(text)
        self._arrivals.leave(arrival)
        if self._stopping:
            channel.interrupt()

    def close(self) -> None:
        """Lets another server use the folder."""
        self._folder.close()
        self._wake.close()
        self._woken.close()

    def __enter__(self) -> Self:
        """Returns the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the server; the listener stays open."""
        self.close()


class _SharedWeights:
    """The prepared weights of a plan: made for the first preparation, and kept for all."""

    def __init__(self, plan: Plan, max_bytes: int, threads: int) -> None:
        self._plan, self._max_bytes, self._threads = plan, max_bytes, threads
        self._lock = threading.Lock()
        self._found: PreparedWeights | None = None

    def get(self) -> PreparedWeights:
        """Returns the weights. Raises ArgumentError for weights that are too large."""
        with self._lock:
            if self._found is None:
                self._found = PreparedWeights(
                    self._plan.network, max_bytes=self._max_bytes, threads=self._threads
                )
            return self._found


class _Connection:
    """One client's connection: a request, and what follows from it."""

    channel: Channel | None = None
    _request: Request

    def __init__(
        self,
        plan: Plan,
        folder: StoreFolder,
        limits: ServiceLimits,
        threads: int,
        weights: "_SharedWeights",
    ) -> None:
        self._plan, self._folder, self._weights = plan, folder, weights
        self._limits, self._threads = limits, threads
        self._what, self._inferences = "-", 0

    def receive(self, channel: Channel, digest: str) -> None:
        """Receives the client's request. Raises the errors of `receive_request`."""
        self.channel = channel
        with aborting(channel):
            self._request = receive_request(channel, digest)
        self._what = self._request.what

    def run(self, channel: Channel) -> None:
        """Fulfils the client's request. Raises RefusalError, and the errors of the channel."""
        try:
            if self._request.what == "prepare":
                self._prepare(channel, self._request)
            else:
                self._infer(channel, self._request)
        except RefusalError as error:
            channel.abort(str(error))
            raise

    def _prepare(self, channel: Channel, request: Request) -> None:
        count, most = request.count, self._limits.prepared
        if count > most:
            raise RefusalError(f"found {count:,} inferences to prepare, expected at most {most:,}")
        network = self._plan.network
        contents = material.contents(network, _ANY_SESSION, count)
        with self._folder.new(contents.file_bytes) as path:
            with aborting(channel):
                weights = self._weights.get()
            prepare(
                channel,
                network,
                path,
                count,
                threads=self._threads,
                progress=self._count,
                weights=weights,
            )
        confirm(channel)

    def _infer(self, channel: Channel, request: Request) -> None:
        """Serves inferences until the client leaves or none is left."""
        session = request.session
        with self._folder.use(session) as path:
            self._check_weights(path)
            options = {"threads": self._threads, "batch": self._limits.batch}
            with Server(channel, self._plan.network, path, **options) as server:
                self._serve_all(server)
            if not server.left:
                self._folder.remove(session)

    def _check_weights(self, path: Path) -> None:
        """Refuses a store that was made before the model was trained again."""
        with Store(path) as store:
            weights = store.contents.weights
        if weights != self._plan.network.weights_digest:
            raise RefusalError(f"{OTHER_WEIGHTS}: prepare more in a new store")

    def _serve_all(self, server: Server) -> None:
        try:
            server.agree()
        except PeerGoneError:
            return
        while left := server.left:
            try:
                served = server.serve()
            except PeerGoneError:
                if server.left < left:
                    raise
                return  # between two batches
            self._count(self._inferences + served)

    def _count(self, inferences: int) -> None:
        self._inferences = inferences

    def served(self, client: int, seconds: float, problem: str | None) -> Served:
        """Returns what was done."""
        counts = None if self.channel is None else self.channel.counts
        sent, received = (counts.sent_bytes, counts.received_bytes) if counts else (0, 0)
        return Served(client, self._what, self._inferences, sent, received, seconds, problem)
