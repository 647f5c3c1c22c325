"""Repairs: a party gets the changes that it lacks, in order, from the operator's journal."""

from collections.abc import Sequence

from ...errors import ArgumentError, MismatchError, NescioError
from .._client._attempt import printable
from .._exchange import Description
from .journal import Entry, Journal
from .parties import Parties, in_order


class Repairs:
    """Compares both parties with a journal, which is locked, and sends them what they lack."""

    def __init__(self, parties: Parties, journal: Journal) -> None:
        self._parties = parties
        self._journal = journal

    async def repair(self) -> dict[str, int]:
        """Brings both parties to the end of the journal.

        Returns how many changes each got, by its address. A party that lacks nothing gets no
        request but for its description. If one party cannot be reached, the other one gets what it
        lacks of the changes that a server has made, and the error is raised afterwards. Raises
        MismatchError, before anything is sent, for a party whose table is not in the journal.
        """
        found = await self._parties.try_describe()
        servers = [server for server in found if isinstance(server, Description)]
        errors = [error for error in found if isinstance(error, NescioError)]
        settle(self._journal, servers)
        made = dict.fromkeys(self._parties.urls, 0)
        if self._check(servers):
            return made
        for server in servers:
            try:
                await self._catch_up(server, made)
            except NescioError as error:
                errors.append(error)
        if not errors:
            await self._finish(made)
            return made
        for url, count in made.items():
            if count:
                errors[0].add_note(f"{url} got {count} change(s) that it lacked")
        raise errors[0]

    async def drop_last(self) -> Entry:
        """Drops the newest change from the journal, which no server may have made; returns it.

        Raises ArgumentError for an empty journal, and for a change that a server has made.
        """
        servers = await self._parties.describe()
        settle(self._journal, servers)
        last = self._journal.last
        if last is None or not last.open:
            raise ArgumentError(
                f"{self._journal.path}: found no change at the end that no server has made: there "
                "is nothing to drop"
            )
        for server in servers:
            if server.params.id != last.head.changed:
                raise ArgumentError(
                    f"{server.url} does not have the version to which the last change of the "
                    "journal was to be made, so that it may have got the change: see the status"
                )
        self._journal.drop(last)
        return last

    async def compact(self, keep: int) -> int:
        """Removes all changes but the last `keep` from the journal; returns how many.

        Raises ArgumentError unless both parties have all of them.
        """
        servers = await self._parties.describe()
        settle(self._journal, servers)
        for server in servers:
            lacking = self._journal.lacking(server.params.id)
            if self._journal.entries and lacking != []:
                found = "other changes" if lacking is None else f"{len(lacking)} fewer"
                raise ArgumentError(
                    f"{server.url} does not have all changes of {self._journal.path}, but {found}: "
                    "repair first, then compact"
                )
        return self._journal.compact(keep)

    def _check(self, servers: Sequence[Description]) -> bool:
        """Tests if both parties have one table that needs no repair.

        Raises MismatchError for a table that is not in the journal.
        """
        if len(servers) == 2:
            servers = in_order(servers)
        unknown = [one for one in servers if self._journal.lacking(one.params.id) is None]
        same = len(servers) == 2 and servers[0].params == servers[1].params
        if same and (unknown or not self._journal.lacking(servers[0].params.id)):
            return True
        if unknown:
            raise unknown_party(unknown, self._journal)
        return False

    async def _catch_up(self, server: Description, made: dict[str, int]) -> None:
        """Sends a party the changes that it lacks and that a party has made; counts them."""
        for entry in self._journal.lacking(server.params.id) or []:
            if entry.open:
                break
            after = await self._parties.make(server.url, self._journal.change(entry))
            self._journal.made(entry, after.params.id)
            made[server.url] += 1

    async def _finish(self, made: dict[str, int]) -> None:
        """Makes a change at both parties that is in the journal and that none has made."""
        servers = await self._parties.describe()
        last = self._journal.last
        if last is not None and last.open:
            body = self._journal.change(last)
            await self._parties.check(servers, body)
            for server in servers:
                after = await self._parties.make(server.url, body)
                self._journal.made(last, after.params.id)
                made[server.url] += 1
            servers = await self._parties.describe()
        if servers[0].params != servers[1].params:
            raise different(servers, " after the repair: another operator changes them")


def settle(journal: Journal, servers: Sequence[Description], *, write: bool = True) -> None:
    """Notes if a server has made a change at the end of a journal, whose reply may have been lost.

    A dropped change counts: the server may have been making it. Of equal changes the newest counts.
    Without `write`, notes it in memory only.
    """
    unmade = journal.unmade
    for server in servers:
        made = next((entry for entry in unmade if _is_last(journal, entry, server)), None)
        if made is not None:
            if write:
                journal.made(made, server.params.id)
            made.after, made.dropped = server.params.id, False


def _is_last(journal: Journal, entry: Entry, server: Description) -> bool:
    """Tests if a change is the one that a server made last."""
    changed = server.changed_id == entry.head.changed.hex()
    return changed and server.last_change == journal.content(entry)


def different(servers: Sequence[Description], advice: str) -> MismatchError:
    """Makes the error of two parties that differ."""
    first, second = (server.params.describe() for server in servers)
    return MismatchError(
        f"the servers differ{advice}: {first} and {second}", found=second, expected=first
    )


def unknown_party(servers: Sequence[Description], journal: Journal) -> MismatchError:
    """Makes the error of one or two parties whose tables are not in the journal."""
    found = "; ".join(f"{one.url} (party {one.party}) has {_name(one)}" for one in servers)
    chain = journal.chain()
    expected = f"one of its {len(chain)} changes" if chain else "a journal that is not empty"
    if chain:
        expected += f", to versions {chain[0].head.version!r} to {chain[-1].head.version!r}"
    which = "both parties have tables" if len(servers) == 2 else "one party has a table"
    return MismatchError(
        f"{which} that the journal {journal.path} does not know: {found}; expected {expected}. "
        f"{_advice(servers)}",
        found=found,
        expected=expected,
    )


def _name(server: Description) -> str:
    version = printable(repr(server.params.version))
    return f"version {version}, id {server.params.id.hex()[:12]}, {server.params.rows} rows"


def _advice(servers: Sequence[Description]) -> str:
    if len(servers) == 2:
        return (
            "Restart both from one file: the source of the table, then repair again, or a snapshot "
            "of either party, which then begins a new journal"
        )
    return (
        f"Restart {servers[0].url} from a snapshot of the other party, or from the source of the "
        "table; then repair again"
    )
