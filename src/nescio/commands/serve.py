"""`nescio serve`: one of the two servers of some tables."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array
from .._device import describe, parse_device_list
from ..dpf import OUTPUTS
from ..errors import ArgumentError, FileError
from ..pir import Table
from ..pir import _stored as stored
from . import Subparsers, devices, generator

_DEFAULTS = {"version": "1", "output": "bit", "generator": "chacha20"}


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "serve",
        help="serve tables to private lookups, as one of two parties",
        description="Serves tables as one of two parties. Run the other party elsewhere, under "
        "other hands: whoever sees both servers' queries can tell what was looked up.",
    )
    add = parser.add_argument
    add(
        "tables",
        nargs="+",
        type=Path,
        metavar="TABLE.npy",
        help="a table: a NumPy array file, or a stored table",
    )
    add("--name", action="append", default=[], help="its name (default: the file's); one a table")
    add("--party", type=int, choices=(0, 1), required=True, help="which of the two parties this is")
    add("--version", help="version of the tables, the same at both servers (default: 1)")
    add("--output", choices=OUTPUTS, help="group that shares add up in (default: bit)")
    add("--generator", type=generator, help="the keys' generator (default: chacha20)")
    add("--threads", type=int, default=0, help="worker threads; 0 is every processor")
    add(
        "--device",
        type=devices,
        default="auto",
        metavar="NAME",
        help="where answers are made: cpu, cuda, cuda:1; cuda:0+cuda:1 share the "
        "rows (default: cpu)",
    )
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=int, default=8080, help="port; 0 is any free one (default: %(default)s)")
    add("--tls-cert", type=Path, help="TLS certificate chain, PEM")
    add("--tls-key", type=Path, help="its private key, PEM")
    _add_limits(parser)
    add(
        "--cache",
        action="store_true",
        help="keep each table beside its file as TABLE.npy.nescio, ready to be mapped: the next "
        "start is immediate",
    )
    add(
        "--admin-token",
        metavar="TOKEN",
        help="let who sends this token change rows; @FILE reads it from a file",
    )
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
        "--max-answer",
        type=int,
        default=64 << 20,
        metavar="BYTES",
        help="length of one answer (default: %(default)s)",
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
        help="milliseconds that a request waits for others to be answered with it "
        "(default: %(default)s)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from ..pir import Server  # noqa: PLC0415 - needed only when the command runs
    from ..service import Quotas, create_app  # noqa: PLC0415
    from ..service._app import check_name  # noqa: PLC0415
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
    for path in arguments.tables:
        if not path.is_file():
            raise FileError(f"the file {path} does not exist")
    token = _token(arguments.admin_token)
    if token is not None:
        check_token(token)
    names = _names(arguments.tables, arguments.name)
    for name in names:
        check_name(name)
    places = parse_device_list(arguments.device)
    if places:
        print(f"answers are made on {describe(places)}", flush=True)
    with bind(address) as listener:  # before the slow part: a taken port is told at once
        servers = {}
        for name, path in zip(names, arguments.tables, strict=True):
            with _progress(f"reading {name}") as progress:
                table = open_table(path, arguments, progress)
            servers[name] = Server(
                table,
                threads=arguments.threads,
                party=arguments.party,
                devices=[str(place) for place in places] or None,
            )
            print(f"table {name}: {table.params.describe()}", flush=True)

        def ready(url: str) -> None:
            print(f"party {arguments.party} serves {', '.join(servers)} on {url}", flush=True)

        app = create_app(servers, party=arguments.party, quotas=quotas, admin_token=token)
        serve(app, address, listener, ready=ready, until_stdin_closes=arguments.exit_with_stdin)
    return 0


def open_table(
    path: Path, arguments: argparse.Namespace, progress: Callable[[int, int], None] | None
) -> Table:
    """The table of a file: of rows, or stored; or what an earlier start kept beside it."""
    asked: dict[str, Any] = {name: getattr(arguments, name) for name in _DEFAULTS}
    if stored.is_stored(path):
        return _stored_table(path, arguments.threads, asked)
    options: dict[str, Any] = {name: asked[name] or default for name, default in _DEFAULTS.items()}
    kept = path.with_name(path.name + ".nescio")
    source = stored.Source.of(path)
    if arguments.cache:
        # What an earlier start kept, if it is whole and of these rows and options.
        with contextlib.suppress(ArgumentError):
            if kept.is_file() and stored.source_of(kept) == source:
                return _stored_table(kept, arguments.threads, options)
    table = Table(load_array(path), threads=arguments.threads, progress=progress, **options)
    if arguments.cache:
        table.save(kept, source=source)
    return table


def _stored_table(path: Path, threads: int, asked: Mapping[str, str | None]) -> Table:
    table = Table.load(path, threads=threads)
    for name, value in asked.items():
        found = getattr(table.params, name)
        if value is not None and value != found:
            raise ArgumentError(
                f"{path} is stored with the {name} {found!r}: it cannot be served with {value!r}"
            )
    return table


def _token(given: str | None) -> str | None:
    if given is None or not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"the admin token cannot be read from {given[1:]}: {error}") from error


def load_array(path: Path) -> Array:
    """Maps a NumPy array file into memory. Raises FileError if it is not one."""
    if not path.is_file():
        raise FileError(f"the file {path} does not exist")
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header can make numpy.load raise nearly anything
        raise FileError(
            f"{path} is not a NumPy array file of numbers ({error}); write one with numpy.save"
        ) from error
    if not isinstance(array, np.ndarray):
        raise FileError(f"{path} holds several arrays: save the one to serve with numpy.save")
    return array


def _names(tables: list[Path], names: list[str]) -> list[str]:
    if names and len(names) != len(tables):
        raise ArgumentError(f"found {len(names)} names for {len(tables)} tables: give one a table")
    chosen = names or [path.stem for path in tables]
    if len(set(chosen)) != len(chosen):
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
