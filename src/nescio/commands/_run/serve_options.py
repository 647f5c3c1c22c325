"""The options of `nescio serve`."""

import argparse
import re
from pathlib import Path

from ..._arrays import shown
from ...dpf import OUTPUTS
from ...errors import ArgumentError
from ...pir._history import DEFAULT_VERSIONS
from .. import devices, generator
from .access import add_access_options
from .options import add_operation_options, as_folder

_MIN_JOURNAL, _MAX_JOURNAL = 1 << 10, 1 << 50


def _journal_bytes(text: str) -> int:
    """Parses the length of a journal for argparse."""
    if not re.fullmatch("[0-9]{1,20}", text) or not _MIN_JOURNAL <= int(text) <= _MAX_JOURNAL:
        raise argparse.ArgumentTypeError(
            f"found {shown(text)}, expected {_MIN_JOURNAL} to {_MAX_JOURNAL} bytes"
        )
    return int(text)


class _RefusedToken(argparse.Action):
    """Refuses a token on the command line without printing it."""

    def __call__(self, *_: object) -> None:
        raise ArgumentError(
            "--admin-token: every user of this machine can list the arguments of its processes; "
            "put a new token into a file for --admin-token-file, or into NESCIO_ADMIN_TOKEN"
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares all options."""
    add = parser.add_argument
    add(
        "tables",
        nargs="*",
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
        "--spare",
        default="0",
        metavar="N|P%",
        help="vacant rows at the end of tables of arrays, a number or a percentage of the rows: "
        "nescio admin append puts new rows in their place; must be the same on both servers "
        "(default: %(default)s)",
    )
    add(
        "--party",
        type=int,
        choices=(0, 1),
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
    _add_cluster(parser)
    _add_quotas(parser)
    _add_connection_limits(parser)
    add_access_options(parser)
    add_operation_options(parser)
    add(
        "--cache",
        action="store_true",
        help="store each prepared table next to its file as TABLE.npy.nescio; the next start "
        "checks it and maps it into memory, instead of preparing it again",
    )
    add(
        "--data",
        type=as_folder,
        metavar="DIR",
        help="keep changes to rows in this folder, so that they survive a restart: a change is "
        "written to a journal before it is made. The tables' files count only at the first start",
    )
    add(
        "--max-journal",
        type=_journal_bytes,
        metavar="BYTES",
        help="length of the journal of --data from which a new snapshot begins, or a checkpoint of "
        "the shards of --cluster (default: an eighth of the table, at least 32 MiB)",
    )
    add(
        "--keep-versions",
        type=int,
        default=DEFAULT_VERSIONS,
        metavar="N",
        help="maximum versions of each table that are answered, the current one included; older "
        "ones take memory for the rows that have changed, an eighth of the table's at most, but "
        "for the last one (default: %(default)s)",
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


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("cluster").add_argument
    add(
        "--cluster",
        metavar="ADDRESS",
        help="hold the tables in shards on this party's own Ray cluster, of which this process "
        "is a front: the address of the cluster's head, or 'local' to start one on this machine. "
        "Never use one cluster for both parties: its operator sees both queries of a lookup",
    )
    add(
        "--shards",
        type=int,
        metavar="N",
        help="parts into which the rows of each table are cut (default: 1, or those of `nescio "
        "build`)",
    )
    add(
        "--replicas",
        type=int,
        metavar="R",
        help="actors that hold each shard; with 2 or more, one may fail (default: 1)",
    )
    add(
        "--max-replicas",
        type=int,
        metavar="M",
        help="start further replicas, up to M of each shard, while requests of all servers wait "
        "for longer than --queue-target, and end them after minutes of short waits (default: "
        "that of --replicas)",
    )
    add(
        "--queue-target",
        type=float,
        default=100.0,
        metavar="MS",
        help="milliseconds from the arrival of a request to the begin of its batch, on average, "
        "above which --max-replicas adds a replica (default: %(default)s)",
    )
    add(
        "--mapped",
        action="store_true",
        help="leave the rows of tables that `nescio build` wrote in their files, for tables larger "
        "than the memory: each pass then reads the disk",
    )


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
        "--max-waiting-per-client",
        type=int,
        default=0,
        metavar="KEYS",
        help="maximum keys of one client that wait; more may wait while as many stay free for "
        "others (default: a quarter of --max-waiting)",
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
