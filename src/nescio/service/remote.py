"""Clients of a table that two servers hold: sync and async, one vocabulary."""

import asyncio
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import httpx

from .._arrays import Array
from ..pir import Query, TableParams
from .exchange import OCTETS, Attempt, Description, Lookup, check_servers, table_url

_HEADERS = {"Content-Type": OCTETS, "Accept": OCTETS}


class RemoteTable:
    """A table on two servers, looked up privately: `remote.lookup([17, 42])`.

    `servers` are the addresses of two servers, one of each party, in either order; both are asked
    at once. A connection that fails and a server that is busy are tried again `retries` times;
    `timeout` bounds each try in seconds. `verify` is httpx's: True, False or an `ssl.SSLContext`
    that trusts the servers' certificates.

    What it raises is in `nescio.errors`: ServiceError when a server fails, naming it, and
    MismatchError when the two do not hold the same table. Close it, or use it as a context
    manager. Security model: see `nescio.Client`; the servers also learn the client's address.
    """

    def __init__(
        self,
        servers: Sequence[str],
        table: str,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        verify: bool | ssl.SSLContext = True,
    ) -> None:
        check_servers(servers)
        self._retries = retries
        self._urls = [table_url(server, table) for server in servers]
        self._http = httpx.Client(timeout=timeout, verify=verify)
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="nescio-lookup")
        try:
            self._lookup = Lookup(list(self._threads.map(self._describe, self._urls)))
        except BaseException:
            self.close()
            raise

    @property
    def params(self) -> TableParams:
        """The table's public parameters, on which both servers agree."""
        return self._lookup.client.params

    def lookup(self, indices: object) -> Array:
        """The rows at `indices`: what `table[indices]` would be. The servers learn how many.

        More rows than a request may carry are asked for in several. Raises IndexRangeError,
        ServiceError, or MismatchError if a server's table has changed.
        """
        parts = []
        for query in self._lookup.queries(indices):
            answers = self._threads.map(self._post, self._lookup.urls, query.keys)
            parts.append(self._lookup.client.decode(query, *(a.content for a in answers)))
        return self._lookup.assemble(indices, parts)

    def exchange(self, query: Query) -> tuple[httpx.Response, httpx.Response]:
        """Sends a query of `nescio.Client` to both servers at once: their raw responses."""
        first, second = self._threads.map(self._post, self._lookup.urls, query.keys)
        return first, second

    def close(self) -> None:
        """Closes the connections."""
        self._threads.shutdown(cancel_futures=True)
        self._http.close()

    def __enter__(self) -> Self:
        """The table itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the connections."""
        self.close()

    def _describe(self, url: str) -> Description:
        return Description.parse(url, self._send("GET", url, None))

    def _post(self, url: str, key: bytes) -> httpx.Response:
        return self._send("POST", url, key)

    def _send(self, method: str, url: str, body: bytes | None) -> httpx.Response:
        attempt = Attempt(url, self._retries)
        while True:
            try:
                response = self._http.request(method, url, content=body, headers=_HEADERS)
                pause = attempt.answered(response)
                if pause is None:
                    return response
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                pause = attempt.failed(error)
            time.sleep(pause)


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
    ) -> None:
        check_servers(servers)
        self._retries = retries
        self._urls = [table_url(server, table) for server in servers]
        self._http = httpx.AsyncClient(timeout=timeout, verify=verify)
        self._lookup: Lookup | None = None

    async def connect(self) -> None:
        """Asks both servers what they hold, if they have not been asked."""
        await self._connected()

    @property
    def params(self) -> TableParams | None:
        """The table's public parameters, on which both servers agree; None before `connect`."""
        return None if self._lookup is None else self._lookup.client.params

    async def lookup(self, indices: object) -> Array:
        """As `RemoteTable.lookup`."""
        lookup = await self._connected()
        parts = []
        for query in lookup.queries(indices):
            answers = await asyncio.gather(*map(self._post, lookup.urls, query.keys))
            parts.append(lookup.client.decode(query, *(a.content for a in answers)))
        return lookup.assemble(indices, parts)

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

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

    async def _connected(self) -> Lookup:
        if self._lookup is None:
            self._lookup = Lookup(await asyncio.gather(*map(self._describe, self._urls)))
        return self._lookup

    async def _describe(self, url: str) -> Description:
        return Description.parse(url, await self._send("GET", url, None))

    async def _post(self, url: str, key: bytes) -> httpx.Response:
        return await self._send("POST", url, key)

    async def _send(self, method: str, url: str, body: bytes | None) -> httpx.Response:
        attempt = Attempt(url, self._retries)
        while True:
            try:
                response = await self._http.request(method, url, content=body, headers=_HEADERS)
                pause = attempt.answered(response)
                if pause is None:
                    return response
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                pause = attempt.failed(error)
            await asyncio.sleep(pause)
