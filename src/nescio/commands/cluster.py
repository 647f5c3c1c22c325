"""`nescio cluster`: the shards of a party's tables on its Ray cluster."""

import argparse
import json
from typing import TYPE_CHECKING

from .._report import Report
from ..errors import NescioError, ResourceError
from . import Subparsers, count

if TYPE_CHECKING:
    from ..service._cluster._messages import ReplicaStatus

_COLUMNS = [
    ("table", "table", ""),
    ("shard", "shard", "d"),
    ("replica", "replica", ""),
    ("state", "state", ""),
    ("node", "node", ""),
    ("pid", "pid", "d"),
    ("megabytes", "MB", ",.0f"),
    ("start_seconds", "start s", ".1f"),
]


def add_parser(commands: Subparsers) -> None:
    """Declares the command and its actions."""
    parser = commands.add_parser(
        "cluster",
        help="show, scale, restart or end the shards of tables on a Ray cluster",
        description="Shows, scales, stores, restarts or ends the shards of the tables that `nescio "
        "serve --cluster` has put on this party's Ray cluster.",
    )
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    show = _action(
        actions,
        "status",
        "show all replicas; the exit code is 1 if one is not up that --replicas of nescio serve "
        "asks for",
        _status,
    )
    show.add_argument("--table", help="table to show (default: all)")
    show.add_argument("--json", action="store_true", help="print one JSON object for each replica")
    grow = _action(actions, "scale", "start or end replicas of each shard of a table", _scale)
    grow.add_argument("--table", required=True, help="name of the table")
    grow.add_argument(
        "--replicas", type=_replicas, required=True, metavar="R", help="replicas of each shard"
    )
    store = _action(
        actions,
        "checkpoint",
        "write the rows of a table to files in its data folder, in place of the journal",
        _checkpoint,
    )
    store.add_argument("--table", required=True, help="name of the table")
    again = _action(
        actions,
        "restart",
        "restart the head and all replicas of a table, one at a time, while lookups go on; the new "
        "processes run the release that is installed now",
        _restart,
    )
    again.add_argument("--table", required=True, help="name of the table")
    again.add_argument(
        "--force",
        action="store_true",
        help="also if a shard has a single replica, whose lookups are refused while it restarts",
    )
    end = _action(
        actions, "drain", "end all actors of a table: fronts then refuse its lookups", _drain
    )
    end.add_argument("--table", required=True, help="name of the table")


def _action(actions: Subparsers, name: str, text: str, run: object) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument(
        "--cluster", required=True, metavar="ADDRESS", help="address of the cluster's head"
    )
    parser.add_argument(
        "--party", type=int, choices=(0, 1), required=True, help="number of this party"
    )
    parser.set_defaults(run=run)
    return parser


def _replicas(text: str) -> int:
    """Parses a number of replicas, as many as `nescio serve` starts."""
    if not 1 <= (found := count(text)) <= 64:
        raise argparse.ArgumentTypeError(f"found {found}, expected 1 to 64")
    return found


def _status(arguments: argparse.Namespace) -> int:
    from ..service._cluster import _admin, connected  # noqa: PLC0415 - needs the extra

    good = True
    silent: list[str] = []
    with connected(arguments.cluster, arguments.party):
        report = None if arguments.json else Report(_COLUMNS)
        for table in [arguments.table] if arguments.table else _admin.tables():
            for one in _described(table, silent if arguments.table is None else None):
                good = good and (one.up or not one.needed)
                case: dict[str, object] = {
                    "table": table,
                    "shard": one.shard,
                    "replica": one.name,
                    "state": one.state,
                }
                if one.info is not None:
                    case |= {
                        "node": one.info.node[:8],
                        "pid": one.info.pid,
                        "megabytes": one.info.bytes / 1e6,
                        "start_seconds": one.info.start_seconds,
                    }
                if report is None:
                    print(json.dumps(case))
                else:
                    report.add(case)
    if silent:
        raise ResourceError("; ".join(silent))
    return 0 if good else 1


def _described(table: str, silent: list[str] | None) -> "list[ReplicaStatus]":
    """Returns the replicas of a table, or none if its head is `silent`, which gets the reason."""
    from ..service._cluster import _admin  # noqa: PLC0415

    try:
        return _admin.status(table)
    except NescioError as error:
        if silent is None:
            raise
        silent.append(str(error))
        return []


def _scale(arguments: argparse.Namespace) -> int:
    from ..service._cluster import _admin, connected  # noqa: PLC0415

    with connected(arguments.cluster, arguments.party):
        _admin.scale(arguments.table, arguments.replicas)
        print(f"each shard of {arguments.table} has {arguments.replicas} replicas")
    return 0


def _checkpoint(arguments: argparse.Namespace) -> int:
    from ..service._cluster import _admin, connected  # noqa: PLC0415

    with connected(arguments.cluster, arguments.party):
        state = _admin.checkpoint(arguments.table)
        print(
            f"the rows of {arguments.table} are in files; the journal after them has "
            f"{state.changes} changes, {state.journal_bytes} bytes"
        )
    return 0


def _restart(arguments: argparse.Namespace) -> int:
    from ..service._cluster import _restart, connected  # noqa: PLC0415

    with connected(arguments.cluster, arguments.party):
        _restart.restart(arguments.table, force=arguments.force)
    return 0


def _drain(arguments: argparse.Namespace) -> int:
    from ..service._cluster import _admin, connected  # noqa: PLC0415

    with connected(arguments.cluster, arguments.party):
        _admin.drain(arguments.table)
        print(f"the actors of {arguments.table} have ended")
    return 0
