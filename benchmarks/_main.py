"""The command line that the folders of benchmarks share."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from nescio.bench.registry import Benchmark, add_benchmarks
from nescio.cli import run
from nescio.errors import ArgumentError, FileError

__all__ = ["build_parser", "chosen", "main", "make_folder"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=_Named)


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


def chosen(every: Sequence[_T], names: Sequence[str] | None, what: str) -> list[_T]:
    """Selects items by name, in their own order; all of them without names.

    Raises ArgumentError for an unknown name; `what` says what the items are.
    """
    known = [item.name for item in every]
    for name in names or []:
        if name not in known:
            raise ArgumentError(f"{what}: found {name!r}, expected one of {', '.join(known)}")
    return [item for item in every if not names or item.name in names]


def make_folder(name: str, option: str = "--out") -> Path:
    """Creates the folder that an option names, unless it exists. Raises FileError."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{option}: the folder cannot be created: {error}") from error
    return path
