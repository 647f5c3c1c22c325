"""A server whose table another one may replace while it answers."""

import threading
from collections.abc import Sequence

from ..errors import MismatchError
from ..pir import Server, Table, TableParams
from ..pir._replica import DeviceReplica
from ..pir._wire import QueryMessage, table_of

KEPT_SECONDS = 60.0


class ReloadedServer(Server):
    """A server that hands its work to another one, which `replace` exchanges.

    The one before answers queries for its versions for `kept_seconds` more: they are on their way,
    or the other party has not replaced its table yet. Its memory is released then.
    """

    def __init__(self, server: Server, kept_seconds: float = KEPT_SECONDS) -> None:
        self._now = server
        self._before: Server | None = None
        self._kept_seconds = kept_seconds
        self._timer: threading.Timer | None = None

    def replace(self, server: Server) -> None:
        """Lets another server of the same party answer from now on."""
        if self._timer is not None:
            self._timer.cancel()
        self._before, self._now = self._now, server
        self._timer = threading.Timer(self._kept_seconds, self._forget, [self._before])
        self._timer.daemon = True
        self._timer.start()

    def _forget(self, server: Server) -> None:
        if self._before is server:
            self._before = None

    @property
    def before(self) -> Server | None:
        """The server before the present one, as long as it answers."""
        return self._before

    @property
    def table(self) -> Table:  # type: ignore[override]
        """The present table."""
        return self._now.table

    @property
    def party(self) -> int | None:  # type: ignore[override]
        """The number of this server's party."""
        return self._now.party

    @property
    def threads(self) -> int:
        """The number of worker threads."""
        return self._now.threads

    @property
    def batch_keys(self) -> int:
        """The batch size in keys for a bin above which larger batches gain little."""
        return self._now.batch_keys

    @property
    def lanes(self) -> int:
        """The number of batches to answer at the same time."""
        return self._now.lanes

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices that compute the answers."""
        return self._now.devices

    @property
    def replica(self) -> DeviceReplica | None:
        """The copy of the table on its devices; None if the CPU answers."""
        return self._now.replica

    def pass_bytes(self, tables: int) -> int:
        """Returns the bytes of the records and of the first `tables - 1` hash tables."""
        return self._now.pass_bytes(tables)

    def measured_read(self) -> float:
        """Reads all records with the server's threads; returns the bytes a second, about."""
        return self._now.measured_read()

    def params_for(self, query: object) -> TableParams:
        """Returns the parameters of the version that a query names; else the current ones."""
        found, before = self._now.params_for(query), self._before
        if found.id != table_of(query) and before is not None:
            older = before.params_for(query)
            return older if older.id == table_of(query) else found
        return found

    def knows(self, query: bytes) -> bool:
        """Tests if `check` can judge the version that a query names, without a call of `learn`."""
        return self._now.knows(query)

    def learn(self) -> None:
        """Asks for the table's latest versions, if they are elsewhere."""
        self._now.learn()

    def check(self, query: bytes) -> QueryMessage:
        """Checks a query to the present table or the one before. Raises the errors of `answer`."""
        before = self._before
        try:
            return self._now.check(query)
        except MismatchError as error:
            if before is None:
                raise
            try:
                return before.check(query)
            except MismatchError:
                raise error from None

    def answer_batch(self, queries: Sequence[QueryMessage]) -> list[bytes | MismatchError]:
        """Answers checked queries in one pass over each table that they are for."""
        now, before = self._now, self._before
        if before is None:
            return now.answer_batch(queries)
        old = _versions(before.table) - _versions(now.table)
        late = [query for query in queries if query.table in old]
        if not late:
            return now.answer_batch(queries)
        recent = [query for query in queries if query.table not in old]
        first = iter(before.answer_batch(late))
        second = iter(now.answer_batch(recent) if recent else ())
        return [next(first if query.table in old else second) for query in queries]


def answered_tables(server: Server) -> list[Table]:
    """Lists the tables that a server answers: the present one, and the one before if it is kept."""
    found = [server.table]
    if isinstance(server, ReloadedServer) and (before := server.before) is not None:
        found.append(before.table)
    return found


def _versions(table: Table) -> set[bytes]:
    """Returns the ids of the versions that a table answers."""
    return {params.id for params in table.versions}
