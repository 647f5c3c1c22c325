"""`nescio bench service`: the HTTP service under load, compared with the engine alone.

The clients do little work, because they share the machine with the server. Each keeps one
connection, sends prepared queries, and compares each response with the engine's answer, byte for
byte.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from .._arrays import as_count
from .._report import Case, Report
from .._timing import median_seconds
from ..errors import ArgumentError, ServiceError
from ..pir import Client, Query, Server, Table
from ..pir._bins import MAX_BINS
from ..service._spawn import spawned
from .results import Results
from .timing import WrongResultError, check_duration

_NAME = "bench"
_QUERIES = 64
_MAX_CLIENTS = 1000
_ENGINE_SECONDS = 2.0
_WARM_SECONDS = 1.0
_MAX_BYTES = 1 << 38
_COLUMNS = [
    ("rows", "rows", "9,d"),
    ("row_bytes", "row B", "d"),
    ("generator", "generator", ""),
    ("threads", "threads", "d"),
    ("bins", "bins", "d"),
    ("clients", "clients", "d"),
    ("batch", "batch", "d"),
    ("queries_per_second", "queries/s", "9,.0f"),
    ("engine_queries_per_second", "engine q/s", ",.0f"),
    ("share_of_engine", "share", ".2f"),
    ("median_milliseconds", "median ms", ",.2f"),
    ("p99_milliseconds", "p99 ms", "7,.2f"),
]


def run(arguments: argparse.Namespace) -> int:
    """Measures one case, prints it, and writes JSON if requested."""
    _check_sizes(arguments)
    with Results(arguments.json) as results:
        _say("making the table")
        values = np.random.default_rng().integers(
            256, size=(arguments.rows, arguments.row_bytes), dtype=np.uint8
        )
        bins = None if arguments.bins == 1 else [(arguments.bins, arguments.rows // arguments.bins)]
        table = Table(values, generator=arguments.generator, bins=bins)
        del values
        with tempfile.TemporaryDirectory(prefix="nescio-bench-") as folder:
            path = Path(folder, "table.nescio")
            table.save(path)
            case = _case(arguments, path)
        Report(_COLUMNS).add(case)
        results.add(case)
    print(
        "engine: Server.answer with the keys of all clients as one batch and the same threads, "
        "timed before and after."
    )
    return 0


def _check_sizes(arguments: argparse.Namespace) -> None:
    as_count(arguments.rows, "rows", 1, 1 << 40)
    as_count(arguments.row_bytes, "row bytes", 1, 1 << 30)
    as_count(arguments.rows * arguments.row_bytes, "bytes of the table", 1, _MAX_BYTES)
    as_count(arguments.clients, "clients", 1, _MAX_CLIENTS)
    as_count(arguments.batch, "batch", 1, 1024)
    as_count(arguments.bins, "bins", 1, min(MAX_BINS, arguments.rows))
    if arguments.rows % arguments.bins:
        raise ArgumentError(
            f"rows: found {arguments.rows}, expected a multiple of the bins, {arguments.bins}"
        )
    check_duration(arguments.seconds)


def _case(arguments: argparse.Namespace, path: Path) -> Case:
    # Both this process and the server map the table, so it is in memory once.
    server = Server(Table.load(path), threads=arguments.threads, party=0, device="cpu")
    client = Client(server.params, server.tops, insecure_generator=True)
    queries = [_query(client, arguments.batch).keys[0] for _ in range(_QUERIES)]
    exchanges = [(query, server.answer(query)) for query in queries]
    together = _query(client, arguments.batch * arguments.clients)

    def engine() -> float:
        return median_seconds(lambda: server.answer(together.keys[0]), _ENGINE_SECONDS)

    _say("timing the engine alone")
    engine_seconds = [engine()]
    options = ["--name", _NAME, "--party", "0", "--port", "0"]
    options += ["--max-connections-per-address", str(_MAX_CLIENTS)]
    options += ["--device", "cpu", "--threads", str(arguments.threads)]
    with spawned([str(path), *options]) as process:
        _say(f"sending queries for {arguments.seconds:g} seconds")
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            load = runner.run(_load(process.url(), exchanges, arguments.clients, arguments.seconds))
    engine_seconds.append(engine())
    rate = load.requests * arguments.batch / load.seconds
    engine_rate = together.count / statistics.mean(engine_seconds)
    return {
        "rows": arguments.rows,
        "row_bytes": arguments.row_bytes,
        "generator": arguments.generator,
        "threads": server.threads,
        "bins": arguments.bins,
        "clients": arguments.clients,
        "batch": arguments.batch,
        "requests": load.requests,
        "queries_per_second": rate,
        "engine_queries_per_second": engine_rate,
        "share_of_engine": rate / engine_rate,
        "median_milliseconds": statistics.median(load.latencies) * 1e3,
        "p99_milliseconds": float(np.quantile(load.latencies, 0.99)) * 1e3,
    }


def _query(client: Client, lookups: int) -> Query:
    """Makes a query of random rows, one from each bin."""
    params, random = client.params, np.random.default_rng()
    shape = (lookups, params.slots) if params.is_cut else (lookups,)
    return client.query(random.integers(params.rows // params.slots, size=shape))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns the factory of the event loop that the server uses: uvloop if installed."""
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


@dataclass(slots=True)
class _Load:
    """The requests of all clients between the end of the warm-up and the end."""

    seconds: float
    requests: int = 0
    latencies: list[float] = field(default_factory=list)


async def _load(
    url: str, exchanges: list[tuple[bytes, bytes]], clients: int, seconds: float
) -> _Load:
    load = _Load(seconds)
    begin = time.perf_counter() + _WARM_SECONDS

    def answered(sent: float) -> bool:
        """Counts a request; returns True while the run goes on."""
        now = time.perf_counter()
        if begin <= now < begin + seconds:
            load.requests += 1
            load.latencies.append(now - sent)
        return now < begin + seconds

    await asyncio.gather(
        *(_ask_for_ever(url, exchanges[i % _QUERIES :], answered) for i in range(clients))
    )
    if not load.requests:
        raise ServiceError(f"the service answered nothing within {seconds:g} seconds", url=url)
    return load


async def _ask_for_ever(
    url: str, exchanges: list[tuple[bytes, bytes]], answered: Callable[[float], bool]
) -> None:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = f"POST /v1/tables/{_NAME}/answer HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: "
    try:
        while True:
            for query, expected in exchanges:
                sent = time.perf_counter()
                writer.write(f"{head}{len(query)}\r\n\r\n".encode() + query)
                status = await reader.readuntil(b"\r\n\r\n")
                if not status.startswith(b"HTTP/1.1 200 "):
                    raise ServiceError(f"the service answered {status[:60]!r}", url=url)
                if await reader.readexactly(len(expected)) != expected:
                    raise WrongResultError("an answer of the service is not the engine's")
                if not answered(sent):
                    return
    finally:
        writer.close()


def _say(what: str) -> None:
    """Prints progress to a terminal."""
    if sys.stderr.isatty():
        print(f"{what} ...", file=sys.stderr, flush=True)
