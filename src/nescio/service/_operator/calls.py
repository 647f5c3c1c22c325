"""Calls of an operator: what to change, and how to recognize a change that was made."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..._arrays import IndexArray, as_array
from ...errors import ArgumentError, IndexRangeError, MismatchError
from ...pir._change import Change, content_of
from ...pir._params import MAX_ROWS
from ...pir._rows import Operation
from ...pir._vacancy import NO_ROWS
from ...pir._versions import next_version
from .._exchange import Description
from .._row_names import Needed, RowNames
from .parties import Parties
from .repair import different
from .vacant import MAX_COUNT


@dataclass
class Call:
    """A call of the operator: what to change, and the version that it names."""

    operation: Operation
    names: object
    rows: object
    version: str | None
    where: IndexArray = field(default_factory=lambda: NO_ROWS, init=False)
    """The rows of the change that was made last: in an append, those that it took."""
    left: int = field(default=0, init=False)
    """The rows that are still vacant after this append."""

    def change(self, names: RowNames, version: str, *, limit: int | None = None) -> Change:
        """Makes the change of a version. Raises the errors of `RowNames.change`."""
        change = names.change(self.operation, self.names, self.rows, version, limit=limit)
        self.where = change.indices
        self.left = names.vacant.total - (0 if limit is not None else len(self.where))
        return change

    async def fetch(self, parties: Parties, server: Description) -> RowNames:
        """Fetches what names the rows of the call at a server."""
        names = await RowNames.fetch(parties.http, server)
        if self.operation in _VACANT and names.kind.words == 1 and not server.params.is_cut:
            return names.with_vacant(await parties.vacant(server.url, self._count))
        return names

    @property
    def _count(self) -> int:
        """The vacant rows that the call takes."""
        return append_rows(self.rows) if self.operation == "append" else 0

    def check_vacant(self, servers: Sequence[Description], names: Mapping[str, RowNames]) -> None:
        """Raises MismatchError if a call is about vacant rows, and both servers have others."""
        first, second = (names[server.url].vacant for server in servers)
        if (first.total, first.check) != (second.total, second.check):
            raise MismatchError(
                f"the servers have equal rows, but {first.total} and {second.total} vacant ones, "
                "expected the same vacant rows: start both with the same --spare, or from "
                "snapshots of one version",
                found=str(second.total),
                expected=str(first.total),
            )


_VACANT = ("append", "clear", "grow")


def append_rows(rows: object) -> int:
    """Returns the number of rows to append. Raises ArgumentError if they are too many."""
    values = as_array(rows, "the rows")
    count = len(values) if values.ndim else 0
    if values.ndim == 0 or count > MAX_COUNT:
        raise ArgumentError(
            f"the rows have shape {values.shape}, expected an array of at most {MAX_COUNT} rows"
        )
    return count


def growth_for(call: Call) -> Call:
    """Returns the call that grows a table for an append, by an eighth or more."""
    return Call("grow", Needed(append_rows(call.rows)), None, None)


def next_versions(servers: Sequence[Description]) -> list[str]:
    """Lists versions to try: each server's own choice, because one may have forgotten some."""
    chosen = [server.next_version or next_version(server.params.version) for server in servers]
    return list(dict.fromkeys(chosen))


def made_last(servers: Sequence[Description], names: Mapping[str, RowNames], call: Call) -> bool:
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


def unfinished(
    servers: Sequence[Description], names: Mapping[str, RowNames], call: Call
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
    raise different(
        servers,
        "; if a change was interrupted, repeat the same call to finish it at both, or "
        "use `nescio admin repair` with its journal",
    )
