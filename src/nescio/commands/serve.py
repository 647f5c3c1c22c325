"""`nescio serve`: one of the two servers of some tables."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from .._arrays import Array
from ..dpf import GENERATORS, OUTPUTS
from ..errors import ArgumentError
from . import Subparsers


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "serve",
        help="serve tables to private lookups, as one of two parties",
        description="Serves tables as one of two parties. Run the other party elsewhere, under "
        "other hands: whoever sees both servers' queries can tell what was looked up.",
    )
    add = parser.add_argument
    add("tables", nargs="+", type=Path, metavar="TABLE.npy", help="a table: a NumPy array file")
    add("--name", action="append", default=[], help="its name (default: the file's); one a table")
    add("--party", type=int, choices=(0, 1), required=True, help="which of the two parties this is")
    add("--version", default="1", help="version of the tables, the same at both servers")
    add("--output", choices=OUTPUTS, default="bit", help="group that shares add up in")
    add("--generator", choices=GENERATORS, default="chacha20", help="the keys' generator")
    add("--threads", type=int, default=0, help="worker threads; 0 is every processor")
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=int, default=8080, help="port; 0 is any free one (default: %(default)s)")
    add("--tls-cert", type=Path, help="TLS certificate chain, PEM")
    add("--tls-key", type=Path, help="its private key, PEM")
    _add_limits(parser)
    add("--exit-with-stdin", action="store_true", help="stop when standard input closes")
    parser.set_defaults(run=_run)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("limits").add_argument
    add("--max-keys", type=int, default=1024, help="keys in one request (default: %(default)s)")
    add(
        "--max-body",
        type=int,
        default=4 << 20,
        metavar="BYTES",
        help="length of one request (default: %(default)s)",
    )
    add(
        "--max-waiting",
        type=int,
        default=16384,
        metavar="KEYS",
        help="keys that may wait for an answer (default: %(default)s)",
    )
    add(
        "--timeout",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="for an answer (default: %(default)s)",
    )
    add(
        "--batch-window",
        type=float,
        default=2.0,
        metavar="MS",
        help="milliseconds that a request waits for others to be answered with it, "
        "at most 2 by default",
    )


def _run(arguments: argparse.Namespace) -> int:
    from ..pir import Server, Table  # noqa: PLC0415 - needed only when the command runs
    from ..service import Limits, create_app  # noqa: PLC0415
    from ..service.run import Address, bind, serve  # noqa: PLC0415

    address = Address(arguments.host, arguments.port, arguments.tls_cert, arguments.tls_key)
    limits = Limits(
        max_keys=arguments.max_keys,
        max_body_bytes=arguments.max_body,
        max_waiting_keys=arguments.max_waiting,
        answer_seconds=arguments.timeout,
        batch_window=arguments.batch_window / 1000,
    )
    names = _names(arguments.tables, arguments.name)
    with bind(address) as listener:  # before the slow part: a taken port is told at once
        servers = {}
        for name, path in zip(names, arguments.tables, strict=True):
            with _progress(f"reading {name}") as progress:
                table = Table(
                    load_array(path),
                    version=arguments.version,
                    output=arguments.output,
                    generator=arguments.generator,
                    progress=progress,
                )
            servers[name] = Server(table, threads=arguments.threads, party=arguments.party)
            print(f"table {name}: {table.params.describe()}", flush=True)

        def ready(url: str) -> None:
            print(f"party {arguments.party} serves {', '.join(servers)} on {url}", flush=True)

        app = create_app(servers, party=arguments.party, limits=limits)
        serve(app, address, listener, ready=ready, until_stdin_closes=arguments.exit_with_stdin)
    return 0


def load_array(path: Path) -> Array:
    """A NumPy array file, mapped into memory. Raises ArgumentError if it is none."""
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}")
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header can make numpy.load raise nearly anything
        raise ArgumentError(
            f"{path} is not a NumPy array file of numbers ({error}); write one with numpy.save"
        ) from error
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{path} holds several arrays: save the one to serve with numpy.save")
    return array


def _names(tables: list[Path], names: list[str]) -> list[str]:
    if names and len(names) != len(tables):
        raise ArgumentError(f"found {len(names)} names for {len(tables)} tables: give one a table")
    chosen = names or [path.stem for path in tables]
    if len(set(chosen)) != len(chosen) or not all(chosen):
        raise ArgumentError(f"tables need names that differ: found {', '.join(chosen)}")
    return chosen


@contextlib.contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import DownloadColumn, Progress, TransferSpeedColumn  # noqa: PLC0415

    columns = (*Progress.get_default_columns()[:2], DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(title)
        yield lambda done, total: bars.update(bar, completed=done, total=total)
