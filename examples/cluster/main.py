"""Prepares private inferences, or oblivious transfers, on a Ray cluster of each party.

    python examples/cluster/main.py serve --plan model.plan --stores stores
    python examples/cluster/main.py prepare 127.0.0.1 --public model.public --store client.store

Each party runs its program against its own cluster. docs/cluster-preparation.md has the rest.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # this file is run by its path

from examples.cluster.options import add_connecting, add_listening, integer
from examples.cluster.preparing import prepare
from examples.cluster.sample import write_sample
from examples.cluster.serving import serve
from examples.cluster.transfers import receive, send
from nescio.cli import run as run_command


def command_line() -> argparse.ArgumentParser:
    """Returns the parser of the command."""
    parser = argparse.ArgumentParser(
        "python examples/cluster/main.py",
        description="Prepares private inferences, or oblivious transfers, on a cluster.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(commands.add_parser("serve", help="run the server's workers"))
    _add_prepare(commands.add_parser("prepare", help="prepare inferences with the server's"))
    for name, work, add in (("send", send, add_listening), ("receive", receive, add_connecting)):
        own = commands.add_parser(name, help=f"{name} oblivious transfers of one delta")
        add(own)
        _add_transfers(own)
        own.set_defaults(run=work)
    _add_sample(commands.add_parser("sample", help="write a plan of random weights"))
    return parser


def _add_serve(parser: argparse.ArgumentParser) -> None:
    add_listening(parser)
    add = parser.add_argument
    add("--plan", type=Path, required=True, metavar="FILE", help="plan of the model: the secret")
    add("--stores", type=Path, required=True, metavar="DIR", help="folder of the server's stores")
    add(
        "--idle",
        type=float,
        metavar="SECONDS",
        help="end when no part is prepared for so long, after the first one (default: at a signal)",
    )
    add(
        "--max-bytes",
        type=integer(1, 1 << 60),
        default=16 << 30,
        metavar="N",
        help="most bytes of each worker's stores (default: 16 GiB)",
    )
    parser.set_defaults(run=serve)


def _add_prepare(parser: argparse.ArgumentParser) -> None:
    add_connecting(parser)
    add = parser.add_argument
    add("--public", type=Path, required=True, metavar="FILE", help="public part of the plan")
    add(
        "--store",
        type=Path,
        required=True,
        metavar="PATH",
        help="store of the first part; the others are PATH.2, PATH.3 and so on",
    )
    add("--count", type=integer(1, 1 << 20), default=1000, help="inferences (default: 1000)")
    add("--part", type=integer(1, 1 << 20), default=50, help="inferences of a part (default: 50)")
    parser.set_defaults(run=prepare)


def _add_transfers(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--n", type=integer(1, 1 << 40), default=1 << 24, help="OTs of all sessions together")
    add("--out", type=Path, metavar="DIR", help="new folder for the OTs (default: none is kept)")
    add("--malicious", action="store_true", help="detect a party that deviates; both give it")


def _add_sample(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--plan", type=Path, required=True, metavar="FILE", help="file of the plan")
    add("--public", type=Path, required=True, metavar="FILE", help="file of its public part")
    add("--side", type=integer(8, 64), default=28, help="side of the image (default: 28)")
    add("--seed", type=integer(0, 1 << 31), default=1, help="seed of the weights (default: 1)")
    parser.set_defaults(run=write_sample)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit code."""
    return run_command(command_line(), argv)


if __name__ == "__main__":
    sys.exit(main())
