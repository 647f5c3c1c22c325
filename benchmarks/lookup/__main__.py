"""`python -m benchmarks.lookup`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of, seconds
from nescio.commands import devices

BENCHMARKS = (
    Benchmark(
        "figures",
        "benchmarks.lookup.run",
        "figures and tables of the paper, on a GPU",
        'Reproduces Figures 6, 8, 9, 13 and 14 and Tables 4 and 5 of "GPU-based Private '
        'Information Retrieval for On-Device Machine Learning Inference" (Lam et al., 2024) with '
        "this engine. Writes each as text and, if matplotlib is installed, as a plot, and all "
        "cases as JSON.",
        (
            Option(
                "--device",
                type=devices,
                default="cuda",
                help="GPU to measure: cuda, cuda:1, ... (default: cuda)",
            ),
            Option("--out", metavar="FOLDER", required=True, help="folder of the results; created"),
            Option(
                "--json",
                metavar="FILE",
                help="write the cases as JSON, after each case (default: figures.json in --out)",
            ),
            Option(
                "--quick",
                action="store_true",
                help="use tiny sizes, to test the command; the figures are meaningless",
            ),
            Option(
                "--only",
                type=list_of(str),
                metavar="NAMES",
                help="figures to measure, such as table-5,figure-13 (default: all)",
            ),
            seconds(0.2),
            Option(
                "--within",
                type=float,
                metavar="SECONDS",
                help="skip cases that have not started this many seconds after the command",
            ),
        ),
    ),
    Benchmark(
        "embedding",
        "benchmarks.lookup.embedding",
        "a private embedding of PyTorch, on the CPU",
        "Measures a call of nescio.torch.PrivateEmbedding beside the lookup alone, its parts, and "
        "nn.Embedding, with both servers in this process. Needs PyTorch.",
        (
            Option("--rows", type=int, default=1 << 20, help="rows (default: %(default)s)"),
            Option("--columns", type=int, default=64, help="float32 a row (default: %(default)s)"),
            Option(
                "--indices",
                type=list_of(int),
                default=[1, 16, 128],
                help="numbers of indices of a call (default: 1,16,128)",
            ),
            Option("--threads", type=int, default=1, help="of each server (default: %(default)s)"),
            seconds(1.0),
            JSON,
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    return run_main("lookup", "Benchmarks of private lookups from papers.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
