"""`python -m benchmarks.infer`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of

BENCHMARKS = (
    Benchmark(
        "linear",
        "benchmarks.infer.linear",
        "the offline phase of linear layers",
        "Measures the CPU time of both parties and the bytes of both messages, on one thread, for "
        "layers of ResNet-32 and other shapes, and compares the shares with the product. The "
        "limit is the time of the transforms, products and random bytes that a layer needs, each "
        "measured alone in the cache, in the same run.",
        (
            Option(
                "--layer",
                type=list_of(str),
                metavar="NAMES",
                help="comma-separated layers (default: all)",
            ),
            Option("--repeat", type=int, default=15, help="runs of each layer (default: 15)"),
            JSON,
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    return run_main("infer", "Benchmarks of private inference.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
