"""The client's side of `nescio infer`: its options, its connection, and sums of its counts."""

import argparse
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .._arrays import as_threads, check_file, shown
from ..errors import FileError, MalformedMessageError
from ._progress import Progress

if TYPE_CHECKING:
    from ..mpc import PublicPlan, RemotePlan, Step
    from ..net import Channel

__all__ = ["Phase", "add_connection", "phases", "progress_of", "remote_plan"]

_PATIENCE_SECONDS = 2.0


class Address(NamedTuple):
    """The address of a server."""

    host: str
    port: int


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Declares the options of a client: server, files, TLS."""
    add = parser.add_argument
    add(
        "server",
        type=_address,
        metavar="HOST:PORT",
        help="address of the server, such as model.example:9760 or [::1]:9760",
    )
    add(
        "--public",
        type=Path,
        required=True,
        metavar="FILE",
        help="public part of the server's plan, which the server's owner gives to clients",
    )
    add(
        "--store",
        type=Path,
        required=True,
        metavar="FILE",
        help="file of prepared inferences, which must stay secret",
    )
    add("--tls", action="store_true", help="connect by TLS; the server must have a certificate")
    add(
        "--tls-ca",
        type=Path,
        help="PEM file with the authorities to trust for the server's certificate (default: the "
        "system's); enables TLS",
    )
    add(
        "--tls-cert",
        type=Path,
        help="PEM file with the client's certificate chain, if the server requires one",
    )
    add("--tls-key", type=Path, help="PEM file with the private key of --tls-cert")
    add("--threads", type=int, default=0, help="number of CPU threads; 0 uses all processors")
    add(
        "--timeout",
        type=float,
        default=60.0,
        help="seconds without progress by the server until an error (default: 60)",
    )


def _address(text: str) -> Address:
    found = re.fullmatch(r"(?:\[([^\]]+)\]|([^\[\]:]+)):([0-9]{1,5})", text)
    if found is None or not 1 <= int(found[3]) <= 65535:
        raise argparse.ArgumentTypeError(
            f"found {shown(text)}, expected HOST:PORT, such as 127.0.0.1:9760"
        )
    return Address(found[1] or found[2], int(found[3]))


def remote_plan(arguments: argparse.Namespace) -> "RemotePlan":
    """Returns the server's plan, by the options of `add_connection`; nothing connects yet."""
    from ..mpc import RemotePlan  # noqa: PLC0415 - needed only when the command runs
    from ..net import Channel  # noqa: PLC0415

    files = arguments.tls_ca, arguments.tls_cert, arguments.tls_key
    tls = arguments.tls or any(file is not None for file in files)
    if not tls and arguments.server.host not in ("127.0.0.1", "::1", "localhost"):
        print(
            f"nescio: without TLS, anyone on the network to {arguments.server.host} can act as the "
            "server; use --tls or --tls-ca",
            file=sys.stderr,
        )

    def connect() -> "Channel":
        with _saying_that_it_waits(arguments):
            return Channel.connect(
                *arguments.server,
                timeout=arguments.timeout,
                tls=tls,
                tls_ca=arguments.tls_ca,
                tls_cert=arguments.tls_cert,
                tls_key=arguments.tls_key,
            )

    public = _read_public(arguments.public)
    threads = as_threads(arguments.threads)
    return RemotePlan(public, connect, threads=threads, batch=getattr(arguments, "batch", 0))


@contextmanager
def _saying_that_it_waits(arguments: argparse.Namespace) -> Iterator[None]:
    """Says after a moment that no server answers yet: connecting is tried until the timeout."""
    host, port = arguments.server
    text = f"nescio: no server answers at {host}:{port} yet; trying for {arguments.timeout:g} s"
    timer = threading.Timer(_PATIENCE_SECONDS, print, (text,), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _read_public(path: Path) -> "PublicPlan":
    from ..mpc import PublicPlan  # noqa: PLC0415

    check_file(path, "the public part of a plan")
    try:
        return PublicPlan.from_bytes(path.read_bytes())
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    except MalformedMessageError as error:
        raise FileError(f"{path}: {error}") from error


class Phase(NamedTuple):
    """The sums of a phase, over layers and inferences."""

    phase: str
    sent_bytes: int
    received_bytes: int
    round_trips: int
    seconds: float


def phases(steps: "Sequence[Step]") -> list[Phase]:
    """Adds up the steps of each phase."""
    found: dict[str, Phase] = {}
    for step in steps:
        old = found.get(step.phase, Phase(step.phase, 0, 0, 0, 0.0))
        found[step.phase] = Phase(
            step.phase,
            old.sent_bytes + step.counts.sent_bytes,
            old.received_bytes + step.counts.received_bytes,
            old.round_trips + step.counts.rounds,
            old.seconds + step.seconds,
        )
    return list(found.values())


def progress_of(progress: Progress, total: int) -> Callable[[int], None]:
    """Returns a function that shows how many of `total` inferences are prepared."""

    def show(done: int) -> None:
        filled = 30 * done // total
        bar = f"{'#' * filled}{'.' * (30 - filled)}"
        progress(f"[{bar}] {done:,} of {total:,} inferences prepared")

    return show
