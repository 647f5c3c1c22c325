"""A client of a table on two servers, for asyncio."""

import asyncio
import contextlib
import contextvars
import itertools
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

import numpy as np

from .._arrays import Array, ByteArray, as_array
from ..errors import (
    FileError,
    ForgedAnswerError,
    IndexRangeError,
    LayoutChangedError,
    MismatchError,
)
from ..pir import Client, Query, TableParams
from ._client._attempt import Reply, pause
from ._client._keys import headers_by_url
from ._client._newer import HEADER, newer_version
from ._exchange import (
    Agreed,
    Description,
    Lookup,
    TablesDifferError,
    agree,
    check_servers,
    table_url,
)
from ._http import Http, both
from ._trust import Trust, check_verify, fetch_layout, fetch_tops

_T = TypeVar("_T")
_FOLLOW_SECONDS = 0.1  # between two looks for a newer version


class _Version(NamedTuple):
    """The version that a client uses: the way to ask, the layout, the tops."""

    lookup: Lookup
    layout: bytes
    tops: ByteArray | None

    @property
    def params(self) -> TableParams:
        return self.lookup.client.params


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
        client_key: str | Sequence[str] | None = None,
    ) -> None:
        check_servers(servers)
        check_verify(verify, digest, known_tables)
        self._servers = list(servers)
        self._urls = [table_url(server, table) for server in servers]
        file = None if known_tables is None else Path(known_tables)
        self._trust = Trust(digest, file, servers, table)
        headers = headers_by_url(self._urls, client_key)
        self._http = Http(timeout=timeout, retries=retries, tls=tls, headers=headers)
        self._verify = verify
        self._timeout = timeout
        self._insecure_generator = insecure_generator
        self._version: _Version | None = None  # the one that was last fetched
        self._stale = True  # until both servers are asked (again)
        self._fetching: asyncio.Task[_Version] | None = None
        self._follow_after = 0.0

    @property
    def params(self) -> TableParams | None:
        """The table's parameters, as last fetched from both servers; None before `connect`."""
        return None if self._version is None else self._version.params

    @property
    def layout(self) -> bytes:
        """The text that tells which content is where in the bins, as last fetched; or empty."""
        return b"" if self._version is None else self._version.layout

    @property
    def client(self) -> Client | None:
        """The client of the version last fetched, for `exchange`; None before `connect`."""
        return None if self._version is None else self._version.lookup.client

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
            self._stale = True
            await self.connect()
            raise

    async def _until_agreed(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Retries while the servers' tables differ: an operator changes one after the other.

        The first time, at once: a version that a server no longer has was kept for long.
        """
        end = time.monotonic() + self._timeout
        for tries in itertools.count():
            used = self._version
            try:
                return await work()
            except (TablesDifferError, LayoutChangedError):
                raise
            except MismatchError:
                self._stale = self._stale or self._version is used
                wait = pause(tries - 1) if tries else 0.0
                if time.monotonic() + wait > end:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError

    async def close(self) -> None:
        """Closes the connections."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
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
        """Returns the way to ask, after fetching what both servers have if that is not known."""
        if self._version is None or self._stale:
            return (await asyncio.shield(self._fetch())).lookup
        return self._version.lookup

    def _fetch(self) -> asyncio.Task[_Version]:
        """Begins to fetch the newest version, unless that is under way: all wait for one task."""
        if self._fetching is None or self._fetching.done():
            context = contextvars.Context()
            self._fetching = asyncio.create_task(self._fetch_version(), context=context)
            self._fetching.add_done_callback(_ignore)
        return self._fetching

    async def _fetch_version(self) -> _Version:
        first, second = self._urls
        texts = await both(self._http.get(first), self._http.get(second))
        agreed = agree(
            [Description.parse(url, text) for url, text in zip(self._urls, texts, strict=True)],
            self._trust.accepts,
        )
        if self._version is None or self._version.params != agreed.params:
            self._version = await self._make_version(agreed)
        else:
            self._version = self._version._replace(
                lookup=Lookup(agreed.servers, self._version.lookup.client)
            )
        self._stale = False
        return self._version

    async def _make_version(self, agreed: Agreed) -> _Version:
        """Makes the client of the table that both servers have agreed on."""
        (params, servers), old = agreed, self._version
        allowed = self._insecure_generator
        client = Client(params, verify=False, insecure_generator=allowed)
        self._trust.check(params)
        layout = b"" if old is None else old.layout
        if params.layout != ("" if old is None else old.params.layout):
            layout = await fetch_layout(self._http, servers, params) if params.layout else b""
        tops = None
        if self._verify:
            known = None if old is None or old.tops is None else (old.params.id, old.tops)
            tops = await fetch_tops(self._http, servers, params, known)
            client = Client(params, tops, insecure_generator=allowed)
        return _Version(Lookup(servers, client), layout, tops)

    def _follow(self, lookup: Lookup, replies: tuple[Reply, Reply]) -> None:
        """Fetches a newer version that both servers name, while lookups use the one they have.

        The task's errors are ignored: the next lookup tries again, or finds the cause.
        """
        now = time.monotonic()
        busy = self._fetching is not None and not self._fetching.done()
        if busy or now < self._follow_after or HEADER not in replies[0].headers:
            return
        self._follow_after = now + _FOLLOW_SECONDS
        newer = newer_version(replies, lookup.client.params)
        if newer is not None and newer != self.params:
            with contextlib.suppress(FileError):
                if self._trust.accepts(newer):
                    self._fetch()

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
        replies = await both(first, second)
        self._follow(lookup, replies)
        return replies


def _ignore(task: asyncio.Task[_Version]) -> None:
    """Marks the error of a task that nobody may wait for as seen."""
    if not task.cancelled():
        task.exception()
