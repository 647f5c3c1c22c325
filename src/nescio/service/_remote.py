"""A client of a table on two servers, for synchronous programs."""

import os
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._arrays import Array
from ..pir import Client, Query, TableParams
from ._async_remote import AsyncRemoteTable
from ._client._attempt import Reply
from ._http import Closing, LoopThread


class RemoteTable(Closing):
    """A table on two servers, for private lookups: `remote.lookup([17, 42])`.

    `servers` are the addresses of two servers, one of each party, in either order; both are asked
    concurrently. In place of an address, a list has those of several servers of the same party,
    its replicas: one is asked, another one if it fails. A server that fails is left alone for a
    second, then longer, until a probe succeeds. With `hedge` (seconds, or a quantile of the last
    times as "p95"), a second replica gets the same key if the first has not answered by then; the
    first answer counts. The replicas of a party are one party: they see the same keys. A key never
    goes to the other party, and no second key is made of a query.

    Each try takes at most `timeout` seconds. After a failed connection, or if a server is busy, the
    client retries up to `retries` times, after the time that the server names. `deadline` bounds
    the seconds of the connection, and of each whole lookup. `client_key` is the key by which the
    servers know their clients, or two, in the order of `servers`. `tls` is httpx's `verify`: True,
    False or an `ssl.SSLContext` that trusts the servers' certificates. Proxies of the environment
    are not used: a proxy for both queries would see both keys. `insecure_generator` is that of
    `nescio.Client`.

    A lookup uses the newest version of the table that both servers answer. When both name a newer
    one, the client fetches it in the background, and lookups go on with the one it has. While the
    servers have no version in common, because an operator is changing them, it retries for
    `timeout` seconds. A lookup that is repeated with another version makes new keys: a key is sent
    to one party only, and which versions are asked does not depend on the rows.

    Rows are checked against the table's digest, on which both servers must agree, unless `verify`
    is false. `digest` names the digest that the table must have, in hexadecimal. `known_tables` is
    a file that keeps the digest of the first connection; later ones must have the same. With
    either, no other version is used, for as long as both servers keep that one.

    Raises ForgedAnswerError, and repeats nothing, if a server has answered wrongly; all rows of a
    lookup are checked before one is returned, and the error is the same whichever they are.
    Raises ServiceError, with the party and the server's URL, if all servers of a party fail;
    MismatchError if the servers' tables differ; MalformedMessageError for an invalid reply;
    ArgumentError for an insecure generator that is not allowed. Close the table, or use it as a
    context manager. It may be used from several threads, and after a fork. Security model: see
    `nescio.Client`; the servers also learn the client's address.
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
        self._servers = servers
        self._name = table
        self._options: dict[str, Any] = {
            "timeout": timeout,
            "retries": retries,
            "deadline": deadline,
            "hedge": hedge,
            "client_key": client_key,
            "tls": tls,
            "verify": verify,
            "digest": digest,
            "known_tables": known_tables,
            "insecure_generator": insecure_generator,
        }
        self._left: list[object] = []
        self._begin()

    def _begin(self) -> None:
        # Made first, because it raises for invalid arguments.
        self._remote = AsyncRemoteTable(self._servers, self._name, **self._options)
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

    def lookup(
        self, indices: object, *, layout: str | None = None, deadline: float | None = None
    ) -> Array:
        """Looks up the rows at `indices`: the value of `table[indices]`.

        `layout` is that of `nescio.pir.Lookups`. `deadline` bounds the seconds of the whole lookup,
        with all that is tried again, in place of the table's own.

        A lookup of a table in bins has a place for each slot, on the last axis of `indices`; see
        `nescio.Client.query`. The servers learn the number of lookups. Lookups that exceed the
        servers' quota of one request are split over several requests. Raises IndexRangeError,
        ServiceError, ServerTimeoutError at the deadline, or MismatchError if the servers' tables
        still differ after `timeout` or at the deadline.
        """
        remote = self._here()  # may replace the loop
        return self._loop.call(remote.lookup(indices, layout=layout, deadline=deadline))

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
