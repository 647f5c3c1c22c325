"""`nescio bench updates`: lookups beside an operator's updates, at one server.

Each client keeps a connection and asks for one row at a time. It follows the table's versions as
`RemoteTable` does, beside its lookups: it uses one for a second, or until half of those that the
server keeps are newer, and then asks for the parameters and for the hashes that differ. Rounds with
and without updates take turns. At the end the bench makes the same updates on a table of its own,
and compares answers of the server with those of that table, byte for byte.
"""

import argparse
import asyncio
import json
import secrets
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from ..._arrays import as_count
from ..._report import Case, Report
from ...errors import ArgumentError, ServiceError
from ...pir import Client, Server, Table
from ...pir._change import Change
from ...service._spawn import spawned
from ..results import Results
from ..timing import WrongResultError, check_duration
from ._connection import TABLE, Connection, Reply

_QUERIES = 64
_ROUNDS = 3
_APPENDS = 20
_WARM_SECONDS = 0.5
_USED_SECONDS = 1.0  # that a client uses a version at least
_ID = slice(16, 32)  # of a query: the version that it is for
_COLUMNS = [
    ("rows", "rows", "9,d"),
    ("row_bytes", "row B", "d"),
    ("threads", "threads", "d"),
    ("clients", "clients", "d"),
    ("updates", "updates/s", "9,.1f"),
    ("queries_per_second", "queries/s", "9,.0f"),
    ("kept", "kept", "5.2f"),
    ("median_milliseconds", "median ms", "9,.2f"),
    ("p99_milliseconds", "p99 ms", "8,.2f"),
    ("p99_ratio", "p99 x", "5.2f"),
    ("fetches_per_second", "fetches/s", "9,.1f"),
    ("refused", "refused", "7,d"),
    ("update_milliseconds", "update ms", "9,.1f"),
    ("append_milliseconds", "append ms", "9,.1f"),
    ("server_megabytes", "server MB", "9,.0f"),
]


@dataclass
class _Counts:
    """The lookups and updates of the rounds of one kind."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)
    appends: list[float] = field(default_factory=list)
    megabytes: float = 0.0
    fetches: int = 0
    refused: int = 0


def run(arguments: argparse.Namespace) -> int:
    """Measures lookups with and without updates, prints both, and writes JSON if requested."""
    as_count(arguments.rows, "rows", 1, 1 << 30)
    as_count(arguments.clients, "clients", 1, 1000)
    as_count(arguments.updated_rows, "updated rows", 1, arguments.rows)
    if not 0 < arguments.updates <= 1000:
        raise ArgumentError(f"updates: found {arguments.updates}, expected more than 0 to 1000")
    check_duration(arguments.seconds)
    with Results(arguments.json) as results, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.npy")
        shape = arguments.rows, arguments.row_bytes
        np.save(path, np.random.default_rng().integers(256, size=shape, dtype=np.uint8))
        report = Report(_COLUMNS)
        for case in _Run(arguments, path).cases():
            report.add(case)
            results.add(case)
    print(
        "kept, p99 x: the rate, and the p99, over those without updates. fetches: requests for a "
        "newer version's parameters and hashes. server MB: resident memory. append: one row."
    )
    return 0


class _Followed:
    """The version that a client uses, and a connection for newer ones beside its lookups."""

    def __init__(self, connection: Connection, ident: str, counts: _Counts) -> None:
        self.id = ident
        self._connection = connection
        self._counts = counts
        self._after = time.perf_counter() + _USED_SECONDS
        self._fetching: asyncio.Task[None] | None = None

    def follow(self, query: bytes, reply: Reply, now: float) -> None:
        """Begins to fetch the newer version that a reply names, if it is time for that.

        A reply to a query for the version before says nothing of this one.
        """
        named = json.loads(reply.fields.get(b"nescio-newer", b"{}"))
        busy = self._fetching is not None and not self._fetching.done()
        if not named or busy or query[_ID] != bytes.fromhex(self.id):
            return
        if 2 * named["age"] >= named["kept"] or now >= self._after:
            self._after = now + _USED_SECONDS
            self._fetching = asyncio.create_task(self._fetch())

    async def fetch(self) -> None:
        """Waits for the newest version."""
        if self._fetching is not None:
            await self._fetching
        await self._fetch()

    async def _fetch(self) -> None:
        """Asks for the newest parameters and for the hashes that differ, as a client does."""
        description = json.loads((await self._connection.ask("GET", "")).body)
        await self._connection.ask("GET", f"/tops?since={self.id}")
        self._counts.fetches += 2
        self.id = description["id"]

    async def close(self) -> None:
        """Ends a fetch that has begun, and closes the connection."""
        if self._fetching is not None:
            await self._fetching
        self._connection.close()


class _Run:
    """The table, the queries, and the updates, which are kept to make them again."""

    def __init__(self, arguments: argparse.Namespace, path: Path) -> None:
        self._arguments = arguments
        self._path = path
        table = Table(np.load(path, mmap_mode="r"), spare=_APPENDS)
        self._server = Server(table, threads=1, party=0, device="cpu")
        self._client = Client(self._server.params, self._server.tops)
        random = np.random.default_rng()
        indices = random.integers(arguments.rows, size=_QUERIES)
        self._queries = [self._client.query([i]).keys[0] for i in indices]
        self._token = secrets.token_hex(32)
        self._made: list[Change] = []

    def cases(self) -> list[Case]:
        """Runs the rounds in turn; returns the case without updates, and the one with them."""
        arguments, alone, beside = self._arguments, _Counts(), _Counts()
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(self._token)
            file.flush()
            options = ["--name", TABLE, "--party", "0", "--port", "0", "--device", "cpu"]
            options += ["--threads", str(arguments.threads), "--admin-token-file", file.name]
            options += ["--max-connections-per-address", "1024", "--spare", str(_APPENDS)]
            with spawned([str(self._path), *options]) as process:
                url = process.url()
                for _ in range(_ROUNDS):
                    asyncio.run(self._round(url, alone, 0.0))
                    alone.megabytes = alone.megabytes or _resident_megabytes(process.pid)
                    asyncio.run(self._round(url, beside, arguments.updates))
                beside.megabytes = _resident_megabytes(process.pid)
                asyncio.run(self._append(url, beside))
                asyncio.run(self._compare(url))
        return [self._case(alone, alone), self._case(beside, alone)]

    def _case(self, counts: _Counts, alone: _Counts) -> Case:
        arguments, rate = self._arguments, len(counts.latencies) / counts.seconds
        p99, p99_alone = (float(np.quantile(own.latencies, 0.99)) for own in (counts, alone))
        case: Case = {
            "rows": arguments.rows,
            "row_bytes": arguments.row_bytes,
            "threads": arguments.threads,
            "clients": arguments.clients,
            "updated_rows": arguments.updated_rows,
            "updates": len(counts.updates) / counts.seconds,
            "queries_per_second": rate,
            "kept": rate / (len(alone.latencies) / alone.seconds),
            "median_milliseconds": 1e3 * statistics.median(counts.latencies),
            "p99_milliseconds": 1e3 * p99,
            "p99_ratio": p99 / p99_alone,
            "fetches_per_second": counts.fetches / counts.seconds,
            "refused": counts.refused,
            "server_megabytes": counts.megabytes,
        }
        if counts.updates:
            case["update_milliseconds"] = 1e3 * statistics.median(counts.updates)
            case["append_milliseconds"] = 1e3 * statistics.median(counts.appends)
        return case

    async def _round(self, url: str, counts: _Counts, rate: float) -> None:
        begin = time.perf_counter() + _WARM_SECONDS
        end = begin + self._arguments.seconds / (2 * _ROUNDS)
        counts.seconds += end - begin
        description = json.loads((await _ask(url, "GET", "")).body)
        tasks = [
            self._look_up(url, description["id"], counts, (begin, end), first)
            for first in range(self._arguments.clients)
        ]
        if rate:
            tasks.append(self._update(url, description, counts, (begin, end), rate))
        await asyncio.gather(*tasks)

    async def _look_up(
        self, url: str, ident: str, counts: _Counts, span: tuple[float, float], first: int
    ) -> None:
        connection, (begin, end) = await Connection.open(url), span
        version = _Followed(await Connection.open(url), ident, counts)
        for query in islice(cycle(self._queries), first, None):
            sent = time.perf_counter()
            if sent >= end:
                break
            own = query[: _ID.start] + bytes.fromhex(version.id) + query[_ID.stop :]
            reply = await connection.ask("POST", "/answer", own)
            now = time.perf_counter()
            if reply.status == 200 and begin <= now < end:
                counts.latencies.append(now - sent)
            elif reply.status != 200:
                counts.refused += reply.status != 410
                await version.fetch()
            version.follow(own, reply, now)
        await version.close()
        connection.close()

    async def _update(
        self,
        url: str,
        description: Mapping[str, str],
        counts: _Counts,
        span: tuple[float, float],
        rate: float,
    ) -> None:
        """Makes updates of random rows at a rate, or one after the other if that is too fast."""
        connection, (begin, end) = await Connection.open(url), span
        random, arguments, ident = np.random.default_rng(), self._arguments, description["id"]
        turn = time.perf_counter()
        while (turn := max(turn + 1 / rate, time.perf_counter() - 1 / rate)) < end:
            await asyncio.sleep(max(0.0, turn - time.perf_counter()))
            indices = random.integers(arguments.rows, size=arguments.updated_rows, dtype=np.uint64)
            rows = random.integers(256, size=(len(indices), arguments.row_bytes), dtype=np.uint8)
            change = Change("update", f"v{len(self._made)}", indices, rows)
            sent = time.perf_counter()
            ident = await self._change(connection, ident, change)
            if begin <= sent < end:
                counts.updates.append(time.perf_counter() - sent)
        connection.close()

    async def _append(self, url: str, counts: _Counts) -> None:
        """Appends rows one by one, to vacant places and without lookups."""
        connection = await Connection.open(url)
        ident: str = json.loads((await connection.ask("GET", "")).body)["id"]
        for number in range(_APPENDS):
            index = np.array([self._arguments.rows + number], np.uint64)
            row = np.full((1, self._arguments.row_bytes), number, np.uint8)
            sent = time.perf_counter()
            ident = await self._change(
                connection, ident, Change("append", f"a{number}", index, row)
            )
            counts.appends.append(time.perf_counter() - sent)
        connection.close()

    async def _change(self, connection: Connection, ident: str, change: Change) -> str:
        """Makes a change of the version with an id; returns the id after it."""
        head = {"Authorization": f"Bearer {self._token}"}
        body = change.encode(self._server.params, bytes.fromhex(ident))
        reply = await connection.ask("POST", "/rows", body, head)
        if reply.status != 200:
            url = f"http://{connection.netloc}"
            raise ServiceError(f"a change was refused: {reply.body[:300]!r}", url=url)
        self._made.append(change)
        found: str = json.loads(reply.body)["id"]
        return found

    async def _compare(self, url: str) -> None:
        """Makes the updates once more, and compares answers to the last version."""
        table = self._server.table
        for change in self._made:
            change.apply(table)
        client = Client(table.params, table.tops)
        for index in range(0, self._arguments.rows, max(1, self._arguments.rows // _QUERIES)):
            query = client.query([index]).keys[0]
            reply = await _ask(url, "POST", "/answer", query)
            if reply.body != self._server.answer(query):
                raise WrongResultError("an answer after the updates is not the engine's")


async def _ask(url: str, method: str, path: str, body: bytes = b"") -> Reply:
    """Sends one request on a connection of its own."""
    connection = await Connection.open(url)
    try:
        return await connection.ask(method, path, body)
    finally:
        connection.close()


def _resident_megabytes(pid: int) -> float:
    """Returns the resident memory of a process; NaN where the system does not tell."""
    try:
        lines: Sequence[str] = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return float("nan")
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmRSS"))
    return int(kilobytes) / 1000
