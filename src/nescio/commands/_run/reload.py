"""Reloads for SIGHUP: certificates, client keys and tables, without a dropped request."""

import argparse
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from starlette.applications import Starlette

from ...errors import ArgumentError, NescioError
from ...pir import Server, Table
from ...pir._checksums import Source
from ...service import Quotas
from ...service._observe import Metrics
from ...service._reloaded import ReloadedServer
from ...service._serve import Address
from .._tables import TableFiles, open_table

_LOG = logging.getLogger("nescio.serve")


def make_server(
    table: Table, arguments: argparse.Namespace, used: Sequence[object]
) -> ReloadedServer:
    """Makes the server of a table as the options say; its table may be replaced later."""
    table.keep_versions(arguments.keep_versions)
    server = Server(
        table,
        threads=arguments.threads,
        party=arguments.party,
        device="cpu" if arguments.device == "cpu" else "auto",
        devices=[str(one) for one in used] or None,
    )
    return ReloadedServer(server)


class Reloads:
    """Reads certificates, client keys and tables again; made before the tables are read first.

    What cannot be read is refused with a line in the log, and stays as it was.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        address: Address,
        tables: Sequence[TableFiles],
        quotas: Quotas,
        used: Sequence[object],
    ) -> None:
        self._arguments = arguments
        self._address = address
        self._quotas = quotas
        self._used = used
        self._files = {files.name: files for files in tables}
        self._sources = {files.name: _sources(files) for files in tables}
        self._ids: dict[str, bytes] = {}
        self._servers: Mapping[str, ReloadedServer] = {}
        self._app: Starlette | None = None

    def begin(self, app: Starlette, servers: Mapping[str, ReloadedServer]) -> None:
        """Takes the servers of the tables that were read."""
        self._app = app
        self._servers = servers
        self._ids = {name: server.params.id for name, server in servers.items()}

    def reload(self, context: ssl.SSLContext | None) -> None:
        """Reloads everything that has changed."""
        _LOG.info("reloading")
        if context is not None:
            self._try("certificate", lambda: self._certificate(context))
        assert self._app is not None
        self._try("configuration", self._options)
        keys = getattr(self._app.state, "client_keys", None)
        if keys is not None:
            self._try("client_keys", keys.reload)
        for name in self._files:
            self._try("tables", partial(self._table, name))

    def _try(self, what: str, work: Callable[[], object]) -> None:
        """Does a part of a reload, which returns False if nothing has changed."""
        assert self._app is not None
        metrics: Metrics = self._app.state.metrics
        try:
            changed = work()
        except (NescioError, OSError, MemoryError) as error:
            _LOG.error("a reload was refused: %s", error, extra={"what": what})
            metrics.reloaded(what, done=False)
            return
        if changed is not False:
            metrics.reloaded(what, done=True)

    def _options(self) -> bool:
        """Names the options of the configuration file that have changed: none is read again."""
        changes: Callable[[], list[str]] = getattr(self._arguments, "config_changes", list)
        for name in changes():
            _LOG.warning(
                "%s has changed in the configuration file: it takes effect at the next start", name
            )
        return False

    def _certificate(self, context: ssl.SSLContext) -> None:
        """Gives handshakes from now on a new context, which has no certificate but the new one.

        A context that loads a second certificate keeps the first if their keys are of other types.
        """
        fresh = self._address.context()
        context.sni_callback = lambda connection, _name, _old: setattr(connection, "context", fresh)
        _LOG.info("the certificate is loaded again")

    def _table(self, name: str) -> bool:
        """Reads a table again if its files have changed; returns False if not."""
        files, before = self._files[name], self._sources[name]
        now = _sources(files)
        if now == before:
            return False
        server = self._servers[name]
        if getattr(self._arguments, "data", None) is not None:
            raise ArgumentError(
                f"table {name!r}: its file has changed, but its data folder counts; make the "
                "change with `nescio admin`"
            )
        if server.params.id != self._ids[name]:
            raise ArgumentError(
                f"table {name!r}: its file has changed, but the table has changes that the file "
                "lacks; restart the server to drop them"
            )
        if hasattr(self._arguments, "version_now"):  # of the configuration, which may have another
            self._arguments.version = self._arguments.version_now()
        table = open_table(files, self._arguments, None)
        self._sources[name] = now
        if table.params.id == server.params.id:
            return False
        if not self._quotas.keys(table.params):
            raise ArgumentError(f"table {name!r}: no request for one of its rows fits the limits")
        server.replace(make_server(table, self._arguments, self._used))
        self._ids[name] = table.params.id
        _LOG.info(
            "table %s: %s", name, table.params.describe(), extra={"id": table.params.id.hex()}
        )
        return True


def _sources(files: TableFiles) -> list[Source]:
    paths = (files.path, files.keys, files.layout)
    return [Source.of(path) for path in paths if isinstance(path, Path)]
