"""The benchmarks of the service, and their options."""

import argparse
from collections.abc import Callable

from ..registry import JSON, Benchmark, Option, list_of, seconds

_ROWS = Option("--rows", type=int, default=1 << 20, help="rows of the table (default: 2^20)")
_THREADS = Option(
    "--threads", type=int, default=1, help="number of threads; 0 is every processor (default: 1)"
)


def service_benchmarks(
    generator: Callable[[str], str], devices: Callable[[str], str]
) -> tuple[Benchmark, ...]:
    """Returns the benchmarks; `generator` reads the name of a generator for argparse."""
    return (
        Benchmark(
            "service",
            "nescio.bench.service.throughput",
            "the HTTP service under load",
            "Starts a server, sends it queries from several clients at once, checks every answer, "
            "and compares with the engine alone, timed before and after.",
            (
                _ROWS,
                _row_bytes(256),
                Option(
                    "--clients",
                    type=list_of(int),
                    default=[16],
                    help="concurrent clients, each with one request in flight (default: 16)",
                ),
                Option(
                    "--rows-per-request",
                    type=list_of(int),
                    default=[16],
                    help="rows that a request asks for (default: 16)",
                ),
                Option(
                    "--batch",
                    dest="rows_per_request",
                    type=list_of(int),
                    default=argparse.SUPPRESS,
                    help=argparse.SUPPRESS,
                ),
                Option(
                    "--load",
                    type=float,
                    default=0.0,
                    metavar="X",
                    help="also measure latencies at this share of the measured rate, such as 0.5",
                ),
                Option(
                    "--bins",
                    type=int,
                    default=1,
                    help="bins of the table; a query has a key for each (default: %(default)s)",
                ),
                Option(
                    "--threads",
                    type=int,
                    default=1,
                    help="threads of the server; 0 is every processor, but the clients "
                    "need a processor too (default: %(default)s)",
                ),
                Option(
                    "--generator",
                    type=generator,
                    default="chacha20",
                    help="pseudorandom generator of the keys (default: %(default)s)",
                ),
                seconds(10.0),
                JSON,
            ),
        ),
        Benchmark(
            "fairness",
            "nescio.bench.service.fairness",
            "an honest client of the service beside a greedy one",
            "Starts a server, and measures a client that asks for one row at a time, alone and "
            "beside one with many large requests from another address.",
            (
                _ROWS,
                _row_bytes(256),
                Option(
                    "--connections",
                    type=int,
                    default=20,
                    help="connections of the greedy client (default: %(default)s)",
                ),
                Option(
                    "--keys",
                    type=int,
                    default=1024,
                    help="rows in each request of the greedy client (default: %(default)s)",
                ),
                _THREADS,
                seconds(15.0, "the honest client, alone and beside the greedy one"),
                JSON,
            ),
        ),
        Benchmark(
            "updates",
            "nescio.bench.service.updates",
            "lookups of the service beside an operator's updates",
            "Starts a server, and measures clients that ask for one row at a time, with and "
            "without updates of random rows, in turns.",
            (
                _ROWS,
                _row_bytes(64),
                Option(
                    "--clients",
                    type=int,
                    default=32,
                    help="concurrent clients, each with one request in flight "
                    "(default: %(default)s)",
                ),
                Option(
                    "--updates",
                    type=float,
                    default=20.0,
                    help="updates a second (default: %(default)s)",
                ),
                Option(
                    "--updated-rows",
                    type=int,
                    default=1000,
                    help="random rows that an update changes (default: %(default)s)",
                ),
                _THREADS,
                seconds(30.0, "all rounds"),
                JSON,
            ),
        ),
        Benchmark(
            "cluster",
            "nescio.bench.service.cluster",
            "the service with its table in shards on Ray",
            "Starts a server without a cluster and one with its table in shards on this machine, "
            "and loads them in turns.",
            (
                _ROWS,
                _row_bytes(256),
                Option(
                    "--shards",
                    type=list_of(int),
                    default=[1, 4],
                    help="parts into which the rows are cut (default: 1,4)",
                ),
                Option("--replicas", type=int, default=1, help="of each shard (default: 1)"),
                Option(
                    "--device",
                    type=devices,
                    default="cpu",
                    help="of the service, and of each replica: cpu, or cuda (default: cpu)",
                ),
                Option(
                    "--clients",
                    type=int,
                    default=16,
                    help="concurrent clients, each with one request in flight (default: 16)",
                ),
                Option(
                    "--rows-per-request",
                    type=int,
                    default=16,
                    help="rows that a request asks for (default: 16)",
                ),
                _THREADS,
                seconds(24.0, "each case"),
                JSON,
            ),
        ),
    )


def _row_bytes(default: int) -> Option:
    return Option(
        "--row-bytes", type=int, default=default, help="bytes of a row (default: %(default)s)"
    )
