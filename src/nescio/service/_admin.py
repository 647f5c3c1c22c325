"""Changes a table on both of its servers."""

import contextlib
import ssl
from collections.abc import Sequence

import numpy as np

from .._arrays import as_indices
from ..errors import ArgumentError, MismatchError, NescioError
from ..pir import TableParams
from ..pir._change import Change, Operation, content_of, head_of
from ..pir._table import rows_as_bytes
from ..pir._versions import next_version
from ._exchange import Description, check_servers, check_token, table_url
from ._http import Closing, Http, LoopThread


class TableAdmin(Closing):
    """The admin API of a table: applies a change to both servers, under one new version.

    `tokens` are the servers' admin tokens, in the order of `servers`. Both servers are asked first
    if they would make the change: the token, the version, which must be new, and the limits. Only
    then is it made, at one server after the other; clients that ask in between are refused by one
    of them and retry. If the second server fails at that point, the same call finishes the change
    later, also from another process: it recognizes the change that only one server has. Until
    then, lookups fail. Raises MismatchError if another operator was faster.

    Both tokens together allow reading and writing the table, but reveal nothing about lookups.
    """

    def __init__(
        self,
        servers: Sequence[str],
        table: str,
        tokens: Sequence[str],
        *,
        timeout: float = 300.0,
        retries: int = 2,
        verify: bool | ssl.SSLContext = True,
    ) -> None:
        check_servers(servers)
        if len(tokens) != 2:
            raise ArgumentError(f"tokens: found {len(tokens)}, expected two tokens, one per server")
        for token in tokens:
            check_token(token)
        urls = [table_url(server, table) for server in servers]
        self._tokens = dict(zip(urls, tokens, strict=True))
        self._http = Http(timeout=timeout, retries=retries, verify=verify)
        self._loop = LoopThread()

    def update(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.update` on both servers; returns the new parameters."""
        return self._loop.call(self._change("update", indices, rows, version))

    def insert(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.insert` on both servers; returns the new parameters."""
        return self._loop.call(self._change("insert", indices, rows, version))

    def delete(self, indices: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.delete` on both servers; returns the new parameters."""
        return self._loop.call(self._change("delete", indices, None, version))

    def close(self) -> None:
        """Closes the connections; a second call has no effect."""
        self._loop.close(self._http.close)

    async def _change(
        self, operation: Operation, indices: object, rows: object, version: str | None
    ) -> TableParams:
        servers = await self._describe()
        first, second = (server.params for server in servers)
        if first == second:
            if first.version == version:
                raise ArgumentError(
                    f"both servers have version {version!r} already: choose another version"
                )
            new = version or next_version(first.version)
            behind = servers
            body = _make(operation, indices, rows, new, first).encode(first)
        else:
            behind, body = _unfinished(servers, operation, indices, rows, version)
        for server in behind:  # before anything is changed
            await self._post(server.url, "rows/check", head_of(body))
        return await self._make_all(servers, behind, body)

    async def _make_all(
        self, servers: Sequence[Description], behind: Sequence[Description], body: bytes
    ) -> TableParams:
        """Makes a change at the servers that lack it; returns the parameters of both."""
        changed = [server for server in servers if server not in behind]
        for server in behind:
            try:
                changed.append(await self._post(server.url, "rows", body))
            except NescioError as error:
                if changed:
                    error.add_note(_incomplete(changed[0], server.url))
                raise
        if changed[0].params != changed[1].params:
            raise _different(changed, " after the change")
        return changed[0].params

    async def _post(self, url: str, path: str, body: bytes) -> Description:
        """Sends a change, which a server applies only once, or its head; returns the table."""
        authorization = {"Authorization": f"Bearer {self._tokens[url]}"}
        reply = await self._http.post(f"{url}/{path}", body, headers=authorization)
        return Description.parse(url, reply.body)

    async def _describe(self) -> list[Description]:
        """Describes both servers, party 0 first, so that all operators change them in one order."""
        found = [Description.parse(url, await self._http.get(url)) for url in self._tokens]
        first, second = sorted(found, key=lambda server: server.party)
        if first.party == second.party:
            raise ArgumentError(
                f"servers: found two of party {first.party}, {first.url} and {second.url}, "
                "expected one of each party"
            )
        return [first, second]


def _different(servers: Sequence[Description], advice: str) -> MismatchError:
    first, second = (server.params.describe() for server in servers)
    return MismatchError(
        f"the servers differ{advice}: {first} and {second}", found=second, expected=first
    )


def _incomplete(changed: Description, failed: str) -> str:
    return (
        f"{changed.url} has the change, version {changed.params.version!r}, {failed} does not: "
        "repeat the same call to finish it"
    )


def _unfinished(
    servers: Sequence[Description],
    operation: Operation,
    indices: object,
    rows: object,
    version: str | None,
) -> tuple[list[Description], bytes]:
    """Finds the server that lacks this change, which the other server made last.

    Raises MismatchError if the servers differ for another reason.
    """
    for ahead, behind in (servers, servers[::-1]):
        new = ahead.params.version
        if version in (None, new) and ahead.last_change is not None:
            with contextlib.suppress(ArgumentError):  # it does not fit this server
                body = _make(operation, indices, rows, new, behind.params).encode(behind.params)
                if content_of(body).hex() == ahead.last_change:
                    return [behind], body
    raise _different(
        servers, "; if a change was interrupted, repeat the same call to finish it at both"
    )


def _make(
    operation: Operation, indices: object, rows: object, version: str, params: TableParams
) -> Change:
    """Makes a change to the table. Raises ArgumentError or IndexRangeError if it does not fit."""
    limit = params.rows + (operation == "insert")
    where = as_indices(indices, limit, "an index").reshape(-1)
    if operation == "delete":
        return Change(operation, version, where, np.zeros((0, 0), np.uint8))
    return Change(operation, version, where, rows_as_bytes(rows, len(where), params))
