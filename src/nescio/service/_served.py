"""The tables that one party serves, and what it says of them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from starlette.requests import Request

from .._arrays import as_count
from ..errors import ArgumentError
from ..pir import Server, Table, TableParams
from ..pir._change import row_kind
from ..pir._state import TableState
from ..pir._versions import LastChange
from . import _quotas as refuse
from ._kept import described_versions
from ._quotas import Quotas
from ._reloaded import answered_tables

_NAME = re.compile(r"[A-Za-z0-9._~-]{1,128}")


class _Described(NamedTuple):
    """A description of a table, and what it depends on."""

    state: TableState
    before: TableState | None
    last: LastChange | None
    next_version: str | None
    body: bytes


class Served:
    """The servers of one party's tables, by name.

    Raises ArgumentError for a server of another party, a name that does not fit into a URL, quotas
    that do not allow a request for one row, or if there is no table.
    """

    def __init__(self, servers: Mapping[str, Server], party: int, quotas: Quotas) -> None:
        self.party = as_count(party, "party", 0, 1)
        self.quotas = quotas
        self._servers = dict(servers)
        self._described: dict[str, _Described] = {}
        if not servers:
            raise ArgumentError("servers: found none, expected at least one table")
        for name, server in servers.items():
            self._check(name, server)

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names of the tables."""
        return iter(self._servers)

    def __getitem__(self, name: str) -> Server:
        """Returns the server of a table."""
        return self._servers[name]

    def table(self, name: str) -> Table:
        """Returns a table."""
        return self._servers[name].table

    def tables(self, name: str) -> list[Table]:
        """Returns a table, and the one before a reload while it is answered."""
        return answered_tables(self._servers[name])

    def known(self, request: Request) -> str:
        """Returns the name of the table in a request's path. Raises RefusedError if unknown."""
        name: str = request.path_params["name"]
        if name not in self._servers:
            raise refuse.unknown_table(name, list(self._servers))
        return name

    def describe(self, name: str, params: TableParams | None = None) -> dict[str, object]:
        """Describes a table, or one version of it, as JSON types: see docs/wire-format.md."""
        table = self.table(name)
        last = table.last_change
        params = params or table.params
        return {
            "name": name,
            "party": self.party,
            "id": params.id.hex(),
            "params": params.to_dict(),
            "versions": described_versions(self.tables(name)),
            "changes": row_kind(table).to_dict(),
            "last_change": None if last is None else last.content.hex(),
            "changed_id": None if last is None else last.changed.hex(),
            "next_version": table.next_version,
            "limits": {
                "max_keys": self.quotas.keys(params),
                "max_body_bytes": self.quotas.max_body_bytes,
            },
        }

    def description(self, name: str) -> bytes:
        """Encodes what `describe` returns as JSON, once while it stays the same.

        Clients who follow the versions of a table ask for it after each change.
        """
        table, *older = self.tables(name)
        state, last, following = table.current.state, table.last_change, table.next_version
        before = older[0].current.state if older else None
        known = self._described.get(name)
        same = known is not None and known.state is state and known.before is before
        if known is None or not same or (known.last, known.next_version) != (last, following):
            body = json.dumps(self.describe(name), separators=(",", ":")).encode()
            known = self._described[name] = _Described(state, before, last, following, body)
        return known.body

    def _check(self, name: str, server: Server) -> None:
        check_name(name)
        if server.party != self.party:
            raise ArgumentError(
                f"table {name!r}: its server is party {server.party}, the service is party "
                f"{self.party}"
            )
        if self.quotas.keys(server.params) == 0:
            raise ArgumentError(
                f"table {name!r}: no request fits {self.quotas.max_body_bytes} bytes with its "
                f"answer in {self.quotas.max_answer_bytes}; keys for a lookup have "
                f"{server.params.verified_key_bytes} bytes, the answer "
                f"{server.params.verified_answer_bytes}"
            )


def check_name(name: str) -> None:
    """Raises ArgumentError for a table's name that does not fit into a URL unescaped."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ArgumentError(
            f"a table's name has 1 to 128 letters, digits, '.', '_', '~' or '-': found {name!r}"
        )
