"""`nescio serve --cluster`: the options, and the servers of tables that shards hold."""

import argparse
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from ..._device import parse_device_list
from ...errors import ArgumentError
from ...service._cluster import ClusterOptions, ClusterServer, connected, open_table
from ...service._cluster._open import array_sources, built_sources
from ...service._observe import Check, Readiness
from .._tables import DEFAULTS, TableFiles, spare_rows

_DESCRIPTION = "table.json"  # of a folder that `nescio build` wrote


def is_built(path: Path) -> bool:
    """Tests if a path is a folder that `nescio build` wrote."""
    return (path / _DESCRIPTION).is_file()


def check_cluster(arguments: argparse.Namespace) -> None:
    """Raises ArgumentError for options that do not fit together."""
    if arguments.cluster is None:
        found = [path for path in arguments.tables if is_built(path)]
        if found:
            raise ArgumentError(f"{found[0]} is cut into shards: serve it with --cluster")
        for name in ("shards", "replicas", "max_replicas"):
            if getattr(arguments, name) is not None:
                option = name.replace("_", "-")
                raise ArgumentError(f"--{option}: found no --cluster, which has shards")
        return
    for name in ("keys", "layout", "cache"):
        if getattr(arguments, name):
            raise ArgumentError(
                f"--{name}: found a table of a cluster, which is a plain one: serve it without "
                "--cluster"
            )
    if arguments.data is None and arguments.admin_token_file and arguments.cluster != "local":
        raise ArgumentError(
            "--admin-token-file: changes of a cluster's tables need --data, a folder that every "
            "node reaches"
        )


def open_servers(
    arguments: argparse.Namespace,
    tables: list[TableFiles],
    say: Callable[[str], None],
    closing: ExitStack,
) -> dict[str, ClusterServer]:
    """Connects to the cluster, and to the shards of all tables; `closing` ends that."""
    closing.enter_context(connected(arguments.cluster, arguments.party))
    servers = {}
    for files in tables:
        server = _open(files, arguments, say)
        closing.callback(server.stop)
        servers[files.name] = server
        shards = server.shards.shards
        say(f"shards of {files.name}: {len(shards)}, {len(shards[0])} replicas of each")
    return servers


def watch_shards(servers: Mapping[str, ClusterServer], readiness: Readiness) -> None:
    """Adds the check that each shard has a replica that answers."""
    for name, server in servers.items():
        readiness.add(f"shards of {name}", partial(_check_shards, server))


def report_waits(servers: Mapping[str, ClusterServer], batcher: Callable[[str], Any]) -> None:
    """Lets the heads of tables know how long requests wait here, until the servers stop.

    `batcher` returns the `Batcher` of a table of the service.
    """
    for name, server in servers.items():
        server.table.report(batcher(name).take_waited)


def _check_shards(server: ClusterServer) -> Check:
    missing = server.shards.missing
    text = f"no replica answers of shards {', '.join(map(str, missing))}" if missing else ""
    return Check(not missing, text)


def _open(
    files: TableFiles, arguments: argparse.Namespace, say: Callable[[str], None]
) -> ClusterServer:
    options = ClusterOptions(
        party=arguments.party,
        shards=arguments.shards or 1,
        replicas=arguments.replicas or 1,
        max_replicas=arguments.max_replicas,
        queue_seconds=arguments.queue_target / 1000,
        threads=arguments.threads,
        keep=arguments.keep_versions,
        data=arguments.data,
        max_journal=arguments.max_journal,
        mapped=arguments.mapped,
        devices=[str(one) for one in parse_device_list(arguments.device)],
    )
    if not is_built(files.path):
        given = {name: getattr(arguments, name) or value for name, value in DEFAULTS.items()}
        sources = array_sources(
            files.path, options, spare=lambda rows: spare_rows(arguments.spare, rows), **given
        )
        return open_table(files.name, sources, options, say)
    sources = built_sources(files.path, options)
    if arguments.shards not in (None, len(sources.parts)):
        raise ArgumentError(
            f"--shards: found {arguments.shards}, but {files.path} was built with "
            f"{len(sources.parts)}: leave the option out, or build the table again"
        )
    return open_table(files.name, sources, options, say)
