"""`nescio demo`: private lookups of a sentence's words from two local servers."""

import argparse
from pathlib import Path

from . import Subparsers, devices, generator


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "demo",
        help="demonstrate private lookups: the words of a sentence, from two local servers",
        description="Starts two local servers with 400,000 word vectors, looks up the words of a "
        "sentence without revealing them to either server, checks every vector against the "
        "plaintext table, and computes the sentence's topics with a local model.",
    )
    add = parser.add_argument
    add("sentence", nargs="?", help="sentence to look up (default: read from the terminal)")
    add(
        "--table",
        type=Path,
        metavar="TABLE.npy",
        help="NumPy file with one word vector per row, to use instead of the built-in table",
    )
    add(
        "--words",
        type=Path,
        metavar="WORDS.txt",
        help="text file with the words of --table, one per line",
    )
    add("--rows", type=int, help="use only this many rows, from the start of the table")
    add(
        "--generator",
        type=generator,
        default="chacha20",
        help="pseudorandom generator of the DPF keys (default: %(default)s)",
    )
    add(
        "--device",
        type=devices,
        default="auto",
        metavar="NAME",
        help="device on which both servers compute answers: cpu, cuda, cuda:1; auto: the first GPU "
        "if there is one, otherwise the CPU (default: auto)",
    )
    add(
        "--ports",
        nargs=2,
        type=int,
        default=(0, 0),
        metavar="PORT",
        help="ports of the two servers (default: any free ports)",
    )
    add("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..demo import run  # noqa: PLC0415 - needed only when the command runs

    return run(arguments)
