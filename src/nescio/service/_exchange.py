"""The client side of the HTTP protocol, without I/O: descriptions, versions, queries, addresses."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import quote

import httpx
import numpy as np

from .._arrays import Array, shown
from ..errors import ArgumentError, MalformedMessageError, MismatchError
from ..pir import Client, Query, TableParams
from ..pir._rows import RowKind
from ..pir._wire import HEADER_BYTES
from ._client._attempt import ASK_OPERATOR, printable

MAX_TEXT_BYTES = 1 << 20  # a description of 8 versions in thousands of bins
MIN_TOKEN_LENGTH = 16
_MAX_KEYS = 1 << 62
_MAX_VERSIONS = 8


@dataclass(frozen=True, slots=True)
class Description:
    """A server's description of its table."""

    url: str
    party: int
    params: TableParams
    changes: RowKind
    """The rows of changes: those of a batch table are not the rows in its bins."""
    max_keys: int
    last_change: str | None = None
    """A hash of the last change, which TableAdmin recognizes; see docs/wire-format.md."""
    changed_id: str | None = None
    """The id of the table before the last change."""
    next_version: str | None = None
    """A version that the table has not had, for the next change."""
    versions: tuple[TableParams, ...] = ()
    """The versions that the server answers, newest first: the current one, and those it kept."""

    @classmethod
    def parse(cls, url: str, body: bytes) -> "Description":
        """Parses the reply to `GET /v1/tables/{name}`. Raises MalformedMessageError."""
        try:
            fields = json.loads(body)
            party, max_keys = fields["party"], fields["limits"]["max_keys"]
            params, id_ = TableParams.from_dict(fields["params"]), fields["id"]
            names = "last_change", "changed_id", "next_version"
            texts = [fields.get(name) for name in names]
            kind = RowKind.from_dict(params, fields.get("changes", RowKind.of(params).to_dict()))
            versions = _versions(params, fields.get("versions", []))
        except (ValueError, KeyError, TypeError, RecursionError, MalformedMessageError) as error:
            own = isinstance(error, MalformedMessageError)
            reason = printable(str(error) if own else repr(error))
            raise MalformedMessageError(
                f"{url} does not describe a table: {reason}; found {len(body)} bytes, expected a "
                f"JSON object of this release; {ASK_OPERATOR}"
            ) from error
        _check_number(f"{url}: the party of this server", party, 0, 1)
        _check_number(f"{url}: the maximum keys per request", max_keys, 1, _MAX_KEYS)
        if id_ != params.id.hex():
            raise MalformedMessageError(
                f"{url}: found a table with the id {printable(repr(id_))}, expected "
                f"{params.id.hex()}, the hash of its parameters; {ASK_OPERATOR}"
            )
        for name, text in zip(names, texts, strict=True):
            if not (text is None or isinstance(text, str)):
                raise MalformedMessageError(
                    f"{url}: {name}: found {printable(shown(text))}, expected text or null; "
                    f"{ASK_OPERATOR}"
                )
        last, changed, following = texts
        return cls(url, party, params, kind, max_keys, last, changed, following, versions)

    def at(self, params: TableParams, path: str) -> str:
        """Returns the URL of what belongs to a version, which the server may have only kept."""
        kept = "" if params.id == self.params.id else f"?version={params.id.hex()}"
        return f"{self.url}/{path}{kept}"

    def without(self, params: TableParams) -> "Description":
        """Returns the description without a version that the server has refused."""
        return replace(self, versions=tuple(one for one in self.versions if one != params))


def _versions(current: TableParams, fields: object) -> tuple[TableParams, ...]:
    """Parses the versions of a description; an older server names none but the current one."""
    if not isinstance(fields, list) or len(fields) > _MAX_VERSIONS:
        raise MalformedMessageError(
            f"versions: found {shown(fields)}, expected a list of at most {_MAX_VERSIONS}"
        )
    named = {params.id: params for params in map(TableParams.from_dict, fields)}
    return tuple({current.id: current, **named}.values())


def _check_number(what: str, value: object, minimum: int, maximum: int) -> None:
    """Raises MalformedMessageError unless a value from JSON is an integer in a range."""
    if type(value) is not int or not minimum <= value <= maximum:  # True is not a number in JSON
        raise MalformedMessageError(
            f"{what}: found {printable(shown(value))}, expected {minimum} to {maximum}; "
            f"{ASK_OPERATOR}"
        )


class TablesDifferError(MismatchError):
    """The servers' tables or answers differ under one version: retrying does not help."""


class Agreed(NamedTuple):
    """A version that both parties answer, and each party's servers that do, party 0's first."""

    params: TableParams
    servers: tuple[list[Description], list[Description]]


def agree(
    parties: Sequence[Sequence[Description]],
    accepts: Callable[[TableParams], bool] = lambda _: True,
) -> Agreed:
    """Finds the newest version that both parties answer, of those that the client accepts.

    `parties` has the servers that each party runs. Newest is what party 0 lists first. Without a
    version that the client accepts, it is the newest of all. Raises ArgumentError for servers of
    the wrong party; MismatchError if no version is common to both parties, and its subclass
    TablesDifferError for different tables of one version.
    """
    first, second = sorted(parties, key=lambda servers: servers[0].party)
    _check_parties(first, second)
    answered = {params.id for server in second for params in server.versions}
    common = [params for params in _newest_first(first) if params.id in answered]
    if not common:
        one, other = first[0], second[0]
        permanent = one.params.version == other.params.version
        raise (TablesDifferError if permanent else MismatchError)(
            f"the servers hold different tables: {one.url} has {one.params.describe()}, "
            f"{other.url} has {other.params.describe()}",
            found=other.params.describe(),
            expected=one.params.describe(),
        )
    params = next(filter(accepts, common), common[0])
    having = [[server for server in own if params in server.versions] for own in (first, second)]
    return Agreed(params, (having[0], having[1]))


def _check_parties(first: Sequence[Description], second: Sequence[Description]) -> None:
    """Raises ArgumentError unless each entry has servers of one party, and the two of both."""
    for servers in (first, second):
        for server in servers:
            if server.party != servers[0].party:
                raise ArgumentError(
                    f"servers: found {server.url}, which is party {server.party}, among those of "
                    f"party {servers[0].party} ({servers[0].url}); name it with those of its party"
                )
    if first[0].party == second[0].party:
        raise ArgumentError(
            f"{first[0].url} and {second[0].url} are both party {first[0].party}: "
            "name one server of each party, run by different people"
        )


def _newest_first(servers: Sequence[Description]) -> list[TableParams]:
    """Merges the versions of one party's servers, each of which lists its newest first."""
    lists = [list(server.versions) for server in servers]
    merged: list[TableParams] = []
    while any(lists):
        heads = [own[0] for own in lists if own]
        free = (head for head in heads if not any(head in own[1:] for own in lists))
        merged.append(next(free, heads[0]))
        lists = [[params for params in own if params != merged[-1]] for own in lists]
    return merged


class Lookup:
    """Two parties with the same table: makes queries and decodes answers."""

    def __init__(self, agreed: Agreed, client: Client) -> None:
        self.client = client
        self.agreed = agreed
        self.max_keys = min(server.max_keys for own in agreed.servers for server in own)

    def queries(self, indices: object) -> Iterator[Query]:
        """Yields queries of at most `max_keys` lookups each for indices of any shape."""
        params = self.client.params
        places = self.client.places(indices)
        flat = places.reshape(-1, *places.shape[places.ndim - params.is_cut :])
        for first in range(0, len(flat), self.max_keys):
            yield self.client.query(flat[first : first + self.max_keys])

    def max_answer_bytes(self, query: Query) -> int:
        """Returns the length of an answer to a query; the client reads no more than this."""
        return HEADER_BYTES + query.count * self.client.answer_bytes

    def assemble(self, indices: object, parts: Sequence[Array]) -> Array:
        """Joins the rows of all queries to one array, equal to `table[indices]`."""
        params = self.client.params
        shape = self.client.places(indices).shape
        slots = (params.slots,) if params.is_cut else ()
        rows = np.empty((sum(map(len, parts)), *slots, *params.row_shape), params.dtype)
        np.concatenate([rows[:0], *parts], out=rows)
        return rows.reshape((*shape, *params.row_shape))


def table_url(server: str, table: str) -> str:
    """Builds the URL of a table on a server. Raises ArgumentError for an invalid server or name."""
    try:
        url = httpx.URL(server)
        plain = url.scheme in ("http", "https") and url.host and not set("?#@") & set(server)
        plain = plain and (url.port is None or 0 < url.port < 1 << 16)
    except (httpx.InvalidURL, ValueError, TypeError):  # UnicodeError is a ValueError
        plain = False
    if not plain:
        shown = re.sub("//.*@", "//...@", repr(server))  # do not print a password
        raise ArgumentError(
            f"server: found {shown}, expected an address like https://example.org:8080"
        )
    try:
        return str(httpx.URL(f"{server.rstrip('/')}/v1/tables/{quote(table, safe='')}"))
    except (httpx.InvalidURL, ValueError) as error:  # UnicodeError is one
        raise ArgumentError(f"table: {table!r} is not a valid name") from error


def check_token(token: str) -> None:
    """Raises ArgumentError for an admin token that is too short or not printable ASCII."""
    if not (token.isascii() and token.isprintable()) or len(token) < MIN_TOKEN_LENGTH:
        raise ArgumentError(
            f"an admin token must have at least {MIN_TOKEN_LENGTH} printable ASCII characters"
        )


def check_servers(servers: Sequence[str]) -> None:
    """Raises ArgumentError unless there are two different servers."""
    replica_urls(servers)


def replica_urls(servers: Sequence[str | Sequence[str]]) -> list[list[str]]:
    """Returns the addresses of each party's servers, of which an entry has one or several.

    Raises ArgumentError unless there are two entries, and no address twice.
    """
    entries = [[one] if isinstance(one, str) else list(one) for one in servers]
    flat = [str(url).rstrip("/") for urls in entries for url in urls]
    if len(entries) != 2 or not all(entries) or len(set(flat)) != len(flat):
        raise ArgumentError(
            f"servers: found {servers}, expected two different servers, one of each party; or two "
            "lists of each party's replicas"
        )
    return entries
