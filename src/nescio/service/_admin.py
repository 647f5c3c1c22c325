"""Changes a table on both of its servers."""

import contextlib
import ssl
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..errors import (
    ArgumentError,
    IndexRangeError,
    MismatchError,
    NescioError,
    ServerRefusedError,
)
from ..pir import TableParams
from ..pir._change import Change, content_of, head_of
from ..pir._params import MAX_ROWS
from ..pir._rows import Operation
from ..pir._versions import check_version, next_version
from ._exchange import Description, check_servers, check_token, table_url
from ._http import Closing, Http, LoopThread
from ._row_names import RowNames


class _Call(NamedTuple):
    """A call of the operator: what to change, and the version that it names."""

    operation: Operation
    names: object
    rows: object
    version: str | None

    def change(self, names: RowNames, version: str, *, limit: int | None = None) -> Change:
        """Makes the change of a version. Raises the errors of `RowNames.change`."""
        return names.change(self.operation, self.names, self.rows, version, limit=limit)


class TableAdmin(Closing):
    """The admin API of a table: applies a change to both servers, under one new version.

    `tokens` are the servers' admin tokens, in the order of `servers`. Both servers are asked first
    if they would make the change: the token, the version, which must be new, and the limits. Only
    then is it made, at one server after the other; clients that ask in between are refused by one
    of them and retry. If the second server fails at that point, the same call finishes the change
    later, also from another process: it recognizes the change that only one server has. Until
    then, lookups fail. An insertion or a deletion that both servers made last is refused unless it
    names a version, because it may repeat a call whose reply was lost. Raises MismatchError if
    another operator was faster.

    In a keyed table, `update`, `insert` and `delete` take keys, and do what `nescio.pir.KeyedTable`
    does; the keys' hashes travel, and both servers move the same rows.

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
        tls: bool | ssl.SSLContext = True,
    ) -> None:
        check_servers(servers)
        if len(tokens) != 2:
            raise ArgumentError(f"tokens: found {len(tokens)}, expected two tokens, one per server")
        for token in tokens:
            check_token(token)
        urls = [table_url(server, table) for server in servers]
        self._tokens = dict(zip(urls, tokens, strict=True))
        self._http = Http(timeout=timeout, retries=retries, tls=tls)
        self._loop = LoopThread()

    def update(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.update` on both servers; returns the new parameters."""
        return self._loop.call(self._change(_Call("update", indices, rows, version)))

    def insert(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.insert` on both servers; returns the new parameters."""
        return self._loop.call(self._change(_Call("insert", indices, rows, version)))

    def delete(self, indices: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.delete` on both servers; returns the new parameters."""
        return self._loop.call(self._change(_Call("delete", indices, None, version)))

    def close(self) -> None:
        """Closes the connections; a second call has no effect."""
        self._loop.close(self._http.close)

    async def _change(self, call: _Call) -> TableParams:
        version = call.version
        if version is not None:
            check_version(version)
        servers = await self._describe()
        names = {server.url: await RowNames.fetch(self._http, server) for server in servers}
        first, second = (server.params for server in servers)
        if first != second:
            behind, body = _unfinished(servers, names, call)
            await self._check(behind, body)
            return await self._make_all(servers, behind, body)
        if version in (None, first.version) and _made_last(servers, names, call):
            if version is not None:
                return first
            if call.operation != "update":
                raise _repeated(first)
        if version == first.version:
            raise ArgumentError(
                f"both servers have version {version!r} already: choose another version"
            )
        versions = [version] if version is not None else _next_versions(servers)
        for new in versions:
            body = call.change(names[servers[0].url], new).encode(first)
            try:
                await self._check(servers, body)
                break
            except ServerRefusedError as error:
                if new == versions[-1] or error.code != "impossible_change":
                    raise
        return await self._make_all(servers, servers, body)

    async def _check(self, servers: Sequence[Description], body: bytes) -> None:
        """Asks servers if they would make a change, before it is made at any of them."""
        for server in servers:
            await self._post(server.url, "rows/check", head_of(body))

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
        f"{changed.url} has the change, version {changed.params.version!r}; {failed} may not have "
        "it: repeat the same call to finish it"
    )


def _repeated(params: TableParams) -> ArgumentError:
    return ArgumentError(
        f"version: found None and a call that equals the last change of both servers, to version "
        f"{params.version!r}: if its reply was lost, it is done; to make it once more, pass a new "
        "version"
    )


def _next_versions(servers: Sequence[Description]) -> list[str]:
    """Lists versions to try: each server's own choice, because one may have forgotten some."""
    chosen = [server.next_version or next_version(server.params.version) for server in servers]
    return list(dict.fromkeys(chosen))


def _made_last(servers: Sequence[Description], names: Mapping[str, RowNames], call: _Call) -> bool:
    """Tests if the last change of both servers was this one."""
    params = servers[0].params
    with contextlib.suppress(ArgumentError, IndexRangeError, ValueError):
        change = call.change(names[servers[0].url], params.version, limit=MAX_ROWS)
        return all(
            server.changed_id is not None
            and content_of(change.encode(params, bytes.fromhex(server.changed_id))).hex()
            == server.last_change
            for server in servers
        )
    return False


def _unfinished(
    servers: Sequence[Description], names: Mapping[str, RowNames], call: _Call
) -> tuple[list[Description], bytes]:
    """Finds the server that lacks this change, which the other server made last.

    Raises MismatchError if the servers differ for another reason.
    """
    for ahead, behind in (servers, servers[::-1]):
        new = ahead.params.version
        if call.version in (None, new) and ahead.last_change is not None:
            with contextlib.suppress(ArgumentError):  # it does not fit this server
                body = call.change(names[behind.url], new).encode(behind.params)
                if content_of(body).hex() == ahead.last_change:
                    return [behind], body
    raise _different(
        servers, "; if a change was interrupted, repeat the same call to finish it at both"
    )
