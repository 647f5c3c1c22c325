"""Changes a table on both of its servers."""

import contextlib
import os
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from .._arrays import IndexArray, as_count
from ..errors import (
    ArgumentError,
    MismatchError,
    NescioError,
    ServerRefusedError,
)
from ..pir import TableParams
from ..pir._change import content_of
from ..pir._versions import check_version
from ._exchange import Description
from ._http import Closing, LoopThread
from ._operator import Entry, Journal, Parties, Repairs, TableStatus, status_of
from ._operator.calls import Call, growth_for, made_last, next_versions, unfinished
from ._operator.growing import Grower
from ._operator.repair import different, settle
from ._row_names import Needed, RowNames, TooFewVacantError

_T = TypeVar("_T")
_R = TypeVar("_R")
_NOT_MADE = frozenset({400, 401, 403, 404, 413, 422, 507})


class TableAdmin(Closing):
    """The admin API of a table: applies a change to both servers, under one new version.

    `tokens` are the servers' admin tokens, in the order of `servers`. Both servers are asked first
    if they would make the change: the token, the version, which must be new, and the limits. Only
    then is it made, at one server after the other. If the second server fails at that point, the
    same call finishes the change later, also from another process: it recognizes the change that
    only one server has. A change but an update that both servers made last is refused unless it
    names a version, because it may repeat a call whose reply was lost. Raises MismatchError if
    another operator was faster.

    In a keyed table, `update`, `insert` and `delete` take keys, and do what `nescio.pir.KeyedTable`
    does; the keys' hashes travel, and both servers move the same rows.

    `journal` is the operator's file, made if it does not exist. It gets every change, and is on the
    disk, before any server gets it. With it, a party that is behind by any number of changes gets
    them by `repair`. Raises FileError if it is the journal of another table, is damaged, or another
    process uses it for more than 10 seconds. `tokens` of None allow nothing but `status`.

    Both tokens together allow reading and writing the table, but reveal nothing about lookups.
    """

    def __init__(
        self,
        servers: Sequence[str],
        table: str,
        tokens: Sequence[str] | None,
        *,
        timeout: float = 300.0,
        retries: int = 2,
        tls: bool | ssl.SSLContext = True,
        journal: str | os.PathLike[str] | None = None,
    ) -> None:
        self._table = table
        self._parties = Parties(servers, table, tokens, timeout=timeout, retries=retries, tls=tls)
        self._journal = None if journal is None else Journal(journal, table)
        self._loop = LoopThread()
        self._one_call = threading.Lock()
        eighth = Call("grow", Needed(0), None, None)
        self._grower = Grower(lambda: self._locked(self._change, eighth))

    def update(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.update` on both servers; returns the new parameters."""
        return self._locked(self._change, Call("update", indices, rows, version))

    def insert(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.insert` on both servers; returns the new parameters."""
        return self._locked(self._change, Call("insert", indices, rows, version))

    def delete(self, indices: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.delete` on both servers; returns the new parameters."""
        return self._locked(self._change, Call("delete", indices, None, version))

    def append(self, rows: object, *, version: str | None = None) -> IndexArray:
        """Runs `nescio.Table.append` on both servers; returns the indices, uint64 (n,).

        At most 2^20 rows. If the tables have too few vacant rows, they grow first, in a version of
        its own. If fewer than a sixteenth of the rows are vacant afterwards, they grow in the
        background: `close` waits for that, and a call that follows at once waits for it too.
        Raises MismatchError if the servers do not have the same vacant rows.
        """
        call = Call("append", None, rows, version)
        params = self._locked(self._append, call)
        self._grower.after_append(params.rows, call.left)
        return call.where

    def clear(self, indices: object, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.clear` on both servers; returns the new parameters."""
        return self._locked(self._change, Call("clear", indices, None, version))

    def grow(self, count: int, *, version: str | None = None) -> TableParams:
        """Runs `nescio.Table.grow` on both servers; returns the new parameters."""
        return self._locked(self._change, Call("grow", count, None, version))

    def repair(self) -> dict[str, int]:
        """Sends each server the changes of the journal that it lacks, in order.

        Returns how many changes each server got, by the address of its table. A change that no
        server has made is made at both. A server that lacks nothing gets no change. Raises
        MismatchError, before anything changes, if the journal does not know a server's table.
        """
        return self._locked(lambda journal: Repairs(self._parties, journal).repair(), self._noted())

    def drop_last(self) -> str:
        """Drops the newest change of the journal, which no server has made; returns its version.

        Raises ArgumentError if a server has made the newest change, or for an empty journal.
        """
        entry = self._locked(
            lambda journal: Repairs(self._parties, journal).drop_last(), self._noted()
        )
        return entry.head.version

    def compact(self, keep: int = 1000) -> int:
        """Removes all changes but the last `keep` from the journal; returns how many.

        A server that restarts from a file that is older than that can no longer be repaired. Raises
        ArgumentError unless both servers have all changes.
        """
        keep = as_count(keep, "keep", 0, 1 << 40)
        return self._locked(
            lambda journal: Repairs(self._parties, journal).compact(keep), self._noted()
        )

    def status(self) -> TableStatus:
        """Describes the state of both servers, and says how to mend it.

        A server that does not answer is a part of the answer. Waits for no lock of the journal.
        """
        return self._loop.call(self._status())

    def close(self) -> None:
        """Waits for a growth, closes the connections; a second call has no effect."""
        self._grower.wait()
        self._loop.close(self._parties.http.close)

    def _locked(self, work: Callable[[_T], Coroutine[Any, Any, _R]], argument: _T) -> _R:
        """Runs a coroutine while no other process uses the journal."""
        self._parties.check_tokens()
        if self._journal is not None and not self._journal.path.exists():
            self._loop.call(self._parties.describe())  # a wrong name of a table gets no journal
        locked = contextlib.nullcontext() if self._journal is None else self._journal.locked()
        with self._one_call, locked:
            return self._loop.call(work(argument))

    def _noted(self) -> Journal:
        """Returns the journal. Raises ArgumentError for an admin without a journal."""
        if self._journal is None:
            raise ArgumentError(
                "journal: found None, expected the file of the operator's journal, which has the "
                "changes that a server may lack"
            )
        return self._journal

    async def _status(self) -> TableStatus:
        found = await self._parties.try_describe()
        ready = [
            isinstance(one, Description) and await self._parties.is_ready(url)
            for one, url in zip(found, self._parties.urls, strict=True)
        ]
        journal = None if self._journal is None else Journal(self._journal.path, self._table)
        if journal is not None:
            journal.look()
            settle(journal, [one for one in found if isinstance(one, Description)], write=False)
        return status_of(self._table, self._parties.urls, found, ready, journal)

    async def _append(self, call: Call) -> TableParams:
        """Makes an append; before it, or to finish one that was interrupted there, a growth."""
        try:
            return await self._change(call)
        except TooFewVacantError:
            await self._change(growth_for(call))
        except MismatchError:
            first, second = await self._parties.describe()
            if first.params == second.params:
                raise
            await self._change(growth_for(call))
        return await self._change(call)

    async def _change(self, call: Call) -> TableParams:
        version = call.version
        if version is not None:
            check_version(version)
        servers = await self._parties.describe()
        if self._journal is not None:
            settle(self._journal, servers)
        names = {server.url: await call.fetch(self._parties, server) for server in servers}
        first, second = (server.params for server in servers)
        if first != second:
            behind, body = unfinished(servers, names, call)
            await self._parties.check(behind, body)
            return await self._make_all(servers, behind, body)
        unmade = self._unmade(first, names[servers[0].url], call)
        if unmade is not None:
            await self._parties.check(servers, unmade)
            return await self._make_all(servers, servers, unmade)
        if version in (None, first.version) and made_last(servers, names, call):
            if version is not None:
                return first
            if call.operation != "update":
                raise _repeated(first)
        if version == first.version:
            raise ArgumentError(
                f"both servers have version {version!r} already: choose another version"
            )
        call.check_vacant(servers, names)
        return await self._make_all(servers, servers, await self._chosen(servers, names, call))

    async def _chosen(
        self, servers: Sequence[Description], names: Mapping[str, RowNames], call: Call
    ) -> bytes:
        """Encodes a change of both servers under a version that none of them has had."""
        versions = [call.version] if call.version is not None else next_versions(servers)
        for new in versions:
            body = call.change(names[servers[0].url], new).encode(servers[0].params)
            try:
                await self._parties.check(servers, body)
                break
            except ServerRefusedError as error:
                if new == versions[-1] or error.code != "impossible_change":
                    raise
        return body

    def _unmade(self, params: TableParams, names: RowNames, call: Call) -> bytes | None:
        """Returns the change of the journal that no server has made, if a call repeats it.

        Raises ArgumentError if the journal has other changes that both servers lack.
        """
        lacking = None if self._journal is None else self._journal.lacking(params.id)
        if self._journal is None or not lacking:
            return None
        last = lacking[-1]
        if lacking == [last] and last.open and call.version in (None, last.head.version):
            with contextlib.suppress(ArgumentError):  # it does not fit the table
                body = call.change(names, last.head.version).encode(params)
                if content_of(body).hex() == self._journal.content(last):
                    return self._journal.change(last)
        raise _behind(self._journal, lacking)

    async def _make_all(
        self, servers: Sequence[Description], behind: Sequence[Description], body: bytes
    ) -> TableParams:
        """Makes a change at the servers that lack it; returns the parameters of both."""
        changed = [server for server in servers if server not in behind]
        entry = None
        if self._journal is not None:
            entry = self._journal.find(body) or self._journal.append(body)
            body = self._journal.change(entry)
        for server in behind:
            try:
                after = await self._parties.make(server.url, body)
            except NescioError as error:
                if changed:
                    error.add_note(_incomplete(changed[0], server.url))
                elif self._journal is not None and entry is not None and _refused(error):
                    self._journal.drop(entry)
                raise
            if self._journal is not None and entry is not None:
                self._journal.made(entry, after.params.id)
            changed.append(after)
        if changed[0].params != changed[1].params:
            raise different(changed, " after the change")
        return changed[0].params


def _refused(error: NescioError) -> bool:
    """Tests if the error of the first server that gets a change says that it is not made."""
    if isinstance(error, ServerRefusedError):
        return error.status in _NOT_MADE
    return isinstance(error, MismatchError)


def _behind(journal: Journal, lacking: Sequence[Entry]) -> ArgumentError:
    newest = lacking[-1].head.version
    return ArgumentError(
        f"both servers lack {len(lacking)} change(s) of the journal {journal.path}, up to version "
        f"{newest!r}: `nescio admin repair` makes them, `drop-last` forgets a last one that no "
        "server has made; to give them up, begin another journal"
    )


def _incomplete(changed: Description, failed: str) -> str:
    return (
        f"{changed.url} has the change, version {changed.params.version!r}; {failed} may not have "
        "it: repeat the same call to finish it, or use `nescio admin repair`"
    )


def _repeated(params: TableParams) -> ArgumentError:
    return ArgumentError(
        f"version: found None and a call that equals the last change of both servers, to version "
        f"{params.version!r}: if its reply was lost, it is done; to make it once more, pass a new "
        "version"
    )
