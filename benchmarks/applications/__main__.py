"""`python -m benchmarks.applications`."""

import argparse
import os
import re
import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of, one_of, seconds
from nescio.commands import count, devices, generator


def _bits(text: str) -> tuple[int, int]:
    """Parses the bits of weights and activations for argparse."""
    found = re.fullmatch(r"([1-8]),(8|16|32)", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected the bits of weights (1 to 8) and activations (8, 16, 32): 4,8"
        )
    return int(found[1]), int(found[2])


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
_MAX_MS = Option(
    "--max-ms",
    type=float,
    default=300,
    help="maximum milliseconds of a server's answer to all clients together (default: 300)",
)
_BUDGETS = (
    Option(
        "--max-bytes",
        type=float,
        default=300_000,
        help="maximum bytes of an inference, both servers (default: 300000)",
    ),
    _MAX_MS,
)
_MODELS = (
    Option(
        "--data",
        default=os.environ.get("NESCIO_DATA") or "../shared/data",
        help="folder of the data sets (default: NESCIO_DATA, or ../shared/data)",
    ),
    Option(
        "--size",
        choices=("small", "default", "full"),
        default="default",
        help="data and training: those of the applications with --small, without, or with --full",
    ),
    Option("--seed", type=int, default=0, help="seed of the split and the training (default: 0)"),
)
_CLIENTS = Option(
    "--clients",
    type=count,
    default=64,
    help="number of inferences that a server answers together (default: 64)",
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
    Benchmark(
        "latency",
        "benchmarks.applications.latency",
        "Figure 12: the time of one inference by step, with a link of 60 Mbit/s",
        "Trains each application, and runs held-out inferences one by one with two servers: "
        "separate lookups, exact mode, and the fastest layout that loses as much quality as the "
        "paper accepts. The bytes take the time of a slow link, which is emulated beside it.",
        (
            _APPLICATIONS,
            *_MODELS,
            Option(
                "--rate",
                default="60mbit",
                help="rate of the link of the device in each direction (default: 60mbit)",
            ),
            Option("--rtt", default="0ms", help="round-trip time of the link (default: 0ms)"),
            Option(
                "--bits",
                type=_bits,
                default=(4, 8),
                metavar="W,A",
                help="bits of weights and activations of the low-bit layers (default: 4,8)",
            ),
            Option(
                "--timed",
                type=count,
                default=100,
                help="inferences that are measured one by one (default: 100)",
            ),
            Option(
                "--inferences",
                type=count,
                help="inferences whose quality is measured with low-bit layers (default: all)",
            ),
            Option(
                "--layouts",
                type=count,
                default=60,
                help="maximum number of layouts that are tried (default: 60)",
            ),
            JSON,
            Option("--plot", metavar="FILE", help="plot the steps, as PNG"),
        ),
    ),
    Benchmark(
        "sweep",
        "benchmarks.applications.sweep",
        "Figures 11 and 16 to 20: quality against throughput, computation and bytes",
        "Trains each application, searches layouts of each family on its training, measures the "
        "best, and rates them on its test. Some are then checked with real lookups on two servers.",
        (
            _APPLICATIONS,
            *_MODELS,
            _GENERATORS,
            Option(
                "--max-bytes",
                type=list_of(float),
                default=[300_000.0, 100_000.0, 30_000.0],
                help="budgets in bytes of an inference, both servers (default: "
                "300000,100000,30000); the largest is that of the table",
            ),
            _MAX_MS,
            Option(
                "--layouts",
                type=count,
                default=60,
                help="maximum number of layouts of each family and budget (default: 60)",
            ),
            _CLIENTS,
            Option(
                "--no-verify",
                action="store_false",
                dest="verify",
                help="leave out the keys and answers with which clients check rows",
            ),
            Option(
                "--cache-rows",
                type=int,
                default=1000,
                help="rows that a client keeps, for the gain of a cache; 0: none (default: 1000)",
            ),
            Option(
                "--checks",
                type=int,
                default=10,
                help="layouts that are checked with real lookups (default: 10)",
            ),
            Option(
                "--inferences",
                type=count,
                help="inferences of each check (default: all that are held out)",
            ),
            seconds(0.3, "each layout"),
            JSON,
            Option("--plot", metavar="FOLDER", help="folder for the figures, as PNG"),
        ),
    ),
    Benchmark(
        "figures",
        "benchmarks.applications.redraw",
        "the figures of earlier runs of latency and sweep, from their JSON files",
        "Draws the figures again, with the applications of all files beside each other.",
        (
            Option(
                "--cases",
                type=list_of(str),
                required=True,
                metavar="FILES",
                help="files that --json of latency and sweep wrote, separated by commas",
            ),
            Option("--out", metavar="FOLDER", required=True, help="folder of the figures; created"),
        ),
    ),
    Benchmark(
        "all",
        "benchmarks.applications.every",
        "all of these, with their cases as JSON and figures as PNG in one folder",
        "Runs table3, latency and sweep. Applications are trained once.",
        (
            _APPLICATIONS,
            *_MODELS,
            Option("--out", metavar="FOLDER", required=True, help="folder of the results; created"),
            Option(
                "--quick",
                action="store_true",
                help="try and measure little, to test the command; the figures are meaningless",
            ),
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    return run_main("applications", "Benchmarks of the paper's applications.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
