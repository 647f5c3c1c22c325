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
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from ..._arrays import as_count
from ..._report import Case, Report
from ..._timing import median_seconds
from ...errors import ArgumentError, ServiceError
from ...pir import Client, Query, Server, Table
from ...pir._bins import MAX_BINS
from ...service._spawn import spawned
from ..results import Results
from ..timing import WrongResultError, check_duration
from ._connection import TABLE

_QUERIES = 64
_MAX_CLIENTS = 1000
_MAX_WAITING = 16384
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
    ("batch", "rows/request", "d"),
    ("load", "load", ".2f"),
    ("queries_per_second", "queries/s", "9,.0f"),
    ("engine_queries_per_second", "engine q/s", ",.0f"),
    ("share_of_engine", "share", ".2f"),
    ("median_milliseconds", "median ms", ",.2f"),
    ("p99_milliseconds", "p99 ms", "7,.2f"),
    ("p99_passes", "p99 passes", "10,.1f"),
]


def run(arguments: argparse.Namespace) -> int:
    """Measures each case, prints it, and writes JSON if requested."""
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
            report = Report(_COLUMNS)
            for case in _cases(arguments, path):
                report.add(case)
                results.add(case)
    print(
        "engine: Server.answer with the keys of all clients as one batch and the same threads, "
        "timed before and after. A pass is Server.answer with one row. With a load, requests "
        "arrive at random at this share of the measured rate, and wait for a connection if need be."
    )
    return 0


def _check_sizes(arguments: argparse.Namespace) -> None:
    as_count(arguments.rows, "rows", 1, 1 << 40)
    as_count(arguments.row_bytes, "row bytes", 1, 1 << 30)
    as_count(arguments.rows * arguments.row_bytes, "bytes of the table", 1, _MAX_BYTES)
    for clients in arguments.clients:
        as_count(clients, "clients", 1, _MAX_CLIENTS)
    for rows in arguments.rows_per_request:
        as_count(rows, "rows per request", 1, 1024)
    if not 0 <= arguments.load < 1:
        raise ArgumentError(f"load: found {arguments.load}, expected 0 to less than 1")
    as_count(arguments.bins, "bins", 1, min(MAX_BINS, arguments.rows))
    if arguments.rows % arguments.bins:
        raise ArgumentError(
            f"rows: found {arguments.rows}, expected a multiple of the bins, {arguments.bins}"
        )
    check_duration(arguments.seconds)


def _cases(arguments: argparse.Namespace, path: Path) -> Iterator[Case]:
    """Starts a server, and yields each case, with the load after the full speed."""
    # Both this process and the server map the table, so it is in memory once.
    server = Server(Table.load(path), threads=arguments.threads, party=0, device="cpu")
    client = Client(server.params, server.tops, insecure_generator=True)
    options = ["--name", TABLE, "--party", "0", "--port", "0"]
    options += ["--max-connections-per-address", str(_MAX_CLIENTS)]
    options += ["--max-waiting-per-client", str(_MAX_WAITING)]  # all clients have one address
    options += ["--device", "cpu", "--threads", str(arguments.threads)]
    _say("timing a pass")
    one = _query(client, 1).keys[0]
    pass_seconds = median_seconds(lambda: server.answer(one), _ENGINE_SECONDS)
    with spawned([str(path), *options]) as process:
        url = process.url()
        for rows in arguments.rows_per_request:
            queries = [_query(client, rows).keys[0] for _ in range(_QUERIES)]
            exchanges = [(query, server.answer(query)) for query in queries]
            for clients in arguments.clients:
                together = _query(client, rows * clients)
                seconds = arguments.seconds
                _say(f"{clients} clients, {rows} rows a request")
                engine = [_engine(server, together)]
                load = _run_load(url, exchanges, clients, seconds, None)
                engine.append(_engine(server, together))
                engine_rate = together.count / statistics.mean(engine)
                about = {
                    "rows": arguments.rows,
                    "row_bytes": arguments.row_bytes,
                    "generator": arguments.generator,
                    "threads": server.threads,
                    "bins": arguments.bins,
                    "clients": clients,
                    "batch": rows,
                    "engine_queries_per_second": engine_rate,
                }
                yield {**about, **_figures(load, rows, engine_rate, pass_seconds)}
                if arguments.load:
                    rate = arguments.load * load.requests / load.seconds
                    part = _run_load(url, exchanges, clients, seconds, rate)
                    figures = _figures(part, rows, engine_rate, pass_seconds)
                    yield {**about, "load": arguments.load, **figures}


def _engine(server: Server, together: Query) -> float:
    return median_seconds(lambda: server.answer(together.keys[0]), _ENGINE_SECONDS)


def _figures(load: "_Load", rows: int, engine_rate: float, pass_seconds: float) -> Case:
    rate = load.requests * rows / load.seconds
    p99 = float(np.quantile(load.latencies, 0.99))
    return {
        "requests": load.requests,
        "queries_per_second": rate,
        "share_of_engine": rate / engine_rate,
        "median_milliseconds": statistics.median(load.latencies) * 1e3,
        "p99_milliseconds": p99 * 1e3,
        "p99_passes": p99 / pass_seconds,
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


def _load_of(
    url: str, exchanges: list[tuple[bytes, bytes]], clients: int, seconds: float
) -> "_Load":
    """Loads a service as fast as it answers."""
    return _run_load(url, exchanges, clients, seconds, None)


def _run_load(
    url: str,
    exchanges: list[tuple[bytes, bytes]],
    clients: int,
    seconds: float,
    rate: float | None,
) -> _Load:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_load(url, exchanges, clients, seconds, rate))


async def _load(
    url: str,
    exchanges: list[tuple[bytes, bytes]],
    clients: int,
    seconds: float,
    rate: float | None,
) -> _Load:
    """Asks on as many connections as there are clients: always, or at a rate at random times."""
    load = _Load(seconds)
    begin = time.perf_counter() + _WARM_SECONDS
    end = begin + seconds
    arrivals: asyncio.Queue[float] = asyncio.Queue()

    async def turn() -> float | None:
        """Returns when the next request began, as soon as it may be sent; None at the end."""
        now = time.perf_counter() if rate is None else await arrivals.get()
        return now if now < end else None

    def answered(began: float) -> None:
        now = time.perf_counter()
        if begin <= now < end:
            load.requests += 1
            load.latencies.append(now - began)

    asking = [_ask_in_turn(url, exchanges[i % _QUERIES :], turn, answered) for i in range(clients)]
    if rate is not None:
        asking.append(_arrive(arrivals, rate, end, clients))
    await asyncio.gather(*asking)
    if not load.requests:
        raise ServiceError(f"the service answered nothing within {seconds:g} seconds", url=url)
    return load


async def _arrive(arrivals: asyncio.Queue[float], rate: float, end: float, clients: int) -> None:
    """Puts in the times at which requests arrive, independent of each other, and the end."""
    random = np.random.default_rng()
    moment = time.perf_counter()
    while moment < end:
        moment += random.exponential(1 / rate)
        await asyncio.sleep(max(0.0, moment - time.perf_counter()))
        arrivals.put_nowait(moment)
    for _ in range(clients):
        arrivals.put_nowait(end)


async def _ask_in_turn(
    url: str,
    exchanges: list[tuple[bytes, bytes]],
    turn: Callable[[], Awaitable[float | None]],
    answered: Callable[[float], None],
) -> None:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = f"POST /v1/tables/{TABLE}/answer HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: "
    try:
        for query, expected in cycle(exchanges):
            began = await turn()
            if began is None:
                return
            writer.write(f"{head}{len(query)}\r\n\r\n".encode() + query)
            status = await reader.readuntil(b"\r\n\r\n")
            if not status.startswith(b"HTTP/1.1 200 "):
                raise ServiceError(f"the service answered {status[:60]!r}", url=url)
            if await reader.readexactly(len(expected)) != expected:
                raise WrongResultError("an answer of the service is not the engine's")
            answered(began)
    finally:
        writer.close()


def _say(what: str) -> None:
    """Prints progress to a terminal."""
    if sys.stderr.isatty():
        print(f"{what} ...", file=sys.stderr, flush=True)
