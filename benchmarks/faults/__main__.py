"""`python -m benchmarks.faults`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of, seconds
from nescio.commands import count

BENCHMARKS = (
    Benchmark(
        "suite",
        "benchmarks.faults.suite",
        "each fault in turn: what is lost, what is wrong, the longest outage",
        "Starts two parties, clients that compare every row with a model of the table, and an "
        "operator that updates rows. Makes one fault happen after the other, and prints a line for "
        "each. The exit code is 1 if an acknowledged update is lost, a row is wrong, or a server "
        "prints a traceback.",
        (
            Option("--only", type=list_of(str), help="faults by name (default: all)"),
            Option("--kills", type=count, default=200, help="SIGKILLs (default: 200)"),
            Option(
                "--fuzzed",
                type=count,
                default=1_000_000,
                help="malformed requests (default: 1000000)",
            ),
            Option(
                "--connections",
                type=count,
                default=10_000,
                help="connections of a flood (default: 10000)",
            ),
            Option("--seed", type=int, default=1, help="seed of the instants (default: 1)"),
            seconds(5.0, "a fault that lasts"),
            JSON,
        ),
    ),
    Benchmark(
        "cluster",
        "benchmarks.faults.cluster.suite",
        "faults of a table in shards on a Ray cluster of three nodes",
        "Starts a Ray cluster of three nodes on this machine, a party with a table in 3 shards of "
        "2 replicas on it, a party without a cluster, clients and an operator. Makes replicas, "
        "nodes, the head of the table and fronts end one after the other, and prints a line for "
        "each fault. The exit code is 1 if an acknowledged update is lost, a row is wrong, or a "
        "lookup fails though each shard has another replica.",
        (
            Option("--only", type=list_of(str), help="faults by name (default: all)"),
            Option("--kills", type=count, default=60, help="killed replicas (default: 60)"),
            Option(
                "--limit",
                type=float,
                default=600.0,
                metavar="SECONDS",
                help="seconds after which no more replicas are killed (default: 600)",
            ),
            Option("--seed", type=int, default=1, help="seed of the instants (default: 1)"),
            seconds(4.0, "a fault that lasts"),
            JSON,
        ),
    ),
    Benchmark(
        "soak",
        "benchmarks.faults.soak",
        "updates and lookups for a long time, and the memory of the servers",
        "Starts two parties, clients and an operator, and samples the memory of the servers. "
        "Prints its slope after a tenth of the time. The exit code is 1 if that is significantly "
        "above 1 MB an hour, or for the reasons of the suite.",
        (
            Option("--updates", type=float, default=5.0, help="updates a second (default: 5)"),
            seconds(3600.0, "the soak"),
            JSON,
        ),
    ),
    Benchmark(
        "journal",
        "benchmarks.faults.journal",
        "changes that last: a record, an update, a snapshot, a start",
        "Times records of a journal, updates with and without one, lookups during snapshots, and "
        "the start of a server whose journal is as long as it gets before a snapshot begins.",
        (
            Option("--rows", type=count, default=1 << 20, help="rows of the table (default: 2^20)"),
            Option("--row-bytes", type=count, default=64, help="bytes of a row (default: 64)"),
            Option("--folder", metavar="DIR", help="a folder on the disk to measure"),
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one of them; returns the exit code."""
    return run_main("faults", "Faults of two parties on loopback.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
