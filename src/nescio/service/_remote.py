"""Clients of a table on two servers: one for asyncio, one for synchronous programs."""

import asyncio
import itertools
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import numpy as np

from .._arrays import Array, ByteArray, as_array
from ..errors import ForgedAnswerError, IndexRangeError, LayoutChangedError, MismatchError
from ..pir import Client, Query, TableParams
from ._exchange import (
    Description,
    Lookup,
    Reply,
    TablesDifferError,
    agree,
    check_servers,
    pause,
    table_url,
)
from ._http import Closing, Http, LoopThread, both
from ._trust import Trust, check_verify, fetch_layout, fetch_tops

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
        tls: bool | ssl.SSLContext = True,
        verify: bool = True,
        digest: str | None = None,
        known_tables: str | Path | None = None,
        insecure_generator: bool = False,
    ) -> None:
        check_servers(servers)
        check_verify(verify, digest, known_tables)
        self._servers = list(servers)
        self._urls = [table_url(server, table) for server in servers]
        file = None if known_tables is None else Path(known_tables)
        self._trust = Trust(digest, file, servers, table)
        self._http = Http(timeout=timeout, retries=retries, tls=tls)
        self._verify = verify
        self._tops: tuple[bytes, ByteArray] | None = None  # and the id of their version
        self._layout: tuple[str, bytes] = "", b""  # and its digest
        self._timeout = timeout
        self._insecure_generator = insecure_generator
        self._lookup: Lookup | None = None  # None until both servers are asked (again)
        self._client: Client | None = None

    @property
    def params(self) -> TableParams | None:
        """The table's parameters, as last fetched from both servers; None before `connect`."""
        return None if self._client is None else self._client.params

    @property
    def layout(self) -> bytes:
        """The text that tells which content is where in the bins, as last fetched; or empty."""
        return self._layout[1]

    @property
    def client(self) -> Client | None:
        """The client of the version last fetched, for `exchange`; None before `connect`."""
        return self._client

    async def connect(self) -> None:
        """Fetches the table's parameters from both servers, unless that is done already."""
        await self._until_agreed(self._agreed)

    async def lookup(self, indices: object, *, layout: str | None = None) -> Array:
        """Looks up rows; see `RemoteTable.lookup`."""
        sent = False

        async def once() -> Array:
            nonlocal sent
            lookup = await self._agreed()
            lookup.client.check_layout(layout)
            try:
                places = lookup.client.places(indices)
            except IndexRangeError:
                if sent:  # the servers see what they see of places that a smaller table still has
                    await self._lookup_once(lookup, np.zeros(as_array(indices, "").shape, int))
                raise
            sent = True
            return await self._lookup_once(lookup, places)

        return await self._until_agreed(once)

    async def exchange(self, query: Query) -> tuple[Reply, Reply]:
        """Sends a query of `client` to both servers concurrently; returns the raw replies.

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
            except (TablesDifferError, LayoutChangedError):
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
            servers = agree(
                [Description.parse(url, text) for url, text in zip(self._urls, texts, strict=True)]
            )
            self._client = await self._make_client(servers)
            self._lookup = Lookup(servers, self._client)
        return self._lookup

    async def _make_client(self, servers: tuple[Description, Description]) -> Client:
        """Makes the client of the table that both servers have agreed on."""
        params, allowed = servers[0].params, self._insecure_generator
        client = Client(params, verify=False, insecure_generator=allowed)
        self._trust.check(params)
        if params.layout != self._layout[0]:
            layout = await fetch_layout(self._http, servers, params) if params.layout else b""
            self._layout = params.layout, layout
        if not self._verify:
            return client
        if self._tops is None or self._tops[0] != params.id:
            self._tops = params.id, await fetch_tops(self._http, servers, params, self._tops)
        return Client(params, self._tops[1], insecure_generator=allowed)

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
            except ForgedAnswerError as error:
                raise ForgedAnswerError(f"{' and '.join(self._servers)}: {error}") from error
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
    because an operator is changing them, it retries for `timeout` seconds. `tls` is httpx's
    `verify`: True, False or an `ssl.SSLContext` that trusts the servers' certificates. Proxies of
    the environment are not used: a proxy for both queries would see both keys. `insecure_generator`
    is that of `nescio.Client`.

    Rows are checked against the table's digest, on which both servers must agree, unless `verify`
    is false. `digest` names the digest that the table must have, in hexadecimal. `known_tables` is
    a file that keeps the digest of the first connection; later ones must have the same.

    Raises ForgedAnswerError, and repeats nothing, if a server has answered wrongly; all rows of a
    lookup are checked before one is returned, and the error is the same whichever they are.
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
        tls: bool | ssl.SSLContext = True,
        verify: bool = True,
        digest: str | None = None,
        known_tables: str | Path | None = None,
        insecure_generator: bool = False,
    ) -> None:
        self._servers = servers
        self._name = table
        self._timeout = timeout
        self._retries = retries
        self._tls = tls
        self._verify = verify
        self._digest = digest
        self._known_tables = known_tables
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
            tls=self._tls,
            verify=self._verify,
            digest=self._digest,
            known_tables=self._known_tables,
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
        return self.client.params

    @property
    def layout(self) -> bytes:
        """The text that tells which content is where in the bins; empty for most tables."""
        return self._here().layout

    @property
    def client(self) -> Client:
        """The client of the version last fetched from both servers, for `exchange`."""
        client = self._here().client
        assert client is not None
        return client

    def lookup(self, indices: object, *, layout: str | None = None) -> Array:
        """Looks up the rows at `indices`: the value of `table[indices]`.

        `layout` is that of `nescio.pir.Lookups`.

        A lookup of a table in bins has a place for each slot, on the last axis of `indices`; see
        `nescio.Client.query`. The servers learn the number of lookups. Lookups that exceed the
        servers' quota of one request are split over several requests. Raises IndexRangeError,
        ServiceError, or MismatchError if the servers' tables still differ after `timeout`.
        """
        remote = self._here()  # may replace the loop
        return self._loop.call(remote.lookup(indices, layout=layout))

    def exchange(self, query: Query) -> tuple[Reply, Reply]:
        """Sends a query of `client` to both servers; returns the raw replies."""
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
