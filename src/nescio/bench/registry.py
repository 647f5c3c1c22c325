"""Benchmarks as data: the options of each, and the module that is imported when it runs."""

import argparse
import importlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Subparsers = object

__all__ = [
    "JSON",
    "LINKS",
    "PARTY_THREADS",
    "Benchmark",
    "Option",
    "add_benchmarks",
    "list_of",
    "one_of",
    "seconds",
]


_METAVARS = {"comma-separated list": "LIST", "count": "N", "float": "X", "int": "N"}


class Option:
    """One option of a command line: the arguments of `ArgumentParser.add_argument`."""

    def __init__(self, name: str, **settings: Any) -> None:  # noqa: ANN401 - argparse's own
        self.name, self.settings = name, settings


class Benchmark(NamedTuple):
    """A benchmark: `module` has a function `run`, which takes the arguments."""

    name: str
    module: str
    help: str
    description: str
    options: tuple[Option, ...]


def add_benchmarks(parsers: Subparsers, benchmarks: Iterable[Benchmark]) -> None:
    """Adds a command for each benchmark."""
    for benchmark in benchmarks:
        parser = parsers.add_parser(
            benchmark.name, help=benchmark.help, description=benchmark.description
        )
        for option in benchmark.options:
            kind = getattr(option.settings.get("type"), "__name__", "")
            shown = {"metavar": _METAVARS[kind]} if kind in _METAVARS else {}
            parser.add_argument(option.name, **{**shown, **option.settings})
        parser.set_defaults(run=partial(_run, benchmark.module))


def _run(module: str, arguments: argparse.Namespace) -> int:
    code: int = importlib.import_module(module).run(arguments)
    return code


def list_of(kind: Callable[[str], object]) -> Callable[[str], list[object]]:
    """Returns a reader of comma-separated lists for argparse; repeated items count once."""

    def read(text: str) -> list[object]:
        return [*dict.fromkeys(kind(part) for part in text.split(","))]

    read.__name__ = "comma-separated list"
    return read


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Returns a reader of one of some names for argparse."""
    choices = list(names)

    def read(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(choices)}")
        return text

    return read


PARTY_THREADS = Option(
    "--threads",
    type=list_of(int),
    default=[1],
    help="numbers of threads of each party; 0 is every processor (default: 1)",
)

LINKS = Option(
    "--link",
    type=list_of(str),
    default=["local"],
    help="emulated networks: local, or rate and round trip such as 300mbit/2ms (default: local)",
)

JSON = Option("--json", metavar="FILE", help="write the cases as JSON, after each case")


def seconds(default: float, what: str = "each case") -> Option:
    """Returns the option for the duration of a measurement."""
    return Option(
        "--seconds",
        type=float,
        default=default,
        help=f"duration of the measurement of {what}, in seconds (default: %(default)s)",
    )
