"""`python -m benchmarks.audit`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of

BENCHMARKS = (
    Benchmark(
        "figures",
        "benchmarks.audit.run",
        "what the audit recovers, and the settings at which it fails",
        "Reproduces Figures 6.2 to 6.6 and 6.9 and Tables 6.1 to 6.3 of the thesis (Lam), at small "
        "sizes unless --full is given, and measures the attack without counts. Recovered "
        "participation is compared with the planted one. The tables and Figures 6.6b and 6.9 need "
        "PyTorch, Pillow and CIFAR-10.",
        (
            Option(
                "--only",
                type=list_of(str),
                metavar="NAMES",
                help="figures to measure, such as targets,figure-6.2a,blind,table-6.1 "
                "(default: all)",
            ),
            Option(
                "--full",
                action="store_true",
                help="use the sizes and trials of the chapter, which takes many hours",
            ),
            Option(
                "--trials",
                type=int,
                default=0,
                help="trials of each setting (default: the figure's own number)",
            ),
            Option(
                "--method",
                choices=("auto", "reflect", "program"),
                default="auto",
                help="method of the attack (default: %(default)s)",
            ),
            Option(
                "--certify",
                action="store_true",
                help="measure certificates and updates too; 'targets' always does",
            ),
            Option(
                "--time-limit",
                type=float,
                metavar="SECONDS",
                help="time after which a trial starts no further search (default: 20; 600 with "
                "--full)",
            ),
            Option(
                "--data",
                metavar="FOLDER",
                help="folder that contains cifar10 (default: NESCIO_DATA, or ../shared/data)",
            ),
            Option(
                "--seed", type=int, default=0, help="seed of the first trial (default: %(default)s)"
            ),
            Option(
                "--plot", metavar="FOLDER", help="plot each figure as SVG into this folder; created"
            ),
            JSON,
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    return run_main("audit", "Benchmarks of the audit from the thesis.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
