"""`nescio admin`: changes of a table on both of its servers, their state, and repairs."""

import argparse
import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._arrays import check_file, load_array
from ..errors import ArgumentError, FileError, NescioError
from . import Subparsers
from ._row_names import row_names
from ._run.access import add_client_key
from .lookup import add_requests, trust

if TYPE_CHECKING:
    from ..service import PartyStatus, TableAdmin, TableStatus

_VARIABLES = ("NESCIO_ADMIN_TOKEN_0", "NESCIO_ADMIN_TOKEN_1")
_ROWS = ("update", "insert")


class _RefusedToken(argparse.Action):
    """Refuses a token on the command line without printing it."""

    def __call__(self, *_: object) -> None:
        raise ArgumentError(
            "--token: every user of this machine can list the arguments of its processes; put the "
            f"tokens into two files for --token-file, or into {_VARIABLES[0]} and {_VARIABLES[1]}"
        )


def add_parser(commands: Subparsers) -> None:
    """Declares the command and its subcommands."""
    parser = commands.add_parser(
        "admin",
        help="change a table on both of its servers, and mend servers that differ",
        description="Changes rows of a table on both servers, shows how both are, and sends a "
        "server that is behind the changes that it lacks. The exit code is 1 after any error.",
    )
    whats = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_change(whats, "update", "overwrite rows, or the values of keys")
    _add_change(whats, "insert", "insert rows before others, or add keys")
    _add_change(whats, "delete", "delete rows or keys")
    _add_vacant(whats)
    _add_status(whats)
    _add_repair(whats)
    add_client_key(whats)


def _add_connection(parser: argparse.ArgumentParser, *, journal: bool = False) -> None:
    """Declares the options of all subcommands; `journal`: they need one."""
    add = parser.add_argument
    add(
        "--servers",
        nargs=2,
        required=True,
        metavar="URL",
        help="addresses of both servers, such as https://a.example.org; their operator's ports if "
        "they have any",
    )
    add("--table", required=True, help="name of the table on both servers")
    add(
        "--token-file",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="file of a server's admin token; twice, in the order of --servers (default: the "
        f"tokens in the environment variables {_VARIABLES[0]} and {_VARIABLES[1]})",
    )
    add("--token", action=_RefusedToken, help=argparse.SUPPRESS)
    add(
        "--journal",
        type=Path,
        required=journal,
        metavar="FILE",
        help="file that keeps every change of this table, so that a server that is behind can get "
        "it; made if it does not exist",
    )
    add_requests(parser, timeout=300.0)


def _add_change(whats: Subparsers, name: str, what: str) -> None:
    parser = whats.add_parser(
        name,
        help=what,
        description=f"Makes one change at both servers: {what}. Both are asked first if they "
        "would make it. Repeat the same command after a failure.",
    )
    _add_connection(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--indices",
        metavar="LIST",
        help="rows to change, counted from 0: numbers and ranges such as 1,2,5-9, or a .npy file",
    )
    where.add_argument(
        "--keys",
        type=Path,
        metavar="FILE",
        help="file of the keys to change in a table with keys: a text file with a key on each "
        "line, or a .npy file",
    )
    if name in _ROWS:
        parser.add_argument(
            "--rows",
            type=Path,
            required=True,
            metavar="FILE.npy",
            help="NumPy array of a new row for each index or key, of the table's dtype",
        )
    parser.add_argument(
        "--version", help="name of the new version (default: the next number after the old one)"
    )
    parser.set_defaults(run=_run_change, operation=name)


def _add_vacant(whats: Subparsers) -> None:
    """Declares the changes of vacant rows, which leave the indices of all others as they are."""
    append = whats.add_parser(
        "append",
        help="put rows in the place of vacant ones, and print their indices",
        description="Puts rows in the place of the lowest vacant ones at both servers, and prints "
        "their indices, one a line. If less than a sixteenth of the rows is vacant then, the "
        "tables grow before the command ends. Repeat the same command after a failure.",
    )
    append.add_argument(
        "--rows", type=Path, required=True, metavar="FILE.npy", help="NumPy array of new rows"
    )
    clear = whats.add_parser(
        "clear",
        help="overwrite rows with zeros and make them vacant",
        description="Overwrites rows with zeros at both servers and makes them vacant.",
    )
    clear.add_argument(
        "--indices",
        metavar="LIST",
        required=True,
        help="rows to clear, counted from 0: numbers and ranges such as 1,2,5-9, or a .npy file",
    )
    grow = whats.add_parser(
        "grow",
        help="add vacant rows at the end",
        description="Adds vacant rows at the end of the table at both servers.",
    )
    grow.add_argument("--count", type=int, required=True, help="number of vacant rows to add")
    for parser, run in ((append, _run_append), (clear, _run_clear), (grow, _run_grow)):
        _add_connection(parser)
        parser.add_argument(
            "--version", help="name of the new version (default: the next number after the old one)"
        )
        parser.set_defaults(run=run)


def _add_status(whats: Subparsers) -> None:
    parser = whats.add_parser(
        "status",
        help="show how both servers are, and what mends them",
        description="Shows the version of both servers and, with a journal, how many changes each "
        "lacks. Needs no tokens. The exit code is 0 if both are ready and have the same table, "
        "else 1.",
    )
    _add_connection(parser)
    parser.add_argument("--json", action="store_true", help="print the status as a JSON object")
    parser.set_defaults(run=_run_status)


def _add_repair(whats: Subparsers) -> None:
    parser = whats.add_parser(
        "repair",
        help="send the servers the changes of the journal that they lack",
        description="Sends each server the changes of the journal that it lacks, in order. A "
        "change that no server has made is made at both. Repeat the same command after a failure.",
    )
    _add_connection(parser, journal=True)
    parser.set_defaults(run=_run_repair)
    parser = whats.add_parser(
        "drop-last",
        help="forget the newest change of the journal, which no server has made",
        description="Removes the newest change from the journal, if no server has made it.",
    )
    _add_connection(parser, journal=True)
    parser.set_defaults(run=_run_drop)
    parser = whats.add_parser(
        "compact",
        help="remove old changes from the journal",
        description="Removes all changes but the last ones from the journal, after a check that "
        "both servers have them. A server that restarts from an older file cannot be repaired.",
    )
    _add_connection(parser, journal=True)
    parser.add_argument(
        "--keep", type=int, default=1000, help="changes that remain (default: %(default)s)"
    )
    parser.set_defaults(run=_run_compact)


@contextlib.contextmanager
def _opened(arguments: argparse.Namespace, *, tokens: bool = True) -> Iterator["TableAdmin"]:
    """Opens the table; an error's message then includes its notes, which say how to go on."""
    from ..service import TableAdmin  # noqa: PLC0415 - needed only when the command runs

    try:
        with TableAdmin(
            arguments.servers,
            arguments.table,
            _tokens(arguments.token_file) if tokens else None,
            timeout=arguments.timeout,
            retries=arguments.retries,
            tls=trust(arguments.ca_cert),
            journal=arguments.journal,
        ) as admin:
            yield admin
    except NescioError as error:
        notes = getattr(error, "__notes__", [])
        if not notes:
            raise
        raise NescioError("; ".join([str(error), *notes])) from error


def _tokens(files: Sequence[Path]) -> list[str]:
    """Reads both tokens from files or the environment, which other users cannot list."""
    if files:
        if len(files) != len(_VARIABLES):
            raise ArgumentError(
                f"--token-file: found it {len(files)} time(s), expected it twice, in the order of "
                "--servers"
            )
        return [_token(path) for path in files]
    missing = [name for name in _VARIABLES if not os.environ.get(name)]
    if missing:
        raise ArgumentError(
            f"found no --token-file and no token in {' and '.join(missing)}, expected the admin "
            "tokens of both servers, in the order of --servers"
        )
    return [os.environ[name] for name in _VARIABLES]


def _token(path: Path) -> str:
    check_file(path, "the file of an admin token")
    try:
        return path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"the admin token cannot be read from {path}: {error}") from error


def _run_change(arguments: argparse.Namespace) -> int:
    names = row_names(arguments.indices, arguments.keys)
    values: dict[str, Any] = {"version": arguments.version}
    if arguments.operation in _ROWS:
        values["rows"] = load_array(arguments.rows)
    with _opened(arguments) as admin:
        params = getattr(admin, arguments.operation)(names, **values)
    print(f"both servers have {params.describe()}")
    return 0


def _run_append(arguments: argparse.Namespace) -> int:
    rows = load_array(arguments.rows)
    with _opened(arguments) as admin:
        for index in admin.append(rows, version=arguments.version).tolist():
            print(index)
    return 0


def _run_clear(arguments: argparse.Namespace) -> int:
    names = row_names(arguments.indices, None)
    with _opened(arguments) as admin:
        params = admin.clear(names, version=arguments.version)
    print(f"both servers have {params.describe()}")
    return 0


def _run_grow(arguments: argparse.Namespace) -> int:
    with _opened(arguments) as admin:
        params = admin.grow(arguments.count, version=arguments.version)
    print(f"both servers have {params.describe()}")
    return 0


def _run_repair(arguments: argparse.Namespace) -> int:
    with _opened(arguments) as admin:
        made = admin.repair()
    for url, count in made.items():
        print(f"{url} got {count} change(s)" if count else f"{url} lacked nothing")
    return 0


def _run_drop(arguments: argparse.Namespace) -> int:
    with _opened(arguments) as admin:
        version = admin.drop_last()
    print(f"dropped the change to version {version!r}, which no server has made")
    return 0


def _run_compact(arguments: argparse.Namespace) -> int:
    with _opened(arguments) as admin:
        removed = admin.compact(arguments.keep)
    print(f"removed {removed} change(s) from {arguments.journal}")
    return 0


def _run_status(arguments: argparse.Namespace) -> int:
    with _opened(arguments, tokens=False) as admin:
        status = admin.status()
    print(json.dumps(status.to_dict(), indent=2) if arguments.json else _shown(status))
    return 0 if status.agree else 1


def _shown(status: "TableStatus") -> str:
    """Formats a status as a table of both parties, and the advice."""
    head = ["party", "version", "id", "rows", "changed", "kept", "ready", "behind", "server"]
    lines = [head, *(_line(party) for party in status.parties)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    text += [party.problem for party in status.parties if party.problem is not None]
    agreement = "both servers agree" if status.agree else f"state: {status.state}"
    text.append(f"{agreement}; {status.advice}" if status.advice else agreement)
    return "\n".join(text)


def _line(party: "PartyStatus") -> list[str]:
    fields = [
        party.party,
        party.version,
        None if party.id is None else party.id[:12],
        party.rows,
        party.changed,
        ",".join(party.kept) or None,
        "yes" if party.ready else "no",
        party.behind,
        party.url,
    ]
    return ["-" if field is None else str(field) for field in fields]
