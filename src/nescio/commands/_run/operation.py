"""The work of `nescio serve` beside answering: logs, metrics, questions to the other party."""

import argparse
import logging
import os
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.applications import Starlette

from ..._arrays import check_file
from ...errors import ArgumentError, FileError
from ...pir import Server
from ...pir._versions import check_version
from ...service._data import KeptTable
from ...service._observe import Check, Metrics, Readiness, set_up_logging
from ...service._observe._peer import Peer
from ...service._operation import HangUps, Operation
from ...service._reloaded import ReloadedServer
from .reload import Reloads

_LOG = logging.getLogger("nescio.serve")


def speaker(form: str) -> Callable[[str], None]:
    """Starts the log; returns the function that says what a server starts with.

    As text, its lines go to standard output, where programs look for the address. As JSON they are
    a part of the log.
    """
    set_up_logging("json" if form == "json" else "text")
    return _LOG.info if form == "json" else _say


def _say(text: str) -> None:
    """Prints a line; a server goes on if nobody reads its output any more."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def trusted(path: Path | None) -> bool | ssl.SSLContext:
    """Returns the authorities that --peer-ca-cert names. Raises FileError if the file has none."""
    if path is None:
        return True
    check_file(path, "a PEM file of certificates")
    try:
        return ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError) as error:
        raise FileError(f"{path} holds no valid certificates: {error}") from error


def operation(
    arguments: argparse.Namespace,
    app: Starlette,
    servers: Mapping[str, ReloadedServer],
    reloads: Reloads,
    hang_ups: HangUps,
) -> Operation:
    """Sets up what runs beside the service: its metrics, its readiness, the other party."""
    metrics: Metrics = app.state.metrics
    readiness: Readiness = app.state.readiness
    if arguments.metrics or arguments.admin_port is not None:
        metrics.measure_machine(list(servers.values()))
    jobs = []
    if (peer := peer_of(arguments, servers)) is not None:
        peer.observe(metrics, readiness)
        jobs.append(peer.run)
    for name, server in servers.items():
        watch_journal(name, server, metrics, readiness)
    reloads.begin(app, servers)
    return Operation(arguments.drain_seconds, jobs, reloads.reload, hang_ups)


def watch_journal(name: str, server: Server, metrics: Metrics, readiness: Readiness) -> None:
    """Adds the metrics and the check of a table's journal, if it has one."""
    journal = server.table.journal
    if not isinstance(journal, KeptTable):
        return
    journal.watch = metrics.journal(name)
    readiness.add(f"journal of {name}", lambda: Check(not journal.failure, journal.failure or ""))


def check_operation(arguments: argparse.Namespace) -> None:
    """Raises ArgumentError and FileError for what `operation` would refuse."""
    if arguments.version is not None:
        check_version(arguments.version)
    peer_of(arguments, {})
    Operation(arguments.drain_seconds)


def peer_of(arguments: argparse.Namespace, servers: Mapping[str, Server]) -> Peer | None:
    """Returns the other party that --peer names. Raises ArgumentError and FileError."""
    if arguments.peer is None:
        if arguments.peer_ca_cert is not None:
            raise ArgumentError("--peer-ca-cert: found no --peer, expected its URL")
        return None
    tls = trusted(arguments.peer_ca_cert)
    return Peer(arguments.peer, list(servers), servers, tls=tls)
