"""The command line of both parties, and their addresses."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from nescio.errors import ArgumentError
from nescio.net import Channel, Listener

PORT = 9760
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Tls(NamedTuple):
    """PEM files of a party, which every node of its cluster has at these paths."""

    cert: str | None = None
    key: str | None = None
    ca: str | None = None

    @property
    def used(self) -> bool:
        """True if the connections have TLS."""
        return self != Tls()

    def options(self) -> dict[str, str | None]:
        """Returns the arguments of Channel."""
        return {"tls_cert": self.cert, "tls_key": self.key, "tls_ca": self.ca}


class Address(NamedTuple):
    """The address of one worker of the server or the sender, and what both sides of it need."""

    host: str
    port: int
    timeout: float
    tls: Tls

    def connect(self) -> Channel:
        """Connects. Raises the errors of Channel.connect."""
        options: dict[str, Any] = self.tls.options()
        return Channel.connect(self.host, self.port, timeout=self.timeout, **options)

    def listener(self) -> Listener:
        """Listens. Raises the errors of Channel.listener."""
        options: dict[str, Any] = self.tls.options()
        return Channel.listener(self.host, self.port, timeout=self.timeout, **options)


def listening(arguments: argparse.Namespace) -> list[Address]:
    """Returns the address of each worker that listens: the ports follow each other."""
    ports = range(arguments.port, arguments.port + arguments.workers)
    if ports[-1] > 65535:
        raise ArgumentError(f"--port: found {ports[-1]} for the last worker, expected 65535")
    _warn_of_plain_text(arguments, [arguments.host])
    return [Address(arguments.host, port, arguments.timeout, _tls(arguments)) for port in ports]


def connecting(arguments: argparse.Namespace) -> list[Address]:
    """Returns the address to which each worker connects first: hosts in turn, ports in order."""
    hosts = arguments.hosts
    _warn_of_plain_text(arguments, hosts)
    ports = range(arguments.port, arguments.port + arguments.workers)
    return [
        Address(hosts[number % len(hosts)], port, arguments.timeout, _tls(arguments))
        for number, port in enumerate(ports)
    ]


def _tls(arguments: argparse.Namespace) -> Tls:
    files = (arguments.tls_cert, arguments.tls_key, arguments.tls_ca)
    return Tls(*(None if file is None else str(file.absolute()) for file in files))


def _warn_of_plain_text(arguments: argparse.Namespace, hosts: list[str]) -> None:
    if not _tls(arguments).used and not all(host in _LOOPBACK for host in hosts):
        text = "without TLS, anyone on the network can read and change what the parties prepare"
        print(f"{text}; use --tls-cert, --tls-key and --tls-ca", file=sys.stderr)


def integer(low: int, high: int) -> Callable[[str], int]:
    """Returns the type of an option that is an integer from `low` to `high`."""

    def parse(text: str) -> int:
        value = int(text) if text.isdecimal() and len(text) < 20 else low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"expected an integer from {low} to {high}")
        return value

    return parse


def add_common(parser: argparse.ArgumentParser) -> None:
    """Declares the options of every command that works on a cluster."""
    add = parser.add_argument
    add(
        "--ray",
        default="local",
        metavar="ADDRESS",
        help="address of this party's own Ray cluster, such as auto on one of its nodes; local "
        "starts one on this machine and ends it (default: %(default)s)",
    )
    add("--workers", type=integer(1, 4096), default=2, help="worker processes (default: 2)")
    add(
        "--threads",
        type=integer(1, 1024),
        default=1,
        help="threads of each worker, which takes as many CPUs of the cluster (default: 1)",
    )
    add(
        "--retries",
        type=integer(0, 100),
        default=3,
        help="how often a lost worker, a failed part or a failed session is begun again (default: "
        "%(default)s)",
    )
    add(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="time after which a silent party is left (default: %(default)s)",
    )
    add("--port", type=integer(1, 65535), default=PORT, help="port of worker 0; worker i has the "
        "i-th port after it (default: %(default)s)")  # fmt: skip
    add("--tls-cert", type=Path, metavar="FILE", help="PEM file of this party's certificate chain")
    add("--tls-key", type=Path, metavar="FILE", help="PEM file of the private key of --tls-cert")
    add("--tls-ca", type=Path, metavar="FILE", help="PEM file of the other party's authority")
    add("--json", action="store_true", help="print the totals as JSON")


def add_listening(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the party that listens."""
    add_common(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"
    )


def add_connecting(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the party that connects."""
    add_common(parser)
    parser.add_argument(
        "hosts",
        nargs="+",
        metavar="HOST",
        help="hosts of the other party's workers: worker i is on host i modulo their number",
    )
