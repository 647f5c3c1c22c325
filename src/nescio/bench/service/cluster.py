"""`nescio bench cluster`: the service with its table in shards on Ray, beside that without.

Each case starts a server without a cluster and one with it, and loads them in turns. All answers
are compared, byte for byte, with those of the engine on the whole table. `call` is the time of a
batch at a front beyond that of its slowest shard, `add` that of adding the partial answers of 128
keys, both measured in this process on a cluster of its own.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..._arrays import as_count
from ..._device import parse_device_list
from ..._report import Case, Report
from ...errors import ArgumentError
from ...pir import Client, Server, Table
from ...pir._sharded._sum import add_answers
from ...service._cluster import ClusterOptions, connected, open_table
from ...service._cluster._open import array_sources
from ...service._spawn import spawned
from ..results import Results
from ..timing import WrongResultError, check_duration
from ._connection import TABLE
from .throughput import _QUERIES, _load_of, _query, _say

_ROUNDS = 3
_KEYS = 128
_COLUMNS = [
    ("rows", "rows", "13,d"),
    ("row_bytes", "row B", "d"),
    ("shards", "shards", "d"),
    ("replicas", "replicas", "d"),
    ("threads", "threads", "d"),
    ("device", "device", "s"),
    ("clients", "clients", "d"),
    ("batch", "rows/request", "d"),
    ("queries_per_second", "queries/s", "9,.0f"),
    ("plain_queries_per_second", "plain q/s", "9,.0f"),
    ("share_of_plain", "share", "5.2f"),
    ("median_milliseconds", "median ms", "9,.2f"),
    ("p99_milliseconds", "p99 ms", "8,.2f"),
    ("call_milliseconds", "call ms", "7.2f"),
    ("add_milliseconds", "add ms", "6.3f"),
    ("batch_kilobytes", "keys kB", "8.1f"),
    ("partial_kilobytes", "answer kB", "9.1f"),
]


def run(arguments: argparse.Namespace) -> int:
    """Measures each number of shards, prints it, and writes JSON if requested."""
    as_count(arguments.rows, "rows", 1, 1 << 30)
    as_count(arguments.replicas, "replicas", 1, 8)
    check_duration(arguments.seconds)
    if arguments.clients * arguments.rows_per_request > 1 << 14:
        raise ArgumentError("clients: found more than 16,384 rows at a time, expected fewer")
    with Results(arguments.json) as results, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.npy")
        shape = arguments.rows, arguments.row_bytes
        np.save(path, np.random.default_rng().integers(256, size=shape, dtype=np.uint8))
        report = Report(_COLUMNS)
        for case in _cases(arguments, path):
            report.add(case)
            results.add(case)
    print(
        "share: of the service without a cluster, in turns. threads: of that service; of each "
        "shard, divided by the shards, at least one. call: a batch of 128 keys at a front, less "
        "its slowest shard. add: the partial answers of that batch. kB: of that batch and a shard."
    )
    return 0


def _cases(arguments: argparse.Namespace, path: Path) -> Iterator[Case]:
    table = Table(np.load(path, mmap_mode="r"))
    server = Server(table, threads=arguments.threads, party=0, device="cpu")
    client = Client(server.params, server.tops)
    queries = [_query(client, arguments.rows_per_request).keys[0] for _ in range(_QUERIES)]
    exchanges = [(query, server.answer(query)) for query in queries]
    for shards in arguments.shards:
        _say(f"{shards} shards")
        about: Case = {
            "rows": arguments.rows,
            "row_bytes": arguments.row_bytes,
            "shards": shards,
            "replicas": arguments.replicas,
            "threads": server.threads,
            "device": arguments.device,
            "clients": arguments.clients,
            "batch": arguments.rows_per_request,
        }
        loads = _loads(arguments, path, shards, server.threads, exchanges)
        yield {**about, **loads, **_constants(arguments, path, shards, server, client)}


def _threads(threads: int, shards: int) -> int:
    return max(1, threads // shards)


def _loads(
    arguments: argparse.Namespace,
    path: Path,
    shards: int,
    threads: int,
    exchanges: list[tuple[bytes, bytes]],
) -> Case:
    """Loads both services in turns."""
    common = [str(path), "--name", TABLE, "--party", "0", "--port", "0"]
    common += ["--device", arguments.device]
    common += ["--max-connections-per-address", "1024", "--max-waiting-per-client", "16384"]
    sharded = ["--cluster", "local", "--shards", str(shards)]
    sharded += ["--replicas", str(arguments.replicas)]
    each = arguments.seconds / (2 * _ROUNDS)
    rates: tuple[list[float], list[float]] = [], []
    latencies: list[float] = []
    with (
        spawned([*common, "--threads", str(threads)]) as plain,
        spawned([*common, *sharded, "--threads", str(_threads(threads, shards))]) as cluster,
    ):
        urls = plain.url(), cluster.url()
        for _ in range(_ROUNDS):
            for url, own in zip(urls, rates, strict=True):
                load = _load_of(url, exchanges, arguments.clients, each)
                own.append(load.requests * arguments.rows_per_request / load.seconds)
                latencies += load.latencies if url == urls[1] else []
    return {
        "queries_per_second": statistics.median(rates[1]),
        "plain_queries_per_second": statistics.median(rates[0]),
        "share_of_plain": statistics.median(rates[1]) / statistics.median(rates[0]),
        "median_milliseconds": 1e3 * statistics.median(latencies),
        "p99_milliseconds": 1e3 * float(np.quantile(latencies, 0.99)),
    }


def _constants(
    arguments: argparse.Namespace, path: Path, shards: int, server: Server, client: Client
) -> Case:
    """Measures a front's own work for a batch of 128 keys, on a cluster of this process."""
    used = [str(one) for one in parse_device_list(arguments.device)]
    threads = _threads(server.threads, shards)
    options = ClusterOptions(party=0, shards=shards, threads=threads, devices=used)
    fields = {"version": "1", "output": "bit", "generator": "chacha20"}
    with connected("local", 0):
        sources = array_sources(path, options, spare=lambda _: 0, **fields)
        cluster = open_table(TABLE, sources, options)
        try:
            query = client.query(np.arange(_KEYS) % arguments.rows).keys[0]
            if cluster.answer(query) != server.answer(query):
                raise WrongResultError("the shards' answers do not add up to the engine's")
            calls, adds = [], []
            for _ in range(20):
                begin = time.perf_counter()
                partials = cluster.shards.answer([query])
                seconds = time.perf_counter() - begin
                calls.append(seconds - max(one.seconds for one in partials))
                begin = time.perf_counter()
                add_answers(cluster.params, 1, [one.payload for one in partials])
                adds.append(time.perf_counter() - begin)
        finally:
            cluster.stop()
    return {
        "call_milliseconds": 1e3 * statistics.median(calls),
        "add_milliseconds": 1e3 * statistics.median(adds),
        "batch_kilobytes": len(query) / 1e3,
        "partial_kilobytes": len(partials[0].payload) / 1e3,
    }
