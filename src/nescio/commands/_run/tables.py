"""The servers of the tables of `nescio serve`: of files, of data folders, of shards."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from ...pir import Server, Table
from ...pir._layout_kind import layout_kind
from ...pir.batch import Layout
from ...service._reloaded import ReloadedServer
from .._data import open_kept
from .._tables import TableFiles, open_table, progress_of
from .reload import make_server

Say = Callable[[str], None]


def open_servers(  # noqa: PLR0917 - what one start has
    arguments: argparse.Namespace,
    tables: Sequence[TableFiles],
    sharded: Mapping[str, Server],
    used: Sequence[object],
    say: Say,
    closing: ExitStack,
) -> dict[str, ReloadedServer]:
    """Opens all tables that are not `sharded`, and says what each one is."""
    servers = {}
    for files in tables:
        name = files.name
        if name in sharded:
            servers[name] = ReloadedServer(sharded[name])
        else:
            table = _open(files, arguments, say, closing)
            servers[name] = make_server(table, arguments, used)
        _describe(name, servers[name], arguments, say)
    return servers


def _open(files: TableFiles, arguments: argparse.Namespace, say: Say, closing: ExitStack) -> Table:
    with progress_of(f"reading {files.name}") as shown:
        if arguments.data is None:
            return open_table(files, arguments, shown)
        return open_kept(files, arguments, shown, say, closing)


def _describe(name: str, server: ReloadedServer, arguments: argparse.Namespace, say: Say) -> None:
    table = server.table
    say(f"table {name}: {table.params.describe()}")
    say(f"digest of {name}: {table.params.digest}")
    if layout_kind(table.layout) == "batch":
        say(f"layout of {name}: {Layout.from_bytes(table.layout).describe()}")
    if arguments.device == "auto" and server.devices != ("cpu",):
        say(f"answers for {name} are made on {', '.join(server.devices)}")
