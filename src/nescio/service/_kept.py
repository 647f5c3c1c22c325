"""Older versions of a table over HTTP: their list, requests for one, the header on answers."""

import asyncio
import json
import re
from collections.abc import Sequence

from starlette.requests import Request

from ..errors import MismatchError
from ..pir import Table, TableParams
from ..pir._history import Version
from ..pir._state import TableState
from ..pir._tops import encode_all_tops, encode_tops
from ._quotas import RefusedError, refusal

_ID = re.compile(r"[0-9a-f]{32}")
_MAX_VERSIONS = 8
_MAX_VERSIONS_BYTES = 48 << 10
_MAX_HEADER_BYTES = 4096
_MAX_MADE_BYTES = 2 << 20


def described_versions(tables: Sequence[Table]) -> list[dict[str, object]]:
    """Lists the parameters of the versions of all tables that are answered, newest first.

    At most 8, and so few that their JSON has at most 48 KiB; the current version in any case.
    """
    found: list[dict[str, object]] = []
    left = _MAX_VERSIONS_BYTES
    named = {params.id: params for table in tables for params in table.versions}
    for params in list(named.values())[:_MAX_VERSIONS]:
        left -= len(params.to_json())
        if found and left < 0:
            break
        found.append(params.to_dict())
    return found


class NewerHeaders:
    """The headers of answers to older versions of a table, which name the current one.

    A client follows them at its own time: `age` counts the versions since the one it asked for, and
    `kept` those that are answered. Each header is made once while the version is the current one.
    """

    def __init__(self) -> None:
        self._current = b""
        self._made: dict[bytes, dict[str, str]] = {}

    def header(self, asked: bytes, table: Table) -> dict[str, str]:
        """Returns the header of an answer to the version with an id, if it is not the current one.

        The header is left out for parameters that are too long for one.
        """
        current = table.params
        if asked == current.id:
            return {}
        if current.id != self._current:
            self._current, self._made = current.id, {}
        if asked not in self._made:
            self._made[asked] = _header(asked, table.versions)
        return self._made[asked]


def _header(asked: bytes, versions: Sequence[TableParams]) -> dict[str, str]:
    ids = [params.id for params in versions]
    named = {
        "id": ids[0].hex(),
        "params": versions[0].to_dict(),
        "age": ids.index(asked) if asked in ids else len(ids),
        "kept": len(ids),
    }
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return {"Nescio-Newer": text} if len(text) <= _MAX_HEADER_BYTES else {}


def asked_version(request: Request, tables: Sequence[Table]) -> Version:
    """Returns the version that the query parameter `version` names; without it, the current one.

    `tables` has the present table, and the one before if it is still answered. Raises RefusedError
    for one that is not an id, or that is not answered.
    """
    text = request.query_params.get("version")
    if text is None:
        return tables[0].current
    if not _ID.fullmatch(text):
        raise RefusedError(
            400, "malformed_message", "version: expected an id of 32 hexadecimal digits"
        )
    ident = bytes.fromhex(text)
    for table in tables:
        if (found := table.find_version(ident)) is not None:
            return found
    try:
        return tables[0].version_of(ident)
    except MismatchError as error:
        raise refusal(error) from error


class TopsMessages:
    """The messages with a table's tops, of which those of the current version are kept.

    After a change many clients ask for the same difference.
    """

    def __init__(self) -> None:
        self._state: TableState | None = None
        self._made: dict[str, bytes] = {}

    async def message(self, version: Version, since: str) -> bytes:
        """Encodes the tops of a version, or what differs from `since`, an id: see `tops_message`.

        A version's tops do not change, so that it is irrelevant if the table has changed meanwhile.
        """
        if version.age:
            return await asyncio.to_thread(tops_message, version, since)
        since = since if _ID.fullmatch(since) else ""
        if version.state is not self._state:
            self._state, self._made = version.state, {}
        made = self._made.get(since)
        if made is None:
            made = await asyncio.to_thread(tops_message, version, since)
            if self._state is version.state and self._fits(made):
                self._made[since] = made
        return made

    def _fits(self, made: bytes) -> bool:
        """Tests if a message may be kept: there is one for each version that a client names."""
        return sum(map(len, self._made.values())) + len(made) <= _MAX_MADE_BYTES


def tops_message(version: Version, since: str) -> bytes:
    """Encodes the tops of a version; or, if it is the current one, what differs from `since`."""
    if version.age:
        return encode_all_tops(version.params, version.tops)
    return encode_tops(version.state, bytes.fromhex(since) if _ID.fullmatch(since) else None)
