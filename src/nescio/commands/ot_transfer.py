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
from .._report import check_writable
from ..errors import FileError
from . import Subparsers, count, devices

if TYPE_CHECKING:
    from ..net import Channel
    from ..ot import Receiver, Sender

_PORT = 9750
_FAMILIES = ("primal", "dual")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_send(subcommands: Subparsers) -> None:
    """Declares `send`, which waits for a receiver."""
    parser = subcommands.add_parser(
        "send",
        help="run the sender of oblivious transfers, which waits for a receiver",
        description="Waits for `nescio ot receive` and makes correlated OTs with it. The sender "
        "gets delta and r, the receiver gets choices and t, with "
        "t[i] == r[i] ^ choices[i] * delta.",
    )
    add = parser.add_argument
    add(
        "--host",
        default="127.0.0.1",
        help="address on which the sender listens (default: %(default)s)",
    )
    add("--tls-cert", type=Path, help="PEM file with the sender's certificate chain; enables TLS")
    add("--tls-key", type=Path, help="PEM file with the private key of --tls-cert")
    add(
        "--tls-ca",
        type=Path,
        help="PEM file with the authorities that must have issued the receiver's certificate",
    )
    _add_common(parser)
    parser.set_defaults(run=_run_send)


def add_receive(subcommands: Subparsers) -> None:
    """Declares `receive`, which connects to a sender."""
    parser = subcommands.add_parser(
        "receive",
        help="run the receiver of oblivious transfers, which connects to a sender",
        description="Connects to `nescio ot send` and makes correlated OTs with it. The receiver "
        "gets choices and t, the sender gets delta and r, with t[i] == r[i] ^ choices[i] * delta.",
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address of the sender (default: %(default)s)")
    add("--tls", action="store_true", help="connect by TLS; the sender must have a certificate")
    add(
        "--tls-ca",
        type=Path,
        help="PEM file with the authorities to trust for the sender's certificate (default: the "
        "system's); enables TLS",
    )
    add(
        "--tls-cert",
        type=Path,
        help="PEM file with the receiver's certificate chain, if the sender requires one",
    )
    add("--tls-key", type=Path, help="PEM file with the private key of --tls-cert")
    _add_common(parser)
    parser.set_defaults(run=_run_receive)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--port", type=int, default=_PORT, help="TCP port of the sender (default: %(default)s)")
    add("--n", type=count, default=1 << 20, help="number of OTs, such as 2^24 (default: 2^20)")
    add(
        "--family",
        choices=_FAMILIES,
        default="primal",
        help="LPN family: primal (faster) or dual (fewer bytes sent) (default: %(default)s)",
    )
    add(
        "--set",
        metavar="NAME",
        help="parameter set: b10 to b13 for primal, ec or qc for dual (default: b10 or ec)",
    )
    add("--malicious", action="store_true", help="detect cheating by the other party")
    add("--threads", type=int, default=0, help="number of CPU threads; 0 uses all processors")
    add(
        "--device",
        type=devices,
        default="auto",
        help='device that computes: cpu, cuda, cuda:1, or several joined by "+" (default: cpu)',
    )
    add(
        "--timeout",
        type=float,
        default=60.0,
        help="seconds without progress by the other party until an error (default: 60)",
    )
    add(
        "--rtt",
        default=None,
        help="emulate this round-trip time, such as 40ms; pass it to both parties",
    )
    add(
        "--rate",
        default=None,
        help="emulate this network rate, such as 100mbit; pass it to both parties",
    )
    add(
        "--out",
        type=Path,
        metavar="FILE.npz",
        help="write this party's secret results to a file that only its owner can read",
    )
    add("--json", action="store_true", help="print results as JSON instead of a sentence")


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
        raise FileError(f"{out} cannot be written: its folder does not exist")
    check_writable(None if out is None else str(out))
    check_family(arguments.family, arguments.set)  # before the parties connect
    as_count(arguments.n, "n", 1, MAX_OTS)
    as_threads(arguments.threads)
    used = parse_device_list(arguments.device)
    describe(used)
    return {
        "family": arguments.family,
        "parameters": arguments.set,
        "malicious": arguments.malicious,
        "threads": arguments.threads,
        "devices": [str(device) for device in used] or None,
    }


def _link(arguments: argparse.Namespace) -> Any:  # noqa: ANN401 - imported when needed
    from ..net import Link  # noqa: PLC0415

    if arguments.rtt is None and arguments.rate is None:
        return None
    return Link.parse(rtt=arguments.rtt, rate=arguments.rate)


def _make(arguments: argparse.Namespace, channel: "Channel", party: "Sender | Receiver") -> int:
    """Makes the OTs, writes them to `--out`, and prints time and bytes."""
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
    """Opens a file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, 0o600)  # a file that existed keeps its mode otherwise
    return os.fdopen(descriptor, "wb")


def _warn_of_plain_text(host: str, *, tls: bool) -> None:
    if not tls and host not in _LOOPBACK:
        print(
            f"nescio: without TLS, anyone on the network to {host} can read the results of both "
            "parties or act as either of them; use --tls-cert and --tls-ca",
            file=sys.stderr,
        )


def _sentence(facts: dict[str, Any]) -> str:
    kind = f"{facts['family']} {facts['parameters']}{', malicious' if facts['malicious'] else ''}"
    return (
        f"{facts['n']:,} correlated OTs ({kind}) in {facts['seconds']:.3f} s: "
        f"{facts['ots_per_second'] / 1e6:.1f} million per second; "
        f"{facts['sent_bytes']:,} bytes sent, {facts['received_bytes']:,} received, "
        f"{facts['rounds']} rounds"
    )
