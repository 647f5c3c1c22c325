"""A client of a table on two servers, for synchronous programs."""

import os
import ssl
from collections.abc import Sequence
from pathlib import Path

from .._arrays import Array
from ..pir import Client, Query, TableParams
from ._async_remote import AsyncRemoteTable
from ._client._attempt import Reply
from ._http import Closing, LoopThread


class RemoteTable(Closing):
    """A table on two servers, for private lookups: `remote.lookup([17, 42])`.

    `servers` are the addresses of two servers, one of each party, in either order; both are asked
    concurrently. Each try takes at most `timeout` seconds. After a failed connection, or if a
    server is busy, the client retries up to `retries` times. `tls` is httpx's `verify`: True, False
    or an `ssl.SSLContext` that trusts the servers' certificates. Proxies of the environment are not
    used: a proxy for both queries would see both keys. `insecure_generator` is that of
    `nescio.Client`. `client_key` is the key that the servers know this client by, or one for each
    server in their order; a server that needs none ignores it.

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
        client_key: str | Sequence[str] | None = None,
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
        self._client_key = client_key
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
            client_key=self._client_key,
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
