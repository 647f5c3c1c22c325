"""A client of a table on two servers, for asyncio."""

import asyncio
import contextlib
import contextvars
import itertools
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

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
from ._client._keys import client_keys
from ._client._newer import HEADER, newer_version
from ._client._party import Party, Request
from ._client._progress import Pending, Progress
from ._exchange import (
    Agreed,
    Description,
    Lookup,
    TablesDifferError,
    agree,
    replica_urls,
    table_url,
)
from ._http import Http, both
from ._trust import Trust, check_verify, fetch_layout, fetch_tops

_T = TypeVar("_T")
_LOOK_SECONDS = 0.1  # between two looks for a newer version
_FOLLOW_SECONDS = 1.0  # that a version is used at least, while it is not among the oldest kept


class _Version(NamedTuple):
    """The version that a client uses: the way to ask, the layout, the tops."""

    lookup: Lookup
    layout: bytes
    tops: ByteArray | None
    parties: tuple[Party, Party]

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
        servers: Sequence[str | Sequence[str]],
        table: str,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        deadline: float | None = None,
        hedge: float | str | None = None,
        client_key: str | Sequence[str] | None = None,
        tls: bool | ssl.SSLContext = True,
        verify: bool = True,
        digest: str | None = None,
        known_tables: str | Path | None = None,
        insecure_generator: bool = False,
    ) -> None:
        entries = replica_urls(servers)
        check_verify(verify, digest, known_tables)
        urls = [[table_url(server, table) for server in entry] for entry in entries]
        keys = client_keys(client_key, urls)
        file = None if known_tables is None else Path(known_tables)
        self._servers = [url for entry in entries for url in entry]
        self._trust = Trust(digest, file, [entry[0] for entry in entries], table)
        Progress(deadline)
        self._deadline = deadline
        self._http = Http(timeout=timeout, retries=retries, tls=tls, keys=keys)
        self._parties = [
            Party(self._http, f"servers[{i}]", own, hedge) for i, own in enumerate(urls)
        ]
        self._verify = verify
        self._timeout = timeout
        self._insecure_generator = insecure_generator
        self._version: _Version | None = None  # the one that was last fetched
        self._stale = True  # until both servers are asked (again)
        self._fetching: asyncio.Task[_Version] | None = None
        self._awaited: list[Pending] = []  # from either party, for the error at the deadline
        self._look_after = 0.0
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
        """Fetches the table's parameters from both servers, unless that is done already.

        Raises ServerTimeoutError at the table's deadline.
        """
        progress = Progress(self._deadline, "not connected")
        await self._bounded(self._until_agreed(self._agreed, progress), progress)

    async def lookup(
        self, indices: object, *, layout: str | None = None, deadline: float | None = None
    ) -> Array:
        """Looks up rows; see `RemoteTable.lookup`."""
        progress = Progress(self._deadline if deadline is None else deadline)
        sent = False

        async def once() -> Array:
            nonlocal sent
            version = await self._agreed()
            client = version.lookup.client
            client.check_layout(layout)
            try:
                places = client.places(indices)
            except IndexRangeError:
                if sent:  # the servers see what they see of places that a smaller table still has
                    zeros = np.zeros(as_array(indices, "").shape, int)
                    await self._lookup_once(version, zeros, progress)
                raise
            sent = True
            return await self._lookup_once(version, places, progress)

        return await self._bounded(self._until_agreed(once, progress), progress)

    async def _bounded(self, work: Coroutine[Any, Any, _T], progress: Progress) -> _T:
        """Cancels `work` at the deadline. Raises the error that names what was not there then."""
        try:
            async with asyncio.timeout(progress.seconds):
                return await work
        except TimeoutError:
            pending = [one for party in self._parties for one in party.pending]
            raise progress.error([*pending, *self._awaited]) from None

    async def exchange(self, query: Query) -> tuple[Reply, Reply]:
        """Sends a query of `client` to both parties concurrently; returns the raw replies.

        Raises MismatchError if a table has changed since `params` were fetched, and fetches them
        again.
        """
        try:
            return await self._exchange(await self._agreed(), query, Progress(None))
        except MismatchError:
            self._stale = True
            await self.connect()
            raise

    async def _until_agreed(self, work: Callable[[], Awaitable[_T]], progress: Progress) -> _T:
        """Retries while the servers' tables differ: an operator changes one after the other.

        The first time, at once: a version that a server no longer has was kept for long.
        """
        end = min(time.monotonic() + self._timeout, progress.end)
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
        for party in self._parties:
            await party.close()
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

    async def _agreed(self) -> _Version:
        """Returns the version to ask for, after fetching what both have if that is not known."""
        if self._version is None or self._stale:
            return await asyncio.shield(self._fetch())
        return self._version

    def _fetch(self) -> asyncio.Task[_Version]:
        """Begins to fetch the newest version, unless that is under way: all wait for one task."""
        if self._fetching is None or self._fetching.done():
            context = contextvars.Context()
            self._fetching = asyncio.create_task(self._fetch_version(), context=context)
            self._fetching.add_done_callback(_ignore)
        return self._fetching

    async def _fetch_version(self) -> _Version:
        found = await both(*(party.describe() for party in self._parties))
        agreed = agree(found, self._trust.accepts)
        old = self._version
        by_party = sorted(zip(found, self._parties, strict=True), key=lambda own: own[0][0].party)
        parties = by_party[0][1], by_party[1][1]
        if old is None or old.params != agreed.params:
            self._version = await self._make_version(agreed, parties)
        else:
            lookup = Lookup(agreed, old.lookup.client)
            self._version = old._replace(lookup=lookup, parties=parties)
        self._stale = False
        return self._version

    async def _make_version(self, agreed: Agreed, parties: tuple[Party, Party]) -> _Version:
        """Makes the client of the table that both parties have agreed on."""
        params, old = agreed.params, self._version
        servers = [server for own in agreed.servers for server in own]
        allowed = self._insecure_generator
        client = Client(params, verify=False, insecure_generator=allowed)
        self._trust.check(params)
        layout = b"" if old is None else old.layout
        if params.layout != ("" if old is None else old.params.layout):
            with self._awaiting("the table's layout", servers):
                layout = await fetch_layout(self._http, servers, params) if params.layout else b""
        tops = None
        if self._verify:
            known = None if old is None or old.tops is None else (old.params.id, old.tops)
            with self._awaiting("the hashes that rows are checked against", servers):
                tops = await fetch_tops(self._http, servers, params, known)
            client = Client(params, tops, insecure_generator=allowed)
        return _Version(Lookup(agreed, client), layout, tops, parties)

    @contextlib.contextmanager
    def _awaiting(self, what: str, servers: Sequence[Description]) -> Iterator[None]:
        """Notes what is fetched from any of the servers."""
        urls = ", ".join(server.url for server in servers)
        self._awaited = [Pending("", f"no server sent {what} ({urls})", servers[0].url)]
        try:
            yield
        finally:
            self._awaited = []

    def _follow(self, lookup: Lookup, replies: tuple[Reply, Reply]) -> None:
        """Fetches a newer version that both servers name, while lookups use the one they have.

        A version that was just fetched is used for a second, unless servers will soon drop it: many
        changes a second would otherwise cost more requests than the lookups. The task's errors are
        ignored: the next lookup tries again, or finds the cause.
        """
        now = time.monotonic()
        busy = self._fetching is not None and not self._fetching.done()
        if busy or now < self._look_after or HEADER not in replies[0].headers:
            return
        self._look_after = now + _LOOK_SECONDS
        newer = newer_version(replies, lookup.client.params)
        late = lookup.client.params != self.params  # a reply to a query for the version before
        if newer is None or late or newer.params == self.params:
            return
        if newer.urgent or now >= self._follow_after:
            with contextlib.suppress(FileError):
                if self._trust.accepts(newer.params):
                    self._follow_after = now + _FOLLOW_SECONDS
                    self._fetch()

    async def _lookup_once(self, version: _Version, indices: object, progress: Progress) -> Array:
        lookup, parts = version.lookup, []
        for query in lookup.queries(indices):
            first, second = await self._exchange(version, query, progress)
            try:
                parts.append(lookup.client.decode(query, first.body, second.body))
            except ForgedAnswerError as error:
                raise ForgedAnswerError(f"{' and '.join(self._servers)}: {error}") from error
        return lookup.assemble(indices, parts)

    async def _exchange(
        self, version: _Version, query: Query, progress: Progress
    ) -> tuple[Reply, Reply]:
        """Sends each key to the servers of its own party, and to no other."""
        max_bytes = version.lookup.max_answer_bytes(query)
        first, second = (
            own.answer(Request(party, version.params, query.keys[party], max_bytes), progress)
            for party, own in enumerate(version.parties)
        )
        replies = await both(first, second)
        self._follow(version.lookup, replies)
        return replies


def _ignore(task: asyncio.Task[_Version]) -> None:
    """Marks the error of a task that nobody may wait for as seen."""
    if not task.cancelled():
        task.exception()
