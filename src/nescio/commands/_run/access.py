"""Options of `nescio serve` about who may ask, and `nescio admin client-key`."""

import argparse
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ArgumentError
from .. import Subparsers

if TYPE_CHECKING:
    from ...service._access import Access
    from ...service._serve import Address


def add_access_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument_group("clients").add_argument
    add(
        "--client-keys",
        type=Path,
        metavar="FILE",
        help="answer clients that send a key of this file, which nescio admin client-key makes; "
        "SIGHUP reads it again",
    )
    add(
        "--anonymous",
        choices=("allow", "refuse"),
        help="what clients without a key get (default: refuse with --client-keys, else allow)",
    )
    add(
        "--client-budget",
        type=float,
        metavar="N",
        help="maximum keys a second of each client whose line in --client-keys has no number "
        "(default: no maximum)",
    )
    add(
        "--cors",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let web pages of this origin, such as https://app.example.org, look up rows; repeat "
        "the option for several (default: none)",
    )
    add(
        "--admin-port",
        type=int,
        metavar="PORT",
        help="port of its own for operators, with /metrics; --port then takes no changes "
        "(default: none, --port takes them)",
    )
    add(
        "--admin-host",
        default="127.0.0.1",
        help="address that --admin-port listens on (default: %(default)s)",
    )


def bind_admin(
    arguments: argparse.Namespace,
    address: "Address",
    say: Callable[[str], None],
    closing: ExitStack,
) -> socket.socket | None:
    """Opens the operator's port, if there is one, and says its URL."""
    from ...service._serve import bind  # noqa: PLC0415 - needs the extra service

    if arguments.admin_port is None:
        return None
    own = replace(address, host=arguments.admin_host, port=arguments.admin_port)
    listener = closing.enter_context(bind(own))
    say(f"operators use {own.url(listener.getsockname()[1])}")
    return listener


def access_of(arguments: argparse.Namespace) -> "Access":
    """Makes what the options say. Raises ArgumentError and FileError."""
    from ...service._access import (  # noqa: PLC0415 - needs the extra service
        Access,
        ClientKeys,
        check_origins,
    )

    check_origins(arguments.cors)

    if arguments.client_keys is None and arguments.anonymous == "refuse":
        raise ArgumentError("--anonymous refuse: found no --client-keys, so nobody could ask")
    keys = None if arguments.client_keys is None else ClientKeys(arguments.client_keys)
    allowed = arguments.anonymous == "allow"
    return Access(keys, anonymous=allowed, budget=arguments.client_budget)


def add_client_key(commands: Subparsers) -> None:
    """Declares `nescio admin client-key`."""
    parser = commands.add_parser(
        "client-key",
        help="make a key for a client",
        description="Makes a random key for a client. Prints it, for the client, and the line for "
        "the file of --client-keys, which has its hash. The key is kept nowhere.",
    )
    parser.add_argument("name", metavar="NAME", help="name of the client in the file")
    parser.add_argument(
        "--keys-per-second", type=float, metavar="N", help="budget of the client (default: none)"
    )
    parser.set_defaults(run=_make_key)


def _make_key(arguments: argparse.Namespace) -> int:
    from ...service._access import new_client_key  # noqa: PLC0415 - needs the extra service

    key, line = new_client_key(arguments.name, arguments.keys_per_second)
    print(f"key, shown once: {key}")
    print(f"line for the file: {line}")
    return 0
