"""`nescio ot send` and `nescio ot receive`: the two parties of oblivious transfers."""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .._arrays import as_count, as_threads
from .._device import describe, parse_device_list
from ..errors import ArgumentError
from . import Subparsers, count, devices

if TYPE_CHECKING:
    from ..net import Channel
    from ..ot import Receiver, Sender

_PORT = 9750
_FAMILIES = ("primal", "dual")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_send(whats: Subparsers) -> None:
    """Declares `send`, which waits for a receiver."""
    parser = whats.add_parser(
        "send",
        help="the sender of oblivious transfers: waits for a receiver",
        description="Waits for `nescio ot receive` and makes correlated OTs with it: r here, and "
        "there choices and t, with t[i] == r[i] ^ choices[i] * delta.",
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--tls-cert", type=Path, help="TLS certificate chain, PEM")
    add("--tls-key", type=Path, help="its private key, PEM")
    add("--tls-ca", type=Path, help="certificates that receivers must come from, PEM")
    _add_common(parser)
    parser.set_defaults(run=_run_send)


def add_receive(whats: Subparsers) -> None:
    """Declares `receive`, which connects to a sender."""
    parser = whats.add_parser(
        "receive",
        help="the receiver of oblivious transfers: connects to a sender",
        description="Connects to `nescio ot send`, and gets choices and t.",
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="the sender's address (default: %(default)s)")
    add("--tls", action="store_true", help="the sender has a certificate")
    add("--tls-ca", type=Path, help="trust these certificates, PEM, in place of the system's")
    add("--tls-cert", type=Path, help="certificate to show to a sender that asks for one, PEM")
    add("--tls-key", type=Path, help="its private key, PEM")
    _add_common(parser)
    parser.set_defaults(run=_run_receive)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--port", type=int, default=_PORT, help="port of the sender (default: %(default)s)")
    add("--n", type=count, default=1 << 20, help="OTs to make; 2^24 is a number (default: 2^20)")
    add("--family", choices=_FAMILIES, default="primal", help="(default: %(default)s)")
    add("--set", metavar="NAME", help="parameters: b10 to b13 of primal, ec or qc of dual")
    add("--malicious", action="store_true", help="notice a party that cheats")
    add("--threads", type=int, default=0, help="0 is every processor")
    add("--device", type=devices, default="auto", help="cpu, cuda, cuda:1 (default: cpu)")
    add("--timeout", type=float, default=60.0, help="seconds without a word (default: 60)")
    add("--rtt", default=None, help="act as if a round trip took so long: 40ms (both parties)")
    add("--rate", default=None, help="act as if the network had this rate: 100mbit (both parties)")
    add("--out", type=Path, metavar="FILE.npz", help="write what comes out: it is secret")
    add("--json", action="store_true", help="print JSON")


def _run_send(arguments: argparse.Namespace) -> int:
    from ..net import Channel  # noqa: PLC0415 - needed only when the command runs
    from ..ot import Sender  # noqa: PLC0415

    options = _options(arguments)
    _warn_of_plain_text(arguments.host, tls=arguments.tls_cert is not None)
    with Channel.listener(
        arguments.host,
        arguments.port,
        timeout=arguments.timeout,
        link=_link(arguments),
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
        tls_ca=arguments.tls_ca,
    ) as listener:
        if not arguments.json:
            print(f"waiting for a receiver on {arguments.host}:{listener.port}", flush=True)
        with listener.accept() as channel:
            return _make(arguments, channel, Sender(channel, **options))


def _run_receive(arguments: argparse.Namespace) -> int:
    from ..net import Channel  # noqa: PLC0415
    from ..ot import Receiver  # noqa: PLC0415

    options = _options(arguments)
    _warn_of_plain_text(arguments.host, tls=arguments.tls or arguments.tls_ca is not None)
    with Channel.connect(
        arguments.host,
        arguments.port,
        timeout=arguments.timeout,
        link=_link(arguments),
        tls=arguments.tls or arguments.tls_ca is not None,
        tls_ca=arguments.tls_ca,
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
    ) as channel:
        return _make(arguments, channel, Receiver(channel, **options))


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    from ..ot._party import MAX_OTS, check_family  # noqa: PLC0415

    out: Path | None = arguments.out
    if out is not None and not out.absolute().parent.is_dir():
        raise ArgumentError(f"{out} cannot be written: there is no such folder")
    check_family(arguments.family, arguments.set)  # before anybody is waited for
    as_count(arguments.n, "n", 1, MAX_OTS)
    as_threads(arguments.threads)
    places = parse_device_list(arguments.device)
    describe(places)
    return {
        "family": arguments.family,
        "parameters": arguments.set,
        "malicious": arguments.malicious,
        "threads": arguments.threads,
        "devices": [str(place) for place in places] or None,
    }


def _link(arguments: argparse.Namespace) -> Any:  # noqa: ANN401 - imported when needed
    from ..net import Link  # noqa: PLC0415

    if arguments.rtt is None and arguments.rate is None:
        return None
    return Link.parse(rtt=arguments.rtt, rate=arguments.rate)


def _make(arguments: argparse.Namespace, channel: "Channel", party: "Sender | Receiver") -> int:
    """Makes the OTs, writes them if asked to, and prints what they took."""
    import numpy as np  # noqa: PLC0415

    begin = time.perf_counter()
    drawn = party.extend(arguments.n)
    seconds = time.perf_counter() - begin
    if isinstance(drawn, tuple):
        arrays = dict(zip(("choices", "t"), drawn, strict=True))
    else:
        arrays = {"delta": party.delta, "r": drawn}  # type: ignore[union-attr]
    if arguments.out is not None:
        arrays = {
            name: value if isinstance(value, np.ndarray) else value.to_host()
            for name, value in arrays.items()
        }
        with _private(arguments.out) as file:
            np.savez(file, **arrays)
    counts = channel.counts
    facts: dict[str, object] = {
        "n": arguments.n,
        "family": party.family,
        "parameters": party.parameters,
        "malicious": party.malicious,
        "seconds": seconds,
        "ots_per_second": arguments.n / seconds,
        "sent_bytes": counts.sent_bytes,
        "received_bytes": counts.received_bytes,
        "rounds": counts.rounds,
        "steps": party.seconds,
    }
    print(json.dumps(facts) if arguments.json else _sentence(facts))
    return 0


def _private(path: Path) -> IO[bytes]:
    """A file that nobody else may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _warn_of_plain_text(host: str, *, tls: bool) -> None:
    if not tls and host not in _LOOPBACK:
        print(
            f"nescio: without TLS whoever is between here and {host} can read what both parties "
            "make, and be either of them (--tls-cert, --tls-ca)",
            file=sys.stderr,
        )


def _sentence(facts: dict[str, Any]) -> str:
    kind = f"{facts['family']} {facts['parameters']}{', malicious' if facts['malicious'] else ''}"
    return (
        f"{facts['n']:,} correlated OTs ({kind}) in {facts['seconds']:.3f} s: "
        f"{facts['ots_per_second'] / 1e6:.1f} million a second; "
        f"{facts['sent_bytes']:,} bytes sent, {facts['received_bytes']:,} received, "
        f"{facts['rounds']} rounds"
    )
