"""Clients of a PlanServer: preparing inferences, and running them from one store to the next."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ..._arrays import Array, as_count, as_threads
from ...errors import FileError, NescioError
from ...net import Channel
from .._maps import Floats
from .._plans.model import PrivateModel
from .._plans.plan import PublicPlan
from .._session import Client, batch_of, prepare
from .._steps import Step
from .._store import MAX_COUNT
from ._files import check_new, publish
from ._request import Request, plan_digest, wait_for_server
from ._stores import Report, Stores

__all__ = ["RemoteModel", "RemotePlan"]


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
        once both parties' stores are complete; it then replaces a store that is used up. Returns
        the counts of bytes, rounds and times by phase. Raises FileError for any other file that
        exists, or if the store cannot be written, PeerRefusedError if the server refuses, and the
        errors of `connect` and the channel.
        """
        as_count(count, "count", 1, MAX_COUNT)
        path = Path(path)
        check_new(path)
        if path.exists():
            self.retire(path)
        with self._connect() as channel:
            return self.prepare_on(channel, path, count, progress)

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
            publish(new, path)
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}") from error
        finally:
            new.unlink(missing_ok=True)
        return steps

    def retire(self, path: Path) -> None:
        """Lets the server remove its half of a store that is used up at the client alone.

        The server keeps it if the client was broken off in its last inference. Raises the errors of
        `connect`; all others are for those who need the store.
        """
        with (
            self._connect() as channel,
            suppress(NescioError),
            self.infer_on(channel, path) as client,
        ):
            client.agree()

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
        self._client: Stores  # type: ignore[assignment]  # the same methods
        self._client = Stores(remote, path, as_count(refill, "refill", 0, MAX_COUNT), progress)

    def each(self, inputs: Floats) -> Iterator[Array]:
        """Yields the outputs of inputs (n, *inputs) in arrays, each as soon as it is there.

        Each has those of the next inputs that ran together. Does not warn of inputs that were cut.
        Raises as `forward` does: what came before an error is not lost.
        """
        for outputs in self._client.infer_each(self._public.encode(inputs)):
            yield self._public.decode(outputs)

    def __exit__(self, kind: object = None, *_: object) -> None:
        """Closes the store, after the preparation in the background."""
        self._client.close(cancel=kind is not None)


def _session(client: Client) -> str:
    return client._store.contents.session
