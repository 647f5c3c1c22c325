"""`nescio infer serve`: the server of a plan."""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .._arrays import as_threads, check_file
from . import Subparsers, count

if TYPE_CHECKING:
    from ..mpc import Served

PORT = 9760


def add_serve(subcommands: Subparsers) -> None:
    """Declares `serve`, which waits for clients."""
    parser = subcommands.add_parser(
        "serve",
        help="serve a plan to clients",
        description="Serves a plan to clients, which prepare inferences and use them. The server "
        "learns nothing of inputs and outputs. A client that deviates from the protocol can learn "
        "the weights: let only those connect that you trust in this (--tls-ca).",
    )
    add = parser.add_argument
    add("plan", type=Path, metavar="PLAN", help="file of a plan with its weights, of Plan.save")
    add(
        "--stores",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of prepared inferences, one file for each preparation; must stay secret; it "
        "is made if it does not exist",
    )
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add(
        "--port",
        type=int,
        default=PORT,
        help="port to listen on; 0 chooses a free port (default: %(default)s)",
    )
    add("--tls-cert", type=Path, help="PEM file with the server's certificate chain; enables TLS")
    add("--tls-key", type=Path, help="PEM file with the private key of --tls-cert")
    add(
        "--tls-ca",
        type=Path,
        help="PEM file with the authorities that must have issued the clients' certificates",
    )
    add(
        "--threads",
        type=int,
        default=0,
        help="number of CPU threads for each client; 0 uses all processors (default: 0)",
    )
    add(
        "--timeout",
        type=float,
        default=60.0,
        help="seconds without progress by a client until its connection ends (default: 60)",
    )
    _add_limits(parser)
    parser.set_defaults(run=_run)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("limits").add_argument
    add(
        "--max-clients",
        type=count,
        default=16,
        metavar="N",
        help="maximum connections at the same time (default: %(default)s)",
    )
    add(
        "--max-clients-per-address",
        type=count,
        default=0,
        metavar="N",
        help="maximum connections at the same time from one address, or from one IPv6 network of "
        "64 bits (default: as many as --max-clients)",
    )
    add(
        "--max-prepared",
        type=count,
        default=1000,
        metavar="N",
        help="maximum inferences in one preparation (default: %(default)s)",
    )
    add(
        "--max-bytes",
        type=count,
        default=1 << 34,
        metavar="N",
        help="maximum bytes of all stores together, such as 2^36 (default: 2^34)",
    )
    add(
        "--max-batch",
        type=count,
        default=0,
        metavar="N",
        help="maximum inputs of a client that run together, which bounds a connection's memory "
        "(default: as many as 256 MiB of prepared inferences hold, up to 64)",
    )
    add(
        "--max-weight-bytes",
        type=count,
        default=1 << 31,
        metavar="N",
        help="maximum bytes of memory for transformed weights, which all preparations share; the "
        "others are transformed for each inference (default: 2^31)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from ..mpc import Plan, PlanServer, ServiceLimits  # noqa: PLC0415 - needed when it runs
    from ..net import Channel  # noqa: PLC0415

    limits = ServiceLimits(
        arguments.max_clients,
        arguments.max_prepared,
        arguments.max_bytes,
        arguments.max_batch,
        arguments.max_weight_bytes,
        arguments.max_clients_per_address,
    )
    as_threads(arguments.threads)
    check_file(arguments.plan, "a plan of Plan.save")
    if arguments.tls_cert is None and arguments.host not in ("127.0.0.1", "::1", "localhost"):
        print(
            "nescio: without TLS, clients cannot know that this is their server; use --tls-cert",
            file=sys.stderr,
        )
    with Channel.listener(
        arguments.host,
        arguments.port,
        timeout=arguments.timeout,
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
        tls_ca=arguments.tls_ca,
    ) as listener:
        plan = Plan.load(arguments.plan)
        options = {"limits": limits, "threads": arguments.threads, "report": _report}
        with PlanServer(plan, listener, arguments.stores, **options) as server:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: server.stop())
            _say(f"serving plan {server.digest[:12]} on {listener.host}:{listener.port}")
            server.run()
    return 0


def _report(served: "Served") -> None:
    done = {"prepare": "prepared", "infer": "inferred"}.get(served.what, "-")
    end = "" if served.problem is None else f"; ended by: {served.problem}"
    _say(
        f"client {served.client}: {done} {served.inferences:,}, {served.sent_bytes:,} bytes sent, "
        f"{served.received_bytes:,} received, {served.seconds:.2f} s{end}"
    )


def _say(text: str) -> None:
    """Prints a line; a server goes on if nobody reads its output any more."""
    try:
        print(f"{text}\n", end="", flush=True)  # in one piece: clients have threads
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
