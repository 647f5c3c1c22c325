"""Changing a table at both of its servers."""

import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np

from .._arrays import Array, as_array, as_indices
from ..errors import ArgumentError, MismatchError
from ..pir import TableParams
from ..pir.change import Change, Operation
from ..pir.table import next_version
from .exchange import Description, check_servers, table_url
from .http import Http, LoopThread


class TableAdmin:
    """An operator's hand on a table: the same change at both servers, under one new version.

    `tokens` are the servers' admin tokens, in the servers' order. A change is made at one server
    after the other; clients that ask in between are refused by one of them and try again. If the
    second server fails, make the same change again with the same `version`: a server that has made
    it already is passed over.

    Only who may read and write the table should hold both tokens; it learns nothing of lookups.
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
            raise ArgumentError(f"two servers have two tokens: found {len(tokens)}")
        self._urls = [table_url(server, table) for server in servers]
        self._tokens = tokens
        self._http = Http(timeout=timeout, retries=retries, verify=verify)
        self._loop = LoopThread()

    def update(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """As `nescio.Table.update`, at both servers; returns the new parameters."""
        return self._loop.call(self._change("update", indices, rows, version))

    def insert(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """As `nescio.Table.insert`, at both servers; returns the new parameters."""
        return self._loop.call(self._change("insert", indices, rows, version))

    def delete(self, indices: object, *, version: str | None = None) -> TableParams:
        """As `nescio.Table.delete`, at both servers; returns the new parameters."""
        return self._loop.call(self._change("delete", indices, None, version))

    def close(self) -> None:
        """Closes the connections."""
        try:
            self._loop.call(self._http.close())
        finally:
            self._loop.close()

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

    async def _change(
        self, operation: Operation, indices: object, rows: object, version: str | None
    ) -> TableParams:
        before = [await self._describe(url) for url in self._urls]
        # Both at one version; or, if an earlier try broke off, one already at the new one.
        new = version or next_version(before[0].version)
        old = next((params for params in before if params.version != new), before[0])
        for url, token, params in zip(self._urls, self._tokens, before, strict=True):
            if params.version == new:
                continue
            if params != old:
                raise MismatchError(
                    f"the servers hold different tables: {before[0].describe()} and "
                    f"{before[1].describe()}; name the version that one of them has already",
                    found=before[1].version,
                    expected=before[0].version,
                )
            change = _make(operation, indices, rows, new, params)
            await self._send(url, token, change.encode(params), new)
        after = [await self._describe(url) for url in self._urls]
        if after[0] != after[1]:
            raise MismatchError(
                f"the servers differ after the change: {after[0].describe()} and "
                f"{after[1].describe()}",
                found=after[1].describe(),
                expected=after[0].describe(),
            )
        return after[0]

    async def _send(self, url: str, token: str, change: bytes, new: str) -> None:
        """Makes a change at one server, also if its first reply is lost and it is sent again."""
        authorization = {"Authorization": f"Bearer {token}"}
        try:
            await self._http.post(f"{url}/rows", change, headers=authorization)
        except MismatchError:
            if (await self._describe(url)).version != new:
                raise

    async def _describe(self, url: str) -> TableParams:
        return Description.parse(url, await self._http.get(url)).params


def _make(
    operation: Operation, indices: object, rows: object, version: str, params: TableParams
) -> Change:
    """The change, if it fits the table. Raises ArgumentError or IndexRangeError."""
    limit = params.rows + (operation == "insert")
    where = as_indices(indices, limit, "an index").reshape(-1)
    if operation == "delete":
        return Change(operation, version, where, np.zeros((0, 0), np.uint8))
    values: Array = as_array(rows, "the rows")
    expected = (len(where), *params.row_shape)
    if values.shape != expected or values.dtype != params.dtype:
        raise ArgumentError(
            f"the rows have shape {values.shape} and dtype {values.dtype}, "
            f"expected {expected} and {params.dtype}"
        )
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return Change(operation, version, where, raw.reshape(len(where), params.row_bytes))
