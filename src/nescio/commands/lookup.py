"""`nescio lookup`: private lookups of rows from two servers."""

import argparse
import json
import math
import os
import re
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._arrays import Array, shown
from ..errors import ArgumentError, FileError
from ..pir import KeyedClient, Lookups, TableParams
from ..pir._keyed import KeyKind
from ..pir._layout_kind import layout_kind
from ..pir.batch import BatchClient, Layout
from . import Subparsers

if TYPE_CHECKING:
    from ..service import RemoteTable

_INTEGER = re.compile("-?[0-9]{1,30}")
_NOT_FOUND = 3
_LEAST_SECONDS = 0.001


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "lookup",
        help="look up rows on two servers, privately",
        description="Looks up rows of a table on two servers, by number or by key, and prints one "
        "row per line. Each server learns the number of rows, but not which rows, and not if the "
        "table has a key. Rows are checked against the digest of the table, on which both servers "
        "must agree: one dishonest server cannot change them. The rows of a batch table are those "
        "of one inference, and the servers do not learn how many there are. The exit code is 3 if "
        "the table lacks one of the keys, or one of the rows does not fit the layout.",
    )
    add = parser.add_argument
    add(
        "keys",
        nargs="+",
        metavar="ROW_OR_KEY",
        help="index of a row to look up, counted from 0; in a table with keys, a key: text, an "
        "integer, or bytes as hexadecimal digits. A key that begins with '-' needs -- before it",
    )
    add(
        "--servers",
        nargs=2,
        required=True,
        metavar="URL",
        help="addresses of two servers, one of each party, such as https://example.org:8080; "
        "with commas between the addresses of several servers of one party",
    )
    add("--table", required=True, help="name of the table on both servers")
    add("--json", action="store_true", help="print the rows as a JSON array")
    add(
        "--layout",
        type=Path,
        metavar="FILE",
        help="layout that a batch table must have (default: the layout that the servers have)",
    )
    add_requests(parser, timeout=30.0)
    add(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help="seconds for the whole lookup at most, with the connection",
    )
    add(
        "--hedge",
        type=_hedge,
        metavar="SECONDS",
        help="seconds after which another server of the same party gets the same key, if "
        "--servers names several; or a quantile of the last times, such as p95",
    )
    add(
        "--client-key-file",
        type=Path,
        metavar="FILE",
        help="file with the key for servers that need one, or a key for each party in the order of "
        "--servers (default: the environment variable NESCIO_CLIENT_KEY)",
    )
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


def add_requests(parser: argparse.ArgumentParser, *, timeout: float) -> None:
    """Declares the options of requests to both servers: time, retries, certificates."""
    add = parser.add_argument
    add(
        "--timeout",
        type=float,
        default=timeout,
        help="seconds to wait for a server's reply (default: %(default)s)",
    )
    add(
        "--retries",
        type=int,
        default=2,
        help="number of retries if a server fails (default: %(default)s)",
    )
    add("--ca-cert", type=Path, help="PEM file of certificates to trust instead of the system's")


def _hedge(text: str) -> float | str:
    """Reads seconds; any other text is for RemoteTable to check."""
    try:
        return float(text)
    except ValueError:
        return text


def _run(arguments: argparse.Namespace) -> int:
    from ..service import RemoteTable  # noqa: PLC0415 - needed only when the command runs

    begun = time.monotonic()
    with RemoteTable(
        [entry.split(",") if "," in entry else entry for entry in arguments.servers],
        arguments.table,
        timeout=arguments.timeout,
        retries=arguments.retries,
        deadline=arguments.deadline,
        hedge=arguments.hedge,
        client_key=_client_key(arguments.client_key_file),
        tls=trust(arguments.ca_cert),
        verify=arguments.verify,
        digest=arguments.digest,
        known_tables=arguments.known_tables,
        insecure_generator=arguments.insecure_generator,
    ) as remote:
        table: Lookups = remote
        if arguments.deadline is not None:
            table = _UntilDeadline(remote, begun + arguments.deadline)
        rows, found, missing = _look_up(table, arguments.keys, arguments.layout)
    if arguments.json:
        plain = [_plain(row) if has else None for row, has in zip(rows, found, strict=True)]
        print(json.dumps(plain, allow_nan=False))
    else:
        for key, row, has in zip(arguments.keys, rows, found, strict=True):
            print(key, *(map(_shown, np.ravel(row)) if has else [missing]))
    return 0 if all(found) else _NOT_FOUND


class _UntilDeadline:
    """A table whose lookups end at one time, which the connection has used a part of."""

    def __init__(self, remote: "RemoteTable", end: float) -> None:
        self._remote = remote
        self._end = end

    @property
    def params(self) -> TableParams:
        return self._remote.params

    @property
    def layout(self) -> bytes:
        return self._remote.layout

    def lookup(self, indices: object, *, layout: str | None = None) -> Array:
        left = max(self._end - time.monotonic(), _LEAST_SECONDS)
        return self._remote.lookup(indices, layout=layout, deadline=left)


def _look_up(
    remote: Lookups, texts: Sequence[str], layout: Path | None
) -> tuple[Array, Sequence[bool], str]:
    """Looks up keys, or rows of a table without keys.

    Returns the values, which of them there are, and what to say of the others.
    """
    kind = layout_kind(remote.layout)
    own = None if layout is None else _own_layout(remote, layout)
    if kind == "batch":
        result = BatchClient(remote, layout=own).lookup([_row(text) for text in texts])
        return result.rows[0], result.found[0].tolist(), "is missing: it does not fit the layout"
    if kind != "keyed":
        return remote.lookup([_row(text) for text in texts]), [True] * len(texts), ""
    client = KeyedClient(remote)
    values, found = client.lookup([_key(client.layout.keys, text) for text in texts])
    return values, found.tolist(), "is not in the table"


def _own_layout(remote: Lookups, path: Path) -> Layout:
    """Reads the layout of `--layout`. Raises ArgumentError unless the table has it."""
    own, params = Layout.load(path), remote.params
    if own.digest == params.layout:
        return own
    found = {
        "batch": f"the table has another one, {params.layout[:12]}",
        "keyed": "the table has keys",
        "": "the table has no batch layout",
    }[layout_kind(remote.layout)]
    raise ArgumentError(
        f"--layout: found the layout {own.digest[:12]} in {path}, but {found}: leave out --layout"
    )


def _row(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ArgumentError(
            f"row: found {shown(text)}, expected an integer: the table has no keys, but numbers"
        )
    return int(text)


def _key(kind: KeyKind, text: str) -> str | int | bytes:
    """Converts an argument to a key of a table whose keys have one type."""
    if kind == "text":
        return text
    if kind == "integer":
        if not _INTEGER.fullmatch(text):
            raise ArgumentError(
                f"key: found {shown(text)}, expected an integer, as all keys of this table are"
            )
        return int(text)
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise ArgumentError(
            f"key: found {shown(text)}, expected hexadecimal digits: the keys of this table are "
            "bytes"
        ) from error


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


def trust(path: Path | None) -> bool | ssl.SSLContext:
    """Trusts the certificates of a file; None trusts the system's. Raises FileError."""
    if path is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError) as error:
        raise FileError(f"{path} holds no valid certificates: {error}") from error


def _client_key(path: Path | None) -> str | list[str] | None:
    """Reads one key, or one for each party, from a file or the environment; None without any."""
    try:
        text = os.environ.get("NESCIO_CLIENT_KEY", "") if path is None else path.read_text("ascii")
    except (OSError, UnicodeError) as error:
        raise FileError(f"{path} cannot be read as a file of a client key: {error}") from error
    keys = text.split()
    if path is not None and not keys:
        raise FileError(f"{path} is empty, expected a client key, or one for each party")
    return None if not keys else keys[0] if len(keys) == 1 else keys
