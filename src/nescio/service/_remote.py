"""Clients of a table that two servers hold: sync and async, one vocabulary."""

import asyncio
import itertools
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from .._arrays import Array
from ..errors import MismatchError
from ..pir import Query, TableParams
from ._exchange import (
    Description,
    Lookup,
    Reply,
    TablesDifferError,
    check_servers,
    pause,
    table_url,
)
from ._http import Closing, Http, LoopThread, both

_T = TypeVar("_T")


class AsyncRemoteTable:
    """`RemoteTable` for asyncio: `async with AsyncRemoteTable(...) as remote`, `await lookup`.

    Arguments and errors are those of RemoteTable. The servers are first asked when the table is
    entered, or by `connect`.
    """

    def __init__(
        self,
        servers: Sequence[str],
        table: str,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        verify: bool | ssl.SSLContext = True,
        insecure_generator: bool = False,
    ) -> None:
        check_servers(servers)
        self._urls = [table_url(server, table) for server in servers]
        self._http = Http(timeout=timeout, retries=retries, verify=verify)
        self._patience = timeout
        self._insecure_generator = insecure_generator
        self._lookup: Lookup | None = None  # None while the servers are to be asked (again)
        self._params: TableParams | None = None

    @property
    def params(self) -> TableParams | None:
        """The parameters on which both servers agreed when last asked; None before `connect`."""
        return self._params

    async def connect(self) -> None:
        """Asks both servers what they hold, if they have not been asked."""
        await self._until_agreed(self._agreed)

    async def lookup(self, indices: object) -> Array:
        """As `RemoteTable.lookup`."""

        async def once() -> Array:
            return await self._lookup_once(await self._agreed(), indices)

        return await self._until_agreed(once)

    async def exchange(self, query: Query) -> tuple[Reply, Reply]:
        """Sends a query of `nescio.Client` to both servers at once: their raw replies.

        Raises MismatchError if a table has changed since `params`, which are then those of now.
        """
        try:
            return await self._exchange(await self._agreed(), query)
        except MismatchError:
            self._lookup = None
            await self.connect()
            raise

    async def _until_agreed(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Tries again as long as tables change, at one server perhaps sooner than at the other."""
        end = time.monotonic() + self._patience
        for tries in itertools.count():
            try:
                return await work()
            except TablesDifferError:
                raise
            except MismatchError:
                self._lookup = None
                wait = pause(tries)
                if time.monotonic() + wait > end:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.close()

    async def __aenter__(self) -> Self:
        """The table itself, connected."""
        try:
            await self.connect()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the connections."""
        await self.close()

    async def _agreed(self) -> Lookup:
        if self._lookup is None:
            first, second = self._urls
            texts = await both(self._http.get(first), self._http.get(second))
            self._lookup = Lookup(
                [Description.parse(url, text) for url, text in zip(self._urls, texts, strict=True)],
                insecure_generator=self._insecure_generator,
            )
            self._params = self._lookup.client.params
        return self._lookup

    async def _lookup_once(self, lookup: Lookup, indices: object) -> Array:
        parts = []
        for query in lookup.queries(indices):
            first, second = await self._exchange(lookup, query)
            try:
                parts.append(lookup.client.decode(query, first.body, second.body))
            except MismatchError as error:  # an honest server would have refused
                raise TablesDifferError(
                    str(error), found=error.found, expected=error.expected
                ) from error
        return lookup.assemble(indices, parts)

    async def _exchange(self, lookup: Lookup, query: Query) -> tuple[Reply, Reply]:
        most = lookup.most_answer_bytes(query)
        first, second = (
            self._http.post(url, keys, most)
            for url, keys in zip(lookup.urls, query.keys, strict=True)
        )
        return await both(first, second)


class RemoteTable(Closing):
    """A table on two servers, looked up privately: `remote.lookup([17, 42])`.

    `servers` are the addresses of two servers, one of each party, in either order; both are asked
    at once. Each try is bounded by `timeout` seconds. A connection that fails and a server that is
    busy are tried again up to `retries` times; servers that have just changed the table and do not
    agree yet, as long as `timeout`. `verify` is httpx's: True, False or an `ssl.SSLContext` that
    trusts the servers' certificates. Proxies of the environment are not used: one that both queries
    go through would see both keys. `insecure_generator` is `nescio.Client`'s.

    What it raises is in `nescio.errors`: ServiceError when a server fails, naming it, MismatchError
    when the two do not hold the same table, MalformedMessageError for a reply that is none,
    ArgumentError for a table whose generator is insecure and not taken. Close
    it, or use it as a context manager. It may be used from several threads, and after a fork.
    Security model: see `nescio.Client`; the servers also learn the client's address.
    """

    def __init__(
        self,
        servers: Sequence[str],
        table: str,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        verify: bool | ssl.SSLContext = True,
        insecure_generator: bool = False,
    ) -> None:
        self._servers = servers
        self._name = table
        self._timeout = timeout
        self._retries = retries
        self._verify = verify
        self._insecure_generator = insecure_generator
        self._left: list[object] = []
        self._begin()

    def _begin(self) -> None:
        # The client is made first: it may refuse its arguments.
        self._remote = AsyncRemoteTable(
            self._servers,
            self._name,
            timeout=self._timeout,
            retries=self._retries,
            verify=self._verify,
            insecure_generator=self._insecure_generator,
        )
        self._loop = LoopThread()
        try:
            self._loop.call(self._remote.connect())
        except BaseException:
            self.close()
            raise

    @property
    def params(self) -> TableParams:
        """The table's public parameters, on which both servers agreed when last asked."""
        params = self._here().params
        assert params is not None
        return params

    def lookup(self, indices: object) -> Array:
        """The rows at `indices`: what `table[indices]` would be. The servers learn how many.

        More rows than a request may carry are asked for in several. Raises IndexRangeError,
        ServiceError, or MismatchError if the servers' tables differ and go on to.
        """
        remote = self._here()  # which may replace the loop
        return self._loop.call(remote.lookup(indices))

    def exchange(self, query: Query) -> tuple[Reply, Reply]:
        """Sends a query of `nescio.Client` to both servers at once: their raw replies."""
        remote = self._here()
        return self._loop.call(remote.exchange(query))

    def close(self) -> None:
        """Closes the connections; a second time does nothing."""
        self._loop.close(self._remote.close)

    def _here(self) -> AsyncRemoteTable:
        """The table of this process: a fork takes neither threads nor connections along."""
        if self._loop.process != os.getpid():
            # Kept, not ended: what the parent waits with (epoll) is shared with it.
            self._left += [self._remote, self._loop]
            self._begin()
        return self._remote
