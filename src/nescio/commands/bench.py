"""`nescio bench`: measures, each figure beside the machine's own limit."""

import argparse
from collections.abc import Callable

from .. import _core
from ..dpf import GENERATORS, OUTPUTS
from . import Subparsers


def add_parser(commands: Subparsers) -> None:
    """Declares the command and its own commands."""
    parser = commands.add_parser("bench", help="measure, beside the machine's own limits")
    benches = parser.add_subparsers(title="benchmarks", required=True, metavar="WHAT")
    _add_dpf(benches)


def _add_dpf(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "dpf",
        help="key generation and full evaluation",
        description="Checks that shares add up, then times keys and full evaluation. The limit is "
        "the time of the generator alone, measured in the same run.",
    )
    add = parser.add_argument
    add("--rows", type=_list_of(int), default=[1 << 14, 1 << 16, 1 << 18, 1 << 20])
    add("--output", type=_list_of(_one_of(OUTPUTS)), default=["bit"])
    add("--generator", type=_list_of(_one_of(GENERATORS)), default=list(GENERATORS))
    add("--tier", type=_list_of(_one_of(_core.supported_tiers())), help="default: the widest")
    add("--threads", type=int, default=1)
    add("--json", metavar="FILE", help="write the cases as JSON")
    parser.set_defaults(run=_run_dpf)


def _run_dpf(arguments: argparse.Namespace) -> int:
    from ..bench.dpf import run  # noqa: PLC0415 - needed only when the command runs

    return run(arguments)


def _list_of(kind: Callable[[str], object]) -> Callable[[str], list[object]]:
    """A comma-separated list for argparse."""

    def read(text: str) -> list[object]:
        return [kind(part) for part in text.split(",")]

    read.__name__ = "comma-separated list"
    return read


def _one_of(names: object) -> Callable[[str], str]:
    choices = list(names)  # type: ignore[call-overload]

    def read(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(choices)}")
        return text

    return read
