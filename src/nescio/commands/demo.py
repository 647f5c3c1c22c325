"""`nescio demo`: a real table, two servers, one sentence, nothing told."""

import argparse
from pathlib import Path

from . import Subparsers, devices, generator


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "demo",
        help="look the words of a sentence up in a real table, privately",
        description="Starts two servers that hold 400,000 word vectors, looks the words of a "
        "sentence up without telling either which, checks every vector against the plain table, "
        "and says what the sentence is about with a model that runs here.",
    )
    add = parser.add_argument
    add("sentence", nargs="?", help="what to look up (default: asked for on a terminal)")
    add("--table", type=Path, metavar="TABLE.npy", help="a table of your own, a word a row")
    add("--words", type=Path, metavar="WORDS.txt", help="its words, one a line")
    add("--rows", type=int, help="use only the table's first rows")
    add("--generator", type=generator, default="chacha20", help="the keys' generator")
    add(
        "--device",
        type=devices,
        default="auto",
        metavar="NAME",
        help="where both servers answer: cpu, cuda, cuda:1 (default: cpu)",
    )
    add("--ports", nargs=2, type=int, default=(0, 0), metavar="PORT", help="ports of the servers")
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..demo import run  # noqa: PLC0415 - needed only when the command runs

    return run(arguments)
