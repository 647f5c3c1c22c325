"""`nescio serve`: the service of one party."""

import argparse
import os
import sys
from pathlib import Path

from .._arrays import check_file
from .._device import describe, parse_device_list
from ..dpf import OUTPUTS
from ..errors import ArgumentError, FileError
from ..pir._layout_kind import layout_kind
from ..pir.batch import Layout
from . import Subparsers, devices, generator
from ._tables import open_table, progress_of, table_files


class _RefusedToken(argparse.Action):
    """Refuses a token on the command line without printing it."""

    def __call__(self, *_: object) -> None:
        raise ArgumentError(
            "--admin-token: every user of this machine can list the arguments of its processes; "
            "put a new token into a file for --admin-token-file, or into NESCIO_ADMIN_TOKEN"
        )


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "serve",
        help="serve tables for private lookups, as one of two parties",
        description="Serves tables for private lookups as one of two parties. Another operator "
        "must run the other party: anyone who sees both servers' queries learns the rows.",
    )
    add = parser.add_argument
    add(
        "tables",
        nargs="+",
        type=Path,
        metavar="TABLE.npy",
        help="file of a table: a NumPy array, or a table that Table.save wrote",
    )
    add(
        "--name",
        action="append",
        default=[],
        help="name of a table for clients; repeat the option once per table (default: the file "
        "name without its extension)",
    )
    add(
        "--keys",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="file of the keys of a table's rows, which clients look up instead of row numbers: a "
        "text file with a key on each line, or a NumPy array of integers, of text, or of bytes: "
        "uint8 with a key in each row, or S with keys of one length that do not end with zeros; "
        "with several tables, NAME=FILE for each table that has keys. Such a table is not cached",
    )
    add(
        "--layout",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="layout of a table for lookups of all rows of an inference, which nescio tune or "
        "Layout.save wrote; with several tables, NAME=FILE for each table that has one",
    )
    add(
        "--party",
        type=int,
        choices=(0, 1),
        required=True,
        help="number of this server: one of the two servers must be party 0, the other party 1",
    )
    add("--version", help="version of the tables; must be the same on both servers (default: 1)")
    add(
        "--output",
        choices=OUTPUTS,
        help="group in which the shares of answers are added (default: bit)",
    )
    add(
        "--generator",
        type=generator,
        help="pseudorandom generator of the DPF keys (default: chacha20)",
    )
    add(
        "--threads",
        type=int,
        default=0,
        help="number of worker threads; 0 uses all processors (default: 0)",
    )
    add(
        "--device",
        type=devices,
        default="auto",
        metavar="NAME",
        help="device that computes answers: cpu, cuda, cuda:1; cuda:0+cuda:1 split the rows; auto: "
        "the first GPU if the table fits in its memory, otherwise the CPU (default: auto)",
    )
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add(
        "--port",
        type=int,
        default=8080,
        help="port to listen on; 0 chooses a free port (default: %(default)s)",
    )
    add("--tls-cert", type=Path, metavar="FILE", help="PEM file of the TLS certificate chain")
    add("--tls-key", type=Path, metavar="FILE", help="PEM file of the private key of --tls-cert")
    _add_quotas(parser)
    _add_connection_limits(parser)
    add(
        "--cache",
        action="store_true",
        help="store each prepared table next to its file as TABLE.npy.nescio; the next start "
        "checks it and maps it into memory, instead of preparing it again",
    )
    add(
        "--admin-token-file",
        type=Path,
        metavar="FILE",
        help="accept changes to rows from clients that send the token in this file (default: the "
        "token in the environment variable NESCIO_ADMIN_TOKEN, if it is set)",
    )
    add("--admin-token", action=_RefusedToken, help=argparse.SUPPRESS)
    add(
        "--exit-with-stdin", action="store_true", help="stop the service when standard input closes"
    )
    parser.set_defaults(run=_run)


def _add_quotas(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("limits").add_argument
    add(
        "--max-keys", type=int, default=1024, help="maximum keys per request (default: %(default)s)"
    )
    add(
        "--max-body",
        type=int,
        default=4 << 20,
        metavar="BYTES",
        help="maximum length of a request (default: %(default)s)",
    )
    add(
        "--max-answer",
        type=int,
        default=64 << 20,
        metavar="BYTES",
        help="maximum length of an answer (default: %(default)s)",
    )
    add(
        "--max-waiting",
        type=int,
        default=16384,
        metavar="KEYS",
        help="maximum keys that wait for an answer, over all requests (default: %(default)s)",
    )
    add(
        "--timeout",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="maximum time until a request is answered (default: %(default)s)",
    )
    add(
        "--batch-window",
        type=float,
        default=2.0,
        metavar="MS",
        help="milliseconds that a request waits for other requests to form a batch "
        "(default: %(default)s)",
    )


def _add_connection_limits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("connections").add_argument
    add(
        "--max-connections",
        type=int,
        default=1024,
        metavar="N",
        help="maximum open connections; at the maximum, a new one closes the one that has been "
        "idle for the longest time (default: %(default)s)",
    )
    add(
        "--max-connections-per-address",
        type=int,
        default=256,
        metavar="N",
        help="maximum open connections from one address, such as that of a proxy "
        "(default: %(default)s)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from ..pir import Server  # noqa: PLC0415 - needed only when the command runs
    from ..service import Quotas, create_app  # noqa: PLC0415
    from ..service._app import check_name  # noqa: PLC0415
    from ..service._connections import ConnectionLimits  # noqa: PLC0415
    from ..service._exchange import check_token  # noqa: PLC0415
    from ..service._serve import Address, bind, serve  # noqa: PLC0415

    address = Address(arguments.host, arguments.port, arguments.tls_cert, arguments.tls_key)
    quotas = Quotas(
        max_keys=arguments.max_keys,
        max_body_bytes=arguments.max_body,
        max_answer_bytes=arguments.max_answer,
        max_waiting_keys=arguments.max_waiting,
        answer_seconds=arguments.timeout,
        batch_window=arguments.batch_window / 1000,
    )
    limits = ConnectionLimits(
        max_connections=arguments.max_connections,
        max_per_address=arguments.max_connections_per_address,
        write_seconds=quotas.write_seconds,
    )
    token = _token(arguments.admin_token_file)
    if token is not None:
        check_token(token)
    names = _names(arguments.tables, arguments.name)
    for name in names:
        check_name(name)
    tables = table_files(arguments, names)
    used = parse_device_list(arguments.device)
    if used:
        _say(f"answers are made on {describe(used)}")
    with bind(address) as listener:  # before the slow part: reports a port in use at once
        servers = {}
        for files in tables:
            name = files.name
            with progress_of(f"reading {name}") as shown:
                table = open_table(files, arguments, shown)
            servers[name] = Server(
                table,
                threads=arguments.threads,
                party=arguments.party,
                device="cpu" if arguments.device == "cpu" else "auto",
                devices=[str(one) for one in used] or None,
            )
            _say(f"table {name}: {table.params.describe()}")
            _say(f"digest of {name}: {table.params.digest}")
            if layout_kind(table.layout) == "batch":
                _say(f"layout of {name}: {Layout.from_bytes(table.layout).describe()}")
            if arguments.device == "auto" and servers[name].devices != ("cpu",):
                _say(f"answers for {name} are made on {', '.join(servers[name].devices)}")

        def ready(url: str) -> None:
            _say(f"party {arguments.party} serves {', '.join(servers)} on {url}")

        app = create_app(servers, party=arguments.party, quotas=quotas, admin_token=token)
        until_stdin = arguments.exit_with_stdin
        serve(app, address, listener, ready=ready, limits=limits, until_stdin_closes=until_stdin)
    return 0


def _token(path: Path | None) -> str | None:
    """Reads the admin token from a file or the environment, which other users cannot list."""
    if path is None:
        return os.environ.get("NESCIO_ADMIN_TOKEN") or None
    check_file(path, "the file of the admin token")
    try:
        return path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"the admin token cannot be read from {path}: {error}") from error


def _say(text: str) -> None:
    """Prints a line; a server goes on if nobody reads its output any more."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _names(tables: list[Path], names: list[str]) -> list[str]:
    if names and len(names) != len(tables):
        raise ArgumentError(
            f"--name: found {len(names)} names for {len(tables)} tables: give one each"
        )
    chosen = names or [path.stem for path in tables]
    if len(set(chosen)) != len(chosen):
        raise ArgumentError(f"table names: found {', '.join(chosen)}, expected different names")
    return chosen
