"""Clients of a table on two servers: one for asyncio, one for synchronous programs."""

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

    Arguments and errors are those of RemoteTable. Entering the block, or `connect`, fetches the
    table's parameters from both servers.
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
        self._timeout = timeout
        self._insecure_generator = insecure_generator
        self._lookup: Lookup | None = None  # None until both servers are asked (again)
        self._params: TableParams | None = None

    @property
    def params(self) -> TableParams | None:
        """The table's parameters, as last fetched from both servers; None before `connect`."""
        return self._params

    async def connect(self) -> None:
        """Fetches the table's parameters from both servers, unless that is done already."""
        await self._until_agreed(self._agreed)

    async def lookup(self, indices: object) -> Array:
        """Looks up rows; see `RemoteTable.lookup`."""

        async def once() -> Array:
            return await self._lookup_once(await self._agreed(), indices)

        return await self._until_agreed(once)

    async def exchange(self, query: Query) -> tuple[Reply, Reply]:
        """Sends a query of `nescio.Client` to both servers concurrently; returns the raw replies.

        Raises MismatchError if a table has changed since `params` were fetched, and fetches them
        again.
        """
        try:
            return await self._exchange(await self._agreed(), query)
        except MismatchError:
            self._lookup = None
            await self.connect()
            raise

    async def _until_agreed(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Retries while the servers' tables differ: an operator changes one after the other."""
        end = time.monotonic() + self._timeout
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
        """Connects and returns the table."""
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
            except MismatchError as error:  # an honest server would have refused the query
                raise TablesDifferError(
                    str(error), found=error.found, expected=error.expected
                ) from error
        return lookup.assemble(indices, parts)

    async def _exchange(self, lookup: Lookup, query: Query) -> tuple[Reply, Reply]:
        max_bytes = lookup.max_answer_bytes(query)
        first, second = (
            self._http.post(url, keys, max_bytes)
            for url, keys in zip(lookup.urls, query.keys, strict=True)
        )
        return await both(first, second)


class RemoteTable(Closing):
    """A table on two servers, for private lookups: `remote.lookup([17, 42])`.

    `servers` are the addresses of two servers, one of each party, in either order; both are asked
    concurrently. Each try takes at most `timeout` seconds. After a failed connection, or if a
    server is busy, the client retries up to `retries` times. While the servers' tables differ
    because an operator is changing them, it retries for `timeout` seconds. `verify` is httpx's:
    True, False or an `ssl.SSLContext` that trusts the servers' certificates. Proxies of the
    environment are not used: a proxy for both queries would see both keys. `insecure_generator` is
    that of `nescio.Client`.

    Raises ServiceError, with the server's URL, if a server fails; MismatchError if the servers'
    tables differ; MalformedMessageError for an invalid reply; ArgumentError for an insecure
    generator that is not allowed. Close the table, or use it as a context manager. It may be used
    from several threads, and after a fork. Security model: see `nescio.Client`; the servers also
    learn the client's address.
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
        # Made first, because it raises for invalid arguments.
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
        """The table's public parameters, as last fetched from both servers."""
        params = self._here().params
        assert params is not None
        return params

    def lookup(self, indices: object) -> Array:
        """Looks up the rows at `indices`: the value of `table[indices]`.

        The servers learn the number of rows. Rows that exceed the servers' quota of one request are
        split over several requests. Raises IndexRangeError, ServiceError, or MismatchError if the
        servers' tables still differ after `timeout`.
        """
        remote = self._here()  # may replace the loop
        return self._loop.call(remote.lookup(indices))

    def exchange(self, query: Query) -> tuple[Reply, Reply]:
        """Sends a query of `nescio.Client` to both servers; returns the raw replies."""
        remote = self._here()
        return self._loop.call(remote.exchange(query))

    def close(self) -> None:
        """Closes the connections; a second call has no effect."""
        self._loop.close(self._remote.close)

    def _here(self) -> AsyncRemoteTable:
        """Returns this process's table: a forked process has no threads or connections."""
        if self._loop.process != os.getpid():
            # Kept, not closed: the fork shares the epoll of the parent's loop.
            self._left += [self._remote, self._loop]
            self._begin()
        return self._remote
