"""The command line that the folders of benchmarks share."""

import argparse
from collections.abc import Iterable, Sequence

from nescio.bench.registry import Benchmark, add_benchmarks
from nescio.cli import run

__all__ = ["build_parser", "main"]


def main(
    folder: str,
    description: str,
    benchmarks: Iterable[Benchmark],
    argv: Sequence[str] | None = None,
) -> int:
    """Runs one benchmark of a folder and returns the exit code, as the command `nescio` does."""
    return run(build_parser(f"benchmarks.{folder}", description, benchmarks), argv)


def build_parser(
    module: str, description: str, benchmarks: Iterable[Benchmark]
) -> argparse.ArgumentParser:
    """Returns the parser of `python -m MODULE`."""
    parser = argparse.ArgumentParser(f"python -m {module}", description=description)
    parsers = parser.add_subparsers(title="benchmarks", required=True, metavar="BENCHMARK")
    add_benchmarks(parsers, benchmarks)
    return parser
