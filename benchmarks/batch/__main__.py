"""`python -m benchmarks.batch`."""

import os
import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of, one_of, seconds
from nescio.commands import count

_LOGS = ("movielens", "wikitext2", "wikitext2-stream")
_DATA = (
    Option(
        "--data",
        default=os.environ.get("NESCIO_DATA") or "../shared/data",
        help="folder of the data sets (default: NESCIO_DATA, or ../shared/data)",
    ),
    Option(
        "--logs",
        type=list_of(one_of(_LOGS)),
        default=["movielens", "wikitext2"],
        help=f"logs: {', '.join(_LOGS)} (default: movielens,wikitext2)",
    ),
)
_SERVER = (
    Option(
        "--clients",
        type=count,
        default=64,
        help="number of inferences that a server answers together (default: 64)",
    ),
    Option(
        "--threads",
        type=int,
        default=1,
        help="number of threads of the server; 0 is every processor (default: 1)",
    ),
    Option(
        "--no-verify",
        action="store_false",
        dest="verify",
        help="leave out the keys and answers with which clients check rows",
    ),
    seconds(0.5),
)

BENCHMARKS = (
    Benchmark(
        "pareto",
        "benchmarks.batch.pareto",
        "inferences per second against bytes: whole lookups, partial and exact mode",
        "Measures one server's answers for inferences of several numbers of rows: with whole "
        "lookups, with as many bins as rows (partial mode), and with four hashes (exact mode).",
        (
            Option("--rows", type=count, default=1 << 20, help="rows of the table (default: 2^20)"),
            Option("--row-bytes", type=count, default=64, help="bytes of a row (default: 64)"),
            Option(
                "--lookups",
                type=list_of(count),
                default=[8, 16, 32, 64, 128],
                help="numbers of rows per inference (default: 8,16,32,64,128)",
            ),
            *_SERVER,
            Option("--plot", metavar="FILE", help="plot the modes, as SVG or PNG"),
            JSON,
        ),
    ),
    Benchmark(
        "gains",
        "benchmarks.batch.gains",
        "gains of bins, hot rows, several hashes, rows together and exact mode, on real logs",
        "Searches layouts of each family on logs of real data as nescio tune does, and prints the "
        "fastest that retrieve 70, 80, 90, 95, 99 and 100 % of the rows of held-out inferences.",
        (
            *_DATA,
            Option(
                "--layouts",
                type=count,
                default=200,
                help="maximum number of layouts of each family (default: 200)",
            ),
            Option(
                "--max-bytes",
                type=float,
                default=300_000,
                help="maximum bytes of an inference, both servers (default: 300000)",
            ),
            Option(
                "--cache-rows",
                type=count,
                default=0,
                help="rows that a client keeps; needs a log with users and times (default: 0)",
            ),
            Option(
                "--min-count",
                type=count,
                default=5,
                help="users that a row or pair needs to shape a layout (default: 5)",
            ),
            *_SERVER,
            JSON,
        ),
    ),
    Benchmark(
        "logs",
        "benchmarks.batch.logs",
        "logs of real data as files for nescio tune",
        "Makes access logs of MovieLens (the films that a user liked last) and of WikiText-2 "
        "(windows of words), and writes them as files.",
        (*_DATA, Option("--out", default="logs", help="folder of the files (default: logs)")),
    ),
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
