"""Lookups without a network: both servers in this process, for tests and notebooks."""

from typing import Protocol

from .._arrays import Array
from ..errors import ArgumentError, MismatchError
from ._client import Client
from ._params import TableParams
from ._server import Server
from ._table import Table


class Lookups(Protocol):
    """A table on two servers: `RemoteTable`, `LocalTable`, or a class of the caller's own."""

    @property
    def params(self) -> TableParams:
        """The table's public parameters."""

    @property
    def layout(self) -> bytes:
        """The text that tells which content is where in the bins; empty for most tables."""

    def lookup(self, indices: object, *, layout: str | None = None) -> Array:
        """Looks up rows; see `Client.query` and `Client.decode`.

        `layout` is the digest of the layout (`params.layout`) for which the caller has computed
        places. Raises LayoutChangedError, before it sends anything for a table with another one:
        what is sent must not depend on whether the places fit that table too.
        """


class LocalTable:
    """A table whose two servers are in this process: `LocalTable(table).lookup([17, 42])`.

    It protects nothing, because one process has both keys. Every lookup takes the same steps as one
    on two machines: keys, answers, and the check of the rows unless `verify` is false. `other` is
    the second server's copy of the table, if it has one. `threads` of 0 uses all processors.

    Raises ArgumentError if the copies differ.
    """

    def __init__(
        self,
        table: Table,
        other: Table | None = None,
        *,
        verify: bool = True,
        insecure_generator: bool = False,
        threads: int = 0,
    ) -> None:
        self._servers = [
            Server(copy, party=party, threads=threads)
            for party, copy in enumerate((table, table if other is None else other))
        ]
        self._verify = verify
        self._insecure_generator = insecure_generator
        self._client: Client | None = None
        self._connect()

    @property
    def params(self) -> TableParams:
        """The table's public parameters, as of the last lookup."""
        return self._connect().params

    @property
    def layout(self) -> bytes:
        """The text that tells which content is where in the bins; empty for most tables."""
        return self._servers[0].table.layout

    def lookup(self, indices: object, *, layout: str | None = None) -> Array:
        """Looks up rows: the value of `table[indices]`; see `Lookups`.

        Raises the errors of `Client`.
        """
        while True:
            client = self._connect()
            client.check_layout(layout)
            query = client.query(indices)
            try:
                answers = [
                    server.answer(keys)
                    for server, keys in zip(self._servers, query.keys, strict=True)
                ]
                return client.decode(query, *answers)
            except MismatchError:
                if client.params.id == self._servers[0].params.id:
                    raise  # otherwise the table changed in the meantime

    def _connect(self) -> Client:
        """Returns the client of the table's current version."""
        table, params = self._servers[0].table, self._servers[0].params
        if self._client is not None and self._client.params.id == params.id:
            return self._client
        if self._servers[1].params != params:
            raise ArgumentError(
                f"the two copies differ: found {self._servers[1].params.describe()}, expected "
                f"{params.describe()}"
            )
        with table.reading() as state:
            self._client = Client(
                state.params,
                state.tree.tops,
                verify=self._verify,
                insecure_generator=self._insecure_generator,
            )
        return self._client
