"""`nescio bench fairness`: one honest client beside a greedy one, at one server.

The honest client asks for one row at a time, on one connection. The greedy client, from another
address, has many connections, each with a request of many rows in flight. It asks again 50 ms after
a refusal, whatever the server asks for. Rounds with and without it take turns.
"""

import argparse
import asyncio
import multiprocessing
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as PipeEnd
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

from ..._arrays import as_count
from ..._report import Report
from ...pir import Client, Server, Table
from ...service._spawn import spawned
from ..results import Results
from ..timing import WrongResultError, check_duration
from ._connection import TABLE, Connection

_QUERIES = 16
_ROUNDS = 3
_HONEST, _GREEDY = "127.0.0.1", "127.0.0.2"
_PAUSE = 0.05  # of the greedy client after a refusal
_WARM_SECONDS = 0.5
_COLUMNS = [
    ("beside", "beside", ">6"),
    ("requests_per_second", "requests/s", "10,.1f"),
    ("median_milliseconds", "median ms", "9,.1f"),
    ("p99_milliseconds", "p99 ms", "8,.1f"),
    ("kept", "kept", "5.2f"),
    ("greedy_keys_per_second", "greedy keys/s", "13,.0f"),
    ("refused", "refused", "7,d"),
    ("greedy_refused", "greedy refused", "14,d"),
    ("refusal_p99_milliseconds", "refusal p99 ms", "14,.1f"),
]


@dataclass
class _Counts:
    """The answers and refusals of one client in one round."""

    seconds: float = 0.0
    answers: int = 0
    latencies: list[float] = field(default_factory=list)
    refusals: list[float] = field(default_factory=list)

    def join(self, other: "_Counts") -> None:
        """Adds the counts of another round."""
        self.seconds += other.seconds
        self.answers += other.answers
        self.latencies += other.latencies
        self.refusals += other.refusals


def run(arguments: argparse.Namespace) -> int:
    """Measures rounds with and without the greedy client, prints them, and writes JSON if asked."""
    as_count(arguments.rows, "rows", 1, 1 << 30)
    as_count(arguments.connections, "connections", 1, 256)
    as_count(arguments.keys, "keys", 1, 1024)
    check_duration(arguments.seconds)
    with Results(arguments.json) as results, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.nescio")
        shape = arguments.rows, arguments.row_bytes
        Table(np.random.default_rng().integers(256, size=shape, dtype=np.uint8)).save(path)
        report = Report(_COLUMNS)
        for case in _cases(arguments, path):
            report.add(case)
            results.add(case)
    print(f"greedy: {arguments.connections} connections, {arguments.keys} keys in each request.")
    return 0


def _cases(arguments: argparse.Namespace, path: Path) -> list[dict[str, object]]:
    server = Server(Table.load(path), threads=arguments.threads, party=0, device="cpu")
    honest = _exchanges(server, 1)
    bodies = [query for query, _ in _exchanges(server, arguments.keys)[:4]]
    options = ["--name", TABLE, "--party", "0", "--port", "0", "--device", "cpu"]
    alone, beside, greedy = _Counts(), _Counts(), _Counts()
    seconds = arguments.seconds / _ROUNDS
    with spawned([str(path), *options, "--threads", str(arguments.threads)]) as process:
        url = process.url()
        for _ in range(_ROUNDS):
            alone.join(asyncio.run(_honest(url, honest, seconds)))
            with _Greedy(url, bodies, arguments.connections) as other:
                time.sleep(_WARM_SECONDS)
                beside.join(asyncio.run(_honest(url, honest, seconds)))
            greedy.join(other.counts)
    first = _case("nobody", alone, alone)
    second = _case("greedy", beside, alone)
    second["greedy_keys_per_second"] = greedy.answers * arguments.keys / greedy.seconds
    second["greedy_refused"] = len(greedy.refusals)
    if greedy.refusals:
        second["refusal_p99_milliseconds"] = 1e3 * float(np.quantile(greedy.refusals, 0.99))
    return [first, second]


def _case(beside: str, counts: _Counts, alone: _Counts) -> dict[str, object]:
    rate = counts.answers / counts.seconds
    return {
        "beside": beside,
        "requests_per_second": rate,
        "median_milliseconds": 1e3 * statistics.median(counts.latencies or [np.nan]),
        "p99_milliseconds": 1e3 * float(np.quantile(counts.latencies or [np.nan], 0.99)),
        "refused": len(counts.refusals),
        "kept": rate / (alone.answers / alone.seconds),
    }


def _exchanges(server: Server, lookups: int) -> list[tuple[bytes, bytes]]:
    """Makes queries of random rows; those of one row come with their answers."""
    client = Client(server.params, server.tops)
    random = np.random.default_rng()
    rows = (random.integers(server.params.rows, size=lookups) for _ in range(_QUERIES))
    queries = [client.query(own).keys[0] for own in rows]
    return [(query, server.answer(query) if lookups == 1 else b"") for query in queries]


async def _honest(url: str, exchanges: list[tuple[bytes, bytes]], seconds: float) -> _Counts:
    counts = _Counts(seconds)
    connection = await Connection.open(url, _HONEST)
    end = time.perf_counter() + seconds
    while (sent := time.perf_counter()) < end:
        query, expected = exchanges[counts.answers % len(exchanges)]
        reply = await connection.ask("POST", "/answer", query)
        if reply.status != 200:
            counts.refusals.append(time.perf_counter() - sent)
            connection.close()
            await asyncio.sleep(_PAUSE)
            connection = await Connection.open(url, _HONEST)
            continue
        if reply.body != expected:
            raise WrongResultError("an answer to the honest client")
        counts.answers += 1
        counts.latencies.append(time.perf_counter() - sent)
    connection.close()
    return counts


class _Greedy:
    """The greedy client, in a process of its own."""

    def __init__(self, url: str, bodies: list[bytes], connections: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.counts = _Counts()
        self._stop = context.Event()
        self._results, sender = context.Pipe(duplex=False)
        arguments = url, bodies, connections, self._stop, sender
        self._process = context.Process(target=_run_greedy, args=arguments, daemon=True)

    def __enter__(self) -> "_Greedy":
        """Starts the process, and waits for its first request."""
        self._process.start()
        self._results.recv()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the process, and takes its counts."""
        self._stop.set()
        self.counts = self._results.recv()
        self._process.join()


def _run_greedy(
    url: str, bodies: list[bytes], connections: int, stop: Event, results: PipeEnd
) -> None:
    results.send(None)
    results.send(asyncio.run(_greedy(url, bodies, connections, stop)))


async def _greedy(url: str, bodies: list[bytes], connections: int, stop: Event) -> _Counts:
    counts = _Counts()
    begin = time.perf_counter()
    tasks = [asyncio.create_task(_ask_greedily(url, bodies, counts)) for _ in range(connections)]
    await asyncio.to_thread(stop.wait)
    counts.seconds = time.perf_counter() - begin
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return counts


async def _ask_greedily(url: str, bodies: list[bytes], counts: _Counts) -> None:
    while True:
        connection = await Connection.open(url, _GREEDY)
        try:
            while True:
                sent = time.perf_counter()
                body = bodies[counts.answers % len(bodies)]
                reply = await connection.ask("POST", "/answer", body)
                if reply.status == 200:
                    counts.answers += 1
                    continue
                counts.refusals.append(time.perf_counter() - sent)
                await asyncio.sleep(_PAUSE)
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(_PAUSE)
        finally:
            connection.close()
