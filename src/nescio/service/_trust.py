"""The digest that a client trusts, and the hashes below it that rows are checked against."""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from .._arrays import ByteArray, shown
from ..errors import ArgumentError, FileError, MalformedMessageError, MismatchError
from ..pir import TableParams
from ..pir._params import MAX_LAYOUT_BYTES, layout_digest
from ..pir._tops import max_message_bytes, parse_tops
from ._client._attempt import ASK_OPERATOR
from ._client._race import first_good
from ._exchange import Description, TablesDifferError
from ._http import Http

_MAX_FILE_BYTES = 16 << 20
_DIGEST = re.compile("[0-9a-f]{64}")


class Trust:
    """The digest that the table must have: given, or that of the first connection, kept in a file.

    Without either, a client trusts the digest of any parameters that both servers agree on, which
    is right if one of them is honest. `digest` has 64 hexadecimal digits. `known_tables` is a text
    file, made if it does not exist: a line for each table has its digest, its name and the servers.
    """

    def __init__(
        self, digest: str | None, known_tables: Path | None, servers: Sequence[str], table: str
    ) -> None:
        digest = None if digest is None else digest.lower()
        if digest is not None and not _DIGEST.fullmatch(digest):
            raise ArgumentError(f"digest: found {shown(digest)}, expected 64 hexadecimal digits")
        self._digest = digest
        self._file = known_tables
        self._name = " ".join([table, *sorted(server.rstrip("/") for server in servers)])

    def accepts(self, params: TableParams) -> bool:
        """Tests a version, of several that the servers have, without keeping its digest."""
        known = None if self._file is None else _read(self._file).get(self._name)
        return all(digest in (None, params.digest) for digest in (self._digest, known))

    def check(self, params: TableParams) -> None:
        """Raises TablesDifferError for another digest, FileError for a file that is not valid."""
        if self._digest is not None and params.digest != self._digest:
            raise _another(params, self._digest, "was given")
        if self._file is None:
            return
        expected = _read(self._file).get(self._name)
        if expected is None:
            _append(self._file, f"{params.digest} {self._name}\n")
        elif expected != params.digest:
            raise _another(params, expected, f"is in {self._file}: delete its line there to accept")


def check_verify(verify: object, digest: object, known_tables: object) -> None:
    """Raises ArgumentError for a `verify` that is not a bool, or that makes a digest useless."""
    if not isinstance(verify, bool):
        raise ArgumentError(
            f"verify: found {shown(verify)}, expected True or False (rows are checked, or not); "
            "certificates are the argument tls"
        )
    if not verify and not (digest is None and known_tables is None):
        raise ArgumentError(
            "digest, known_tables: found verify=False, expected True: unchecked rows may be those "
            "of any table"
        )


async def fetch_tops(
    http: Http,
    servers: Sequence[Description],
    params: TableParams,
    known: tuple[bytes, ByteArray] | None,
) -> ByteArray:
    """Fetches the tops of a version from either server, and checks them against the digest.

    `known` has the id and the tops of an earlier version, of which a difference is enough. If a
    server fails or is slow, or its tops do not fit, the next one is asked: one that fits is enough.
    Raises the last error if none does: MismatchError, MalformedMessageError or ServiceError.
    """

    async def ask(
        server: Description,
        old: tuple[bytes, ByteArray] | None,
        on_failure: Callable[[object], None],
    ) -> ByteArray:
        url = server.at(params, "tops")
        if old is not None:
            url += f"?since={old[0].hex()}"
        body = await http.get(url, max_message_bytes(params), on_failure=on_failure)
        return _parse_tops(url, params, body, None if old is None else old[1])

    ways = [functools.partial(ask, server, None) for server in _mixed(servers)]
    current = servers[0].params.id == params.id
    if current and known is not None:
        ways = [functools.partial(ask, servers[0], known), *ways[1:], ways[0]]
    return await first_good(ways)


def _mixed(servers: Sequence[Description]) -> list[Description]:
    """Returns the servers so that the second one is of another party than the first."""
    others = [server for server in servers if server.party != servers[0].party]
    rest = [server for server in servers[1:] if server not in others[:1]]
    return [servers[0], *others[:1], *rest]


def _parse_tops(url: str, params: TableParams, body: bytes, old: ByteArray | None) -> ByteArray:
    """Parses tops. The errors of `parse_tops` name the server, and say what to do."""
    try:
        return parse_tops(params, body, old)
    except MalformedMessageError as error:
        raise MalformedMessageError(f"{url}: {error}; {ASK_OPERATOR}") from error
    except MismatchError as error:
        raise MismatchError(
            f"{url}: {error}", found=error.found, expected=error.expected
        ) from error


async def fetch_layout(http: Http, servers: Sequence[Description], params: TableParams) -> bytes:
    """Fetches the layout of a table from either server, and checks it against the parameters.

    If a server fails or is slow, the other one is asked too. Raises the last error if neither has
    the layout: MismatchError, MalformedMessageError or ServiceError.
    """

    async def ask(server: Description, on_failure: Callable[[object], None]) -> bytes:
        url = server.at(params, "layout")
        layout = await http.get(url, MAX_LAYOUT_BYTES, on_failure=on_failure)
        found = layout_digest(layout)
        if found == params.layout:
            return layout
        raise MismatchError(
            f"{server.url} has a layout of another table or version: its hash is {found[:12]}, "
            f"expected {params.layout[:12]}; {ASK_OPERATOR}",
            found=found,
            expected=params.layout,
        )

    return await first_good([functools.partial(ask, server) for server in _mixed(servers)])


def _another(params: TableParams, expected: str, source: str) -> TablesDifferError:
    return TablesDifferError(
        f"the table has the digest {params.digest} (version {params.version!r}), expected "
        f"{expected}, which {source}: the operators have changed the table, or another one is "
        "served under its name; ask them which",
        found=params.digest,
        expected=expected,
    )


def _read(path: Path) -> dict[str, str]:
    """Reads a file of digests by name; one that does not exist is empty. The first line counts."""
    known: dict[str, str] = {}
    try:
        if not path.exists():
            return known
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ValueError
        for line in path.read_text("utf-8").splitlines():
            digest, _, name = line.partition(" ")
            if not _DIGEST.fullmatch(digest) or not name:
                raise ValueError
            known.setdefault(name, digest)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise FileError(
            f"{path} is not a file of known tables, expected lines of a digest and a name; name "
            "another file"
        ) from error
    return known


def _append(path: Path, line: str) -> None:
    """Adds a line in one write, so that processes do not overwrite each other's."""
    try:
        with path.open("ab", buffering=0) as file:
            file.write(line.encode())
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error
