"""`nescio lookup`: private lookups of rows from two servers."""

import argparse
import json
import math
import ssl
from pathlib import Path

import numpy as np

from .._arrays import Array
from ..errors import FileError
from . import Subparsers


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "lookup",
        help="look up rows on two servers, privately",
        description="Looks up rows of a table on two servers and prints one row per line. Each "
        "server learns the number of rows, but not which rows. Rows are checked against the digest "
        "of the table, on which both servers must agree: one dishonest server cannot change them.",
    )
    add = parser.add_argument
    add(
        "indices",
        nargs="+",
        type=int,
        metavar="ROW",
        help="index of a row to look up, counted from 0",
    )
    add(
        "--servers",
        nargs=2,
        required=True,
        metavar="URL",
        help="addresses of two servers, one of each party, such as https://example.org:8080",
    )
    add("--table", required=True, help="name of the table on both servers")
    add("--json", action="store_true", help="print the rows as a JSON array")
    add(
        "--timeout",
        type=float,
        default=30.0,
        help="seconds to wait for a server's reply (default: %(default)s)",
    )
    add(
        "--retries",
        type=int,
        default=2,
        help="number of retries if a server fails (default: %(default)s)",
    )
    add("--ca-cert", type=Path, help="PEM file of certificates to trust instead of the system's")
    add(
        "--no-verify",
        action="store_false",
        dest="verify",
        help="do not check rows against the table's digest: a wrong answer is then not detected",
    )
    add("--digest", metavar="HEX", help="digest that the table must have, 64 hexadecimal digits")
    add(
        "--known-tables",
        type=Path,
        metavar="FILE",
        help="file that keeps the digest of the first lookup, which later ones must find again",
    )
    add(
        "--insecure-generator",
        action="store_true",
        help="allow a table whose generator claims no 128-bit security",
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..service import RemoteTable  # noqa: PLC0415 - needed only when the command runs

    with RemoteTable(
        arguments.servers,
        arguments.table,
        timeout=arguments.timeout,
        retries=arguments.retries,
        tls=_trust(arguments.ca_cert),
        verify=arguments.verify,
        digest=arguments.digest,
        known_tables=arguments.known_tables,
        insecure_generator=arguments.insecure_generator,
    ) as remote:
        rows = remote.lookup(arguments.indices)
    if arguments.json:
        print(json.dumps(_plain(rows), allow_nan=False))
    else:
        for index, row in zip(arguments.indices, rows, strict=True):
            print(index, *map(_shown, np.ravel(row)))
    return 0


def _plain(rows: Array) -> object:
    """Converts rows to JSON types; complex numbers, dates, NaN and infinities become text."""
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        return [_plain(row) for row in rows] if rows.ndim else _number(float(rows))
    if rows.dtype.kind == "S":
        return np.char.decode(rows, "latin-1").tolist()
    return rows.tolist() if rows.dtype.kind in "biufU" else rows.astype(str).tolist()


def _shown(value: object) -> str:
    """Formats an element for a terminal; text is quoted and escaped."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    return json.dumps(value) if isinstance(value, str) else str(value)


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _trust(path: Path | None) -> bool | ssl.SSLContext:
    if path is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError) as error:
        raise FileError(f"{path} holds no valid certificates: {error}") from error
