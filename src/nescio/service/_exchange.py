"""The client side of the HTTP protocol, without I/O.

An Attempt decides from a reply, an error or a timeout if a request is done, is retried, or has
failed.
"""

import json
import random
import re
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import httpx
import numpy as np

from .._arrays import Array, shown
from ..errors import (
    ArgumentError,
    MalformedMessageError,
    MismatchError,
    ServerRefusedError,
    ServerTimeoutError,
    ServerUnreachableError,
    ServiceError,
)
from ..pir import Client, Query, TableParams
from ..pir._rows import RowKind
from ..pir._wire import HEADER_BYTES

MAX_TEXT_BYTES = 64 << 10
MIN_TOKEN_LENGTH = 16
_MAX_SHOWN = 300
_MAX_KEYS = 1 << 62
_FIRST_PAUSE = 0.1
_MAX_PAUSE = 2.0
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply: the status, the whole body, and the headers."""

    status: int
    body: bytes
    headers: httpx.Headers


def pause(tries: int) -> float:
    """Returns the seconds to wait after some tries; randomized so that clients spread out."""
    longest = min(_MAX_PAUSE, _FIRST_PAUSE * 2**tries)
    return random.uniform(longest / 2, longest)  # noqa: S311 - hides nothing


@dataclass
class Attempt:
    """One request to one server, and its remaining tries.

    Repeating a query is safe: the same server gets the same key, and learns nothing new.
    """

    url: str
    retries: int
    tries: int = field(default=0, init=False)

    def timed_out(self) -> float:
        """Returns the seconds before the next try. Raises ServerTimeoutError after the last one."""
        return self._pause(
            ServerTimeoutError(f"{self.url} did not answer in time", url=self.url), None
        )

    def failed(self, error: Exception) -> float:
        """Returns the seconds before the next try. Raises ServiceError after the last one."""
        if isinstance(error, httpx.TimeoutException):
            return self.timed_out()
        reason = printable(str(error)) or type(error).__name__
        tls = _tls_error(error)
        if tls is not None:
            found = _describe_tls(tls) or f"TLS failed: {reason}"
            raise ServerUnreachableError(f"{self.url}: {found}", url=self.url) from error
        found = f"cannot be reached: {reason}; is the server running?"
        if isinstance(error, httpx.RemoteProtocolError):
            found = (
                f"did not reply with HTTP: {reason}; is it a server of Nescio, and is it https://?"
            )
        final = ServerUnreachableError(f"{self.url} {found}", url=self.url)
        if not isinstance(error, httpx.TransportError):
            raise final from error
        return self._pause(final, error)

    def answered(self, reply: Reply) -> float | None:
        """Returns None if the reply is a success, else the seconds before the next try.

        Raises MismatchError if the server has another table, ServerRefusedError for any other
        refusal after the last try.
        """
        if 200 <= reply.status < 300:
            return None
        error = _read_error(reply)
        message = f"{self.url} refused with status {reply.status} ({error.code}): {error.message}"
        if reply.status == 409 and error.code == "mismatch":
            raise MismatchError(message, found=error.found, expected=error.expected)
        refused = ServerRefusedError(message, url=self.url, status=reply.status, code=error.code)
        if reply.status not in _RETRIED:
            raise refused
        return self._pause(refused, None)

    def _pause(self, final: ServiceError, cause: Exception | None) -> float:
        self.tries += 1
        if self.tries > self.retries:
            raise final from cause
        return pause(self.tries)


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """Finds the error of TLS among the causes of an error, except for a connection that ended."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return None if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) else error
        error = error.__cause__ or error.__context__
    return None


def _describe_tls(error: ssl.SSLError) -> str | None:
    """Describes the errors of TLS that a user can mend; None for any other."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted: {printable(error.verify_message)}; expected one for "
            "this host from a trusted authority (--ca-cert, or `tls`, names another authority)"
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        return "found a server without TLS, expected TLS; check the port, or use http://"
    return None


@dataclass(frozen=True, slots=True)
class _ServerError:
    code: str
    message: str
    found: str = ""
    expected: str = ""


def _read_error(reply: Reply) -> _ServerError:
    """Parses a JSON error; takes any other body as the message."""
    try:
        fields = json.loads(reply.body)["error"]
        names = ("code", "message", "found", "expected")
        return _ServerError(*(printable(str(fields.get(name, ""))) for name in names))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _ServerError("http_error", printable(reply.body.decode(errors="replace")))


def printable(text: str) -> str:
    """Makes untrusted text safe for a message: short, and without control characters."""
    clean = "".join(c if c.isprintable() else " " for c in text[: 2 * _MAX_SHOWN])
    clean = " ".join(clean.split())
    return clean if len(clean) <= _MAX_SHOWN else clean[: _MAX_SHOWN - 3] + "..."


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
        return cls(url, party, params, kind, max_keys, *texts)


def _check_number(what: str, value: object, minimum: int, maximum: int) -> None:
    """Raises MalformedMessageError unless a value from JSON is an integer in a range."""
    if type(value) is not int or not minimum <= value <= maximum:  # True is not a number in JSON
        raise MalformedMessageError(
            f"{what}: found {printable(shown(value))}, expected {minimum} to {maximum}"
        )


class TablesDifferError(MismatchError):
    """The servers' tables or answers differ under one version: retrying does not help."""


def agree(descriptions: Sequence[Description]) -> tuple[Description, Description]:
    """Returns both parties' descriptions of one table, party 0 first.

    Raises ArgumentError for two servers of one party; MismatchError for different tables, and its
    subclass TablesDifferError for different tables of one version.
    """
    first, second = sorted(descriptions, key=lambda d: d.party)
    if first.party == second.party:
        raise ArgumentError(
            f"{first.url} and {second.url} are both party {first.party}: "
            "name one server of each party, run by different people"
        )
    if first.params != second.params:
        permanent = first.params.version == second.params.version
        raise (TablesDifferError if permanent else MismatchError)(
            f"the servers hold different tables: {first.url} has {first.params.describe()}, "
            f"{second.url} has {second.params.describe()}",
            found=second.params.describe(),
            expected=first.params.describe(),
        )
    return first, second


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
