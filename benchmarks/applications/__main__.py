"""`python -m benchmarks.applications`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of, one_of, seconds
from nescio.commands import count, devices, generator

_NAMES = ("movielens", "wikitext2", "taobao")
_APPLICATIONS = Option(
    "--applications",
    type=list_of(one_of(_NAMES)),
    default=list(_NAMES),
    help=f"applications (default: {','.join(_NAMES)})",
)
_GENERATORS = Option(
    "--generator",
    type=list_of(generator),
    default=["chacha20", "aes128"],
    help="generators (default: chacha20,aes128)",
)
_BUDGETS = (
    Option(
        "--max-bytes",
        type=float,
        default=300_000,
        help="maximum bytes of an inference, both servers (default: 300000)",
    ),
    Option(
        "--max-ms",
        type=float,
        default=300,
        help="maximum milliseconds of a server's answer to all clients together (default: 300)",
    ),
)
_THREADS = Option(
    "--threads",
    type=int,
    default=1,
    help="number of threads of the server; 0 is every processor (default: 1)",
)

BENCHMARKS = (
    Benchmark(
        "table3",
        "benchmarks.applications.table3",
        "Table 3: inferences a second of one server, plain, partial and exact",
        "Measures one server at the paper's sizes and budgets, with random rows: whole lookups, as "
        "many bins as rows, and exact mode, with and without the keys that check rows.",
        (
            _APPLICATIONS,
            _GENERATORS,
            *_BUDGETS,
            Option(
                "--clients",
                type=list_of(count),
                default=[16, 64, 256],
                help="numbers of inferences that are answered together, of which the best counts "
                "(default: 16,64,256)",
            ),
            Option(
                "--device",
                type=devices,
                default="cpu",
                help="processor or devices that answer: cpu, cuda, cuda:0+cuda:1 (default: cpu)",
            ),
            _THREADS,
            Option(
                "--scale",
                type=float,
                default=1.0,
                help="factor of all numbers of rows, to test the command (default: 1)",
            ),
            seconds(0.3),
            JSON,
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    return run_main("applications", "Benchmarks of the paper's applications.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
