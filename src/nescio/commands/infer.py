"""`nescio infer`: private inference between two machines."""

import argparse
import time
from typing import Any

from . import Subparsers, count
from ._infer_client import add_connection, phases, progress_of, remote_plan
from ._progress import Progress
from .infer_ask import add_ask
from .infer_serve import add_serve


def add_parser(commands: Subparsers) -> None:
    """Declares the command and its subcommands."""
    parser = commands.add_parser(
        "infer",
        help="ask a server's model about inputs that stay secret",
        description="Runs a model between two machines: `nescio infer serve` has the plan with the "
        "weights, `nescio infer prepare` makes what later inferences use up, `nescio infer ask` "
        "gives the model's outputs for inputs that the server does not learn. Both parties must "
        "follow the protocol.",
    )
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_serve(subcommands)
    _add_prepare(subcommands)
    add_ask(subcommands)


def _add_prepare(subcommands: Subparsers) -> None:
    parser = subcommands.add_parser(
        "prepare",
        help="prepare inferences with a server, before the inputs are known",
        description="Prepares inferences with `nescio infer serve` and writes them to a store. "
        "Each inference is used once.",
    )
    add_connection(parser)
    add = parser.add_argument
    add("--count", type=count, default=10, help="number of inferences (default: %(default)s)")
    parser.set_defaults(run=_run_prepare)


def _run_prepare(arguments: argparse.Namespace) -> int:
    remote = remote_plan(arguments)
    begin = time.perf_counter()
    with Progress() as progress:
        show: Any = progress_of(progress, arguments.count) if arguments.count else None
        steps = remote.prepare(arguments.store, arguments.count, progress=show)
    seconds = time.perf_counter() - begin
    sums = phases(steps)
    print(
        f"{arguments.count:,} inferences prepared in {seconds:.1f} s: "
        f"{sum(one.sent_bytes for one in sums):,} bytes sent, "
        f"{sum(one.received_bytes for one in sums):,} received; {arguments.store} has them"
    )
    return 0
