"""The state that two parties are in, and the command that mends it."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from ...errors import NescioError
from ...pir import TableParams
from .._client._attempt import printable
from .._exchange import Description
from .journal import Journal

State = Literal[
    "equal", "behind", "unmade", "unknown", "different", "other table", "one party", "down"
]
_REPAIR = "nescio admin repair"
_ADVICE: dict[State, str] = {
    "equal": "",
    "behind": f"{_REPAIR}: it sends each party the changes that it lacks",
    "unmade": f"{_REPAIR} makes the last change of the journal, which no party has made; "
    "nescio admin drop-last forgets it",
    "unknown": "restart the party that the journal does not know from a snapshot of the other "
    f"party, or from the source of the table; then {_REPAIR}",
    "different": f"{_REPAIR} with the operator's --journal; without one, repeat the call that was "
    "interrupted, or restart both parties from one file",
    "other table": "compare the files and options of both parties: they serve different tables, "
    "not versions of one",
    "one party": "name one server of each party",
    "down": f"start the party that does not answer; then {_REPAIR}",
}

_NOT_READY = "see the log of the party that is not ready, and its /readyz"


@dataclass(frozen=True, slots=True)
class PartyStatus:
    """The state of one party; None where it does not answer."""

    url: str
    party: int | None = None
    version: str | None = None
    id: str | None = None
    rows: int | None = None
    changed: str | None = None
    """The time at which the operator's journal got the change to this version, as ISO 8601."""
    kept: tuple[str, ...] = ()
    """The older versions that the server still answers, newest first."""
    ready: bool = False
    behind: int | None = None
    """The number of changes that the party lacks; None if the journal does not tell."""
    problem: str | None = None
    """The error of a party that cannot be described."""


@dataclass(frozen=True, slots=True)
class TableStatus:
    """The state of both parties of a table, and the advice that mends it."""

    table: str
    state: State
    parties: tuple[PartyStatus, PartyStatus]
    advice: str

    @property
    def agree(self) -> bool:
        """Tests if both parties answer lookups of one table."""
        return self.state == "equal" and all(party.ready for party in self.parties)

    def to_dict(self) -> dict[str, object]:
        """Converts the status to JSON types."""
        return {**asdict(self), "agree": self.agree}


def status_of(
    table: str,
    urls: Sequence[str],
    found: Sequence[Description | NescioError],
    ready: Sequence[bool],
    journal: Journal | None,
) -> TableStatus:
    """Compares both parties with each other, and with a journal that has just been read."""
    first, second = (
        _party(url, one, is_ready, journal)
        for url, one, is_ready in zip(urls, found, ready, strict=True)
    )
    state = _state(found, journal)
    if state == "equal" and not (first.ready and second.ready):
        return TableStatus(table, state, (first, second), _NOT_READY)
    return TableStatus(table, state, (first, second), _ADVICE[state])


def _party(
    url: str, found: Description | NescioError, ready: bool, journal: Journal | None
) -> PartyStatus:
    if isinstance(found, NescioError):
        return PartyStatus(url, problem=str(found))
    params = found.params
    lacking = None if journal is None else journal.lacking(params.id)
    status = PartyStatus(
        url,
        found.party,
        printable(params.version),
        params.id.hex(),
        params.rows,
        kept=tuple(printable(kept.version) for kept in found.versions if kept != params),
        ready=ready,
        behind=None if lacking is None else len(lacking),
    )
    for entry in [] if journal is None else journal.entries:
        if entry.after == params.id:
            when = datetime.fromtimestamp(math.floor(entry.time / 1e9), UTC)
            status = replace(status, changed=when.isoformat())
    return status


def _state(found: Sequence[Description | NescioError], journal: Journal | None) -> State:
    servers = [one for one in found if isinstance(one, Description)]
    if len(servers) < len(found):
        return "down"
    first, second = servers
    if first.party == second.party:
        return "one party"
    if first.params != second.params and _kind(first.params) != _kind(second.params):
        return "other table"
    if journal is None or not journal.entries:
        return "equal" if first.params == second.params else "different"
    return _state_in(journal, first.params.id, second.params.id)


def _state_in(journal: Journal, first: bytes, second: bytes) -> State:
    """Compares the ids of both tables with a journal that is not empty."""
    lacking = [journal.lacking(first), journal.lacking(second)]
    if first == second and not lacking[0]:
        return "equal"
    if None in lacking:
        return "unknown"
    return "unmade" if all(one and one[0].open for one in lacking) else "behind"


def _kind(params: TableParams) -> tuple[object, ...]:
    """Returns what no change of a table changes."""
    names = "row_shape", "dtype", "output", "generator", "record_rows"
    return tuple(getattr(params, name) for name in names)
