"""`python -m benchmarks.cluster`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of, one_of
from nescio.commands import count

from .costs import NODES

_NODES = list(NODES)
_MODEL = (
    Option("--constants", metavar="FILE", help="constants as a JSON object, in place of defaults"),
    Option("--row-bytes", type=count, default=128, help="bytes of a row (default: 128)"),
    Option(
        "--generator",
        type=one_of(("chacha20", "aes128")),
        default="chacha20",
        help="generator, which sets the size of keys (default: chacha20)",
    ),
    Option(
        "--no-verify",
        action="store_false",
        dest="verify",
        help="leave out the hash tables with which clients check rows",
    ),
    Option("--batch-keys", type=count, default=256, help="lookups of a batch (default: 256)"),
    Option("--in-flight", type=count, default=2, help="batches of a front under way (default: 2)"),
    Option("--rows-per-request", type=count, default=1, help="lookups of a request (default: 1)"),
    Option("--seed", type=int, default=1, help="seed of arrivals and slow calls (default: 1)"),
)
_GRID = (
    Option(
        "--rows",
        type=list_of(count),
        default=[10**8, 10**9],
        help="numbers of rows of the table (default: 10^8,10^9)",
    ),
    Option(
        "--lookups-per-second",
        type=list_of(float),
        default=[1e3, 1e4, 1e5, 1e6],
        help="rates of lookups that arrive at random (default: 1e3,1e4,1e5,1e6)",
    ),
)
_PLOT = Option("--plot", metavar="FILE", help="plot the cases, as SVG or PNG")

BENCHMARKS = (
    Benchmark(
        "simulate",
        "benchmarks.cluster.simulate",
        "latency, machines and network for numbers of shards and rates of lookups",
        "Simulates tables cut to shards, with as many replicas and fronts as keep every load below "
        "0.7, and prints the constants of the simulation first.",
        (
            *_GRID,
            Option(
                "--shards",
                type=list_of(count),
                default=[10, 100, 1000],
                help="numbers of shards (default: 10,100,1000)",
            ),
            Option(
                "--node",
                type=one_of(_NODES),
                default="cpu16",
                help=f"machine of a shard: {', '.join(_NODES)} (default: cpu16)",
            ),
            Option(
                "--tree",
                type=list_of(int),
                default=[0, 32],
                help="widths of trees of adders; 0 is none (default: 0,32)",
            ),
            Option(
                "--slow-calls",
                type=list_of(float),
                default=[0.0, 0.001],
                help="probabilities that a call is slow (default: 0,0.001)",
            ),
            Option(
                "--slow-factor",
                type=float,
                default=10.0,
                help="times that a slow call takes as long (default: 10)",
            ),
            *_MODEL,
            _PLOT,
            JSON,
        ),
    ),
    Benchmark(
        "plan",
        "benchmarks.cluster.plan",
        "fewest machines for rates of lookups: bins, GPUs or more machines",
        "Searches shards, replicas and fronts for the fewest machines with every load below 0.7 "
        "and the 99th percentile below a limit, for each kind of machine; and for lookups of "
        "several rows at once, with whole lookups and with bins.",
        (
            *_GRID,
            Option(
                "--nodes",
                type=list_of(one_of(_NODES)),
                default=_NODES,
                help=f"machines of shards (default: {','.join(_NODES)})",
            ),
            Option(
                "--limit-ms",
                type=float,
                default=200.0,
                help="most milliseconds of the 99th percentile (default: 200)",
            ),
            Option(
                "--wanted",
                type=count,
                default=64,
                help="rows of a lookup from bins (default: 64)",
            ),
            Option(
                "--gpu-price",
                type=float,
                default=3.0,
                help="machines of 64 cores for the price of one with a GPU (default: 3)",
            ),
            *_MODEL,
            _PLOT,
            JSON,
        ),
    ),
    Benchmark(
        "check",
        "benchmarks.cluster.check",
        "predictions beside measurements of shards on one machine",
        "Predicts each case of a JSON file, a list of {shards, threads, clients, rows, row_bytes, "
        "rows_per_request, queries_per_second, p50_ms, p99_ms}, for clients that send the next "
        "request after an answer. The shards share the cores and the memory of one machine.",
        (
            Option("--measured", metavar="FILE", required=True, help="measured cases"),
            Option("--cores", type=count, default=2, help="cores of the machine (default: 2)"),
            Option(
                "--gb-per-second",
                type=float,
                default=48.0,
                help="GB/s that all cores read from memory together (default: 48)",
            ),
            Option("--constants", metavar="FILE", help="constants as a JSON object"),
            Option(
                "--batch-keys", type=count, default=256, help="lookups of a batch (default: 256)"
            ),
            Option("--in-flight", type=count, default=2, help="batches under way (default: 2)"),
            Option("--requests", type=count, default=4000, help="requests a case (default: 4000)"),
            Option(
                "--no-verify",
                action="store_false",
                dest="verify",
                help="predict lookups whose answers are not checked",
            ),
            JSON,
        ),
    ),
    Benchmark(
        "calls",
        "benchmarks.cluster.calls",
        "the cost of calls between a front and its shards, by process",
        "Calls the shards of a small table on this machine, and prints the time of a batch and the "
        "processor time of the front, of all shards and of Ray.",
        (
            Option("--rows", type=count, default=4096, help="rows of the table (default: 4,096)"),
            Option("--row-bytes", type=count, default=256, help="bytes of a row (default: 256)"),
            Option(
                "--shards",
                type=list_of(count),
                default=[1, 2, 4, 8],
                help="numbers of shards (default: 1,2,4,8)",
            ),
            Option(
                "--keys",
                type=list_of(count),
                default=[1, 128, 256],
                help="keys of a batch (default: 1,128,256)",
            ),
            Option("--seconds", type=float, default=4.0, help="of each case (default: 4)"),
            JSON,
        ),
    ),
    Benchmark(
        "proxy",
        "benchmarks.cluster.proxy",
        "requests a second of our front, and of Ray Serve's proxy in its place",
        "Loads a front with a small table on this machine, and Ray Serve's proxy before a "
        "deployment that has the answers, in turns. Needs ray[serve].",
        (
            Option("--rows", type=count, default=4096, help="rows of the table (default: 4,096)"),
            Option("--row-bytes", type=count, default=256, help="bytes of a row (default: 256)"),
            Option("--clients", type=count, default=16, help="clients (default: 16)"),
            Option("--rows-per-request", type=count, default=16, help="rows (default: 16)"),
            Option("--seconds", type=float, default=12.0, help="of each (default: 12)"),
            JSON,
        ),
    ),
    Benchmark(
        "disk",
        "benchmarks.cluster.disk",
        "a table on a disk, larger than the memory: build, start and lookups",
        "Builds a table of rows that a seed determines, serves it from its files by shards on this "
        "machine, one party after the other, looks rows up, and prints the seconds beside what the "
        "disk can read.",
        (
            Option("--gigabytes", type=float, default=2.0, help="GB of all rows (default: 2)"),
            Option("--row-bytes", type=count, default=256, help="bytes of a row (default: 256)"),
            Option("--shards", type=count, default=8, help="parts of the table (default: 8)"),
            Option(
                "--out",
                metavar="FOLDER",
                required=True,
                help="folder of a disk that has space for the table, which is removed at the end",
            ),
            Option("--keep", action="store_true", help="leave the table in the folder"),
            Option(
                "--keys",
                type=list_of(count),
                default=[1, 128],
                help="rows of each lookup, at most 1,024 (default: 1,128)",
            ),
            Option("--threads", type=count, default=1, help="threads of a shard (default: 1)"),
            Option(
                "--build-threads",
                type=int,
                default=0,
                help="threads of the build; 0 is every processor (default: 0)",
            ),
            Option("--seed", type=int, default=1, help="seed of the rows (default: 1)"),
            JSON,
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one of them; returns the exit code."""
    return run_main("cluster", "A simulation of a table in shards.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
