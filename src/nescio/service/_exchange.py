"""The client side of the HTTP protocol, without I/O: descriptions, versions, queries, addresses."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

import httpx
import numpy as np

from .._arrays import Array, shown
from ..errors import ArgumentError, MalformedMessageError, MismatchError
from ..pir import Client, Query, TableParams
from ..pir._rows import RowKind
from ..pir._wire import HEADER_BYTES
from ._client._attempt import printable

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
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            reason = printable(repr(error))
            raise MalformedMessageError(f"{url} does not describe a table: {reason}") from error
        _check_number(f"{url}: the party of this server", party, 0, 1)
        _check_number(f"{url}: the maximum keys per request", max_keys, 1, _MAX_KEYS)
        if id_ != params.id.hex():
            raise MalformedMessageError(
                f"{url} describes a table with the id {printable(repr(id_))}: expected "
                f"{params.id.hex()}; the server or this client computes ids wrongly"
            )
        for name, text in zip(names, texts, strict=True):
            if not (text is None or isinstance(text, str)):
                raise MalformedMessageError(
                    f"{url}: {name}: found {printable(shown(text))}, expected text or null"
                )
        last, changed, following = texts
        return cls(url, party, params, kind, max_keys, last, changed, following, versions)

    def at(self, params: TableParams, path: str) -> str:
        """Returns the URL of what belongs to a version, which the server may have only kept."""
        kept = "" if params.id == self.params.id else f"?version={params.id.hex()}"
        return f"{self.url}/{path}{kept}"


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
            f"{what}: found {printable(shown(value))}, expected {minimum} to {maximum}"
        )


class TablesDifferError(MismatchError):
    """The servers' tables or answers differ under one version: retrying does not help."""


class Agreed(NamedTuple):
    """A version that both parties answer, and their servers that do, party 0's first."""

    params: TableParams
    servers: tuple[Description, Description]


def agree(
    descriptions: Sequence[Description], accepts: Callable[[TableParams], bool] = lambda _: True
) -> Agreed:
    """Finds the newest version that both parties answer, of those that the client accepts.

    Newest is what party 0 lists first. Without a version that the client accepts, it is the newest
    of all. Raises ArgumentError for two servers of one party; MismatchError if no version is common
    to both, and its subclass TablesDifferError for different tables of one version.
    """
    first, second = sorted(descriptions, key=lambda d: d.party)
    if first.party == second.party:
        raise ArgumentError(
            f"{first.url} and {second.url} are both party {first.party}: "
            "name one server of each party, run by different people"
        )
    common = [params for params in first.versions if params in second.versions]
    if not common:
        permanent = first.params.version == second.params.version
        raise (TablesDifferError if permanent else MismatchError)(
            f"the servers hold different tables: {first.url} has {first.params.describe()}, "
            f"{second.url} has {second.params.describe()}",
            found=second.params.describe(),
            expected=first.params.describe(),
        )
    return Agreed(next(filter(accepts, common), common[0]), (first, second))


class Lookup:
    """Two servers with the same table: makes queries and decodes answers.

    `urls[p]` is the endpoint of party p's answers.
    """

    def __init__(self, servers: tuple[Description, Description], client: Client) -> None:
        first, second = servers
        self.client = client
        self.urls = (f"{first.url}/answer", f"{second.url}/answer")
        self.max_keys = min(first.max_keys, second.max_keys)

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
    if len(servers) != 2 or len({s.rstrip("/") for s in servers}) != 2:
        raise ArgumentError(
            f"servers: found {servers}, expected two different servers, one of each party"
        )
