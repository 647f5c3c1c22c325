"""`python -m benchmarks.batch`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of
from nescio.commands import count

BENCHMARKS = (
    Benchmark(
        "failures",
        "benchmarks.batch.failures",
        "failure probability of exact mode: the bound, and random trials",
        "Prints the numbers of bins with which exact mode fails at most once in 2^40 inferences by "
        "the bound of nescio.pir.batch.failure_probability, then tries random rows where failures "
        "are frequent enough: the usual three hashes with few bins per lookup, and four hashes "
        "with fewer bins than the bound asks for.",
        (
            Option(
                "--lookups",
                type=list_of(count),
                default=[8, 16, 32, 64, 72],
                help="numbers of rows per inference (default: 8,16,32,64,72)",
            ),
            Option(
                "--trials",
                type=count,
                default=100_000,
                help="inferences per case (default: 100000; 10^6 takes some minutes)",
            ),
            Option(
                "--threads",
                type=int,
                default=0,
                help="number of threads; 0 is every processor (default: 0)",
            ),
            JSON,
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    return run_main("batch", "Benchmarks of batch lookups.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
