"""`python -m benchmarks.ot`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio import _core
from nescio.bench.registry import JSON, Benchmark, Option, list_of, one_of, seconds
from nescio.commands import count, devices

_TIERS = _core.supported_tiers()

BENCHMARKS = (
    Benchmark(
        "steps",
        "benchmarks.ot.run",
        "each step of silent OT alone",
        "Compares the result of each step with another implementation of it, then times it. "
        "The limits, the machine's rates of AES, random reads and memory, are measured in the same "
        "run. Last, compares naive implementations with those in use, as Figure 9 and Table I of "
        "the cuOT paper (Gan et al.) do.",
        (
            Option(
                "--n",
                type=list_of(count),
                default=[1 << 20],
                help="numbers of OTs, up to 2^25 (default: 2^20)",
            ),
            Option(
                "--set",
                default="b10",
                help="parameter set of primal LPN: b10 to b13, insecure_cuot (default: b10)",
            ),
            Option(
                "--device",
                type=list_of(devices),
                default=["cpu"],
                help="devices: cpu, cuda, cuda:1, ... (default: cpu)",
            ),
            Option(
                "--tier",
                type=list_of(one_of(_TIERS)),
                help=f"instruction-set tiers of the CPU: {', '.join(_TIERS)} (default: all)",
            ),
            Option(
                "--threads",
                type=int,
                default=1,
                help="number of CPU threads; 0 is every processor (default: 1)",
            ),
            seconds(0.3),
            Option(
                "--plot", metavar="FILE.svg", help="plot the time of each implementation of a step"
            ),
            JSON,
        ),
    ),
    Benchmark(
        "messages",
        "benchmarks.ot.messages",
        "a chart of the bytes that each party sends",
        "Draws a bar for each party of each case that `nescio bench ot --json` measured: the bytes "
        "that it sends in its first call, divided by message.",
        (
            Option("results", metavar="RESULTS.json", help="results of nescio bench ot --json"),
            Option("--out", metavar="FILE.svg", required=True, help="the chart"),
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    return run_main("ot", "Benchmarks of oblivious transfer from papers.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
