"""Requests a second of our front, and of Ray Serve's proxy in its place.

Our front does all of its work: it batches lookups in a table so small that the rows' product takes
next to nothing, asks a shard, and adds. Behind Ray Serve's proxy a deployment returns answers that
were computed before: a front there would have to batch, ask and add besides. Both have the same
clients, the same requests and the same answers, which are compared, and are loaded in turns.
"""

import argparse
import socket
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nescio._report import Case, Column, Report
from nescio.bench.results import Results
from nescio.bench.service._connection import TABLE
from nescio.bench.service.throughput import _QUERIES, _load_of, _query
from nescio.errors import ArgumentError
from nescio.pir import Client, Server, Table
from nescio.service._cluster import connected
from nescio.service._spawn import spawned

__all__ = ["run"]

_ROUNDS = 3
_COLUMNS: tuple[Column, ...] = (
    ("proxy", "proxy", "30"),
    ("clients", "clients", ">7,d"),
    ("requests_per_second", "requests/s", ">10,.0f"),
    ("median_milliseconds", "median ms", ">9.2f"),
    ("p99_milliseconds", "p99 ms", ">8.2f"),
)


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each of the two; returns 0."""
    with Results(arguments.json) as results, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.npy")
        shape = arguments.rows, arguments.row_bytes
        np.save(path, np.random.default_rng(1).integers(256, size=shape, dtype=np.uint8))
        server = Server(Table(np.load(path)), threads=1, party=0)
        client = Client(server.params, server.tops)
        queries = [_query(client, arguments.rows_per_request).keys[0] for _ in range(_QUERIES)]
        exchanges = [(query, server.answer(query)) for query in queries]
        options = [str(path), "--name", TABLE, "--party", "0", "--port", "0", "--threads", "1"]
        options += ["--cluster", "local", "--max-connections-per-address", "1024"]
        report = Report(_COLUMNS)
        with _serving(dict(exchanges)) as other, spawned(options) as ours:
            urls = {"ours, with the shard's answers": ours.url(), "Ray Serve, without them": other}
            for case in _cases(arguments, urls, exchanges):
                report.add(case)
                results.add(case)
    return 0


def _cases(
    arguments: argparse.Namespace, urls: Mapping[str, str], exchanges: list[tuple[bytes, bytes]]
) -> Iterator[Case]:
    each = arguments.seconds / _ROUNDS
    rates: dict[str, list[float]] = {name: [] for name in urls}
    latencies: dict[str, list[float]] = {name: [] for name in urls}
    for _ in range(_ROUNDS):
        for name, url in urls.items():
            load = _load_of(url, exchanges, arguments.clients, each)
            rates[name].append(load.requests / load.seconds)
            latencies[name] += load.latencies
    for name in urls:
        yield {
            "proxy": name,
            "clients": arguments.clients,
            "requests_per_second": statistics.median(rates[name]),
            "median_milliseconds": 1e3 * statistics.median(latencies[name]),
            "p99_milliseconds": 1e3 * float(np.quantile(latencies[name], 0.99)),
        }


@contextmanager
def _serving(answers: Mapping[bytes, bytes]) -> Iterator[str]:
    """Gives the address of Ray Serve's proxy, behind which a deployment has answers."""
    with connected("local", 0):
        try:
            from ray import serve  # noqa: PLC0415 - after Ray's settings
        except ModuleNotFoundError as error:
            raise ArgumentError(
                f"Ray Serve needs the package {error.name!r}: pip install 'ray[serve]'"
            ) from error
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(_deployment(serve)(dict(answers)), route_prefix="/")
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            serve.shutdown()  # type: ignore[no-untyped-call]


def _deployment(serve: Any) -> Callable[[dict[bytes, bytes]], Any]:  # noqa: ANN401 - a module
    from starlette.requests import Request  # noqa: PLC0415 - Ray reads the annotation
    from starlette.responses import Response  # noqa: PLC0415

    class Answers:
        """Returns the answer of a query."""

        def __init__(self, answers: dict[bytes, bytes]) -> None:
            self._answers = answers

        async def __call__(self, request: Request) -> Response:
            return Response(self._answers[await request.body()])

    deployed = serve.deployment(max_ongoing_requests=256, ray_actor_options={"num_cpus": 0})
    made: Callable[[dict[bytes, bytes]], Any] = deployed(Answers).bind
    return made
