"""Changes a table on both of its servers."""

import ssl
from collections.abc import Sequence

import numpy as np

from .._arrays import as_indices
from ..errors import ArgumentError, MismatchError, NescioError
from ..pir import TableParams
from ..pir._change import Change, Operation
from ..pir._table import next_version, rows_as_bytes
from ._exchange import Description, check_servers, check_token, table_url
from ._http import Closing, Http, LoopThread


class TableAdmin(Closing):
    """The admin API of a table: applies a change to both servers, under one new version.

    `tokens` are the servers' admin tokens, in the order of `servers`. A change is applied to one
    server after the other; clients that ask in between are refused by one of them and retry. If the
    second server fails, repeat the change with the version in the error's note: a server that has
    this version already is skipped. Raises MismatchError if another operator was faster.

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
        before = await self._describe()
        new = version or next_version(before[0].params.version)
        self._check(before, version, new)
        changes = {p: _make(operation, indices, rows, new, p) for p in {d.params for d in before}}
        changed = [server for server in before if server.params.version == new]
        for server in before:
            if server in changed:
                continue
            body = changes[server.params].encode(server.params)
            try:
                changed.append(await self._send(server.url, body))
            except NescioError as error:
                if changed:
                    error.add_note(_incomplete(changed[0].url, server.url, new))
                raise
        if changed[0].params != changed[1].params:
            raise _different(changed, " after the change")
        return changed[0].params

    @staticmethod
    def _check(before: Sequence[Description], version: str | None, new: str) -> None:
        """Raises, before anything is sent, if the change would not leave both servers equal."""
        first, second = (server.params for server in before)
        if first == second:
            if first.version == new:
                raise ArgumentError(
                    f"both servers have version {new!r} already: choose another version"
                )
        elif version is None or new not in (first.version, second.version):
            raise _different(before, "; if a change was interrupted, repeat it with its version")
        elif first.version == second.version:
            raise _different(before, "")

    async def _send(self, url: str, body: bytes) -> Description:
        """Sends a change, which a server applies only once; returns the changed table."""
        authorization = {"Authorization": f"Bearer {self._tokens[url]}"}
        reply = await self._http.post(f"{url}/rows", body, headers=authorization)
        return Description.parse(url, reply.body)

    async def _describe(self) -> list[Description]:
        """Describes both servers, party 0 first, so that all operators change them in one order."""
        found = [Description.parse(url, await self._http.get(url)) for url in self._tokens]
        return sorted(found, key=lambda server: server.party)


def _different(servers: Sequence[Description], advice: str) -> MismatchError:
    first, second = (server.params.describe() for server in servers)
    return MismatchError(
        f"the servers differ{advice}: {first} and {second}", found=second, expected=first
    )


def _incomplete(changed: str, failed: str, version: str) -> str:
    return f"{changed} has the change, {failed} does not: repeat it with version={version!r}"


def _make(
    operation: Operation, indices: object, rows: object, version: str, params: TableParams
) -> Change:
    """Makes a change to the table. Raises ArgumentError or IndexRangeError if it does not fit."""
    limit = params.rows + (operation == "insert")
    where = as_indices(indices, limit, "an index").reshape(-1)
    if operation == "delete":
        return Change(operation, version, where, np.zeros((0, 0), np.uint8))
    return Change(operation, version, where, rows_as_bytes(rows, len(where), params))
