"""What clients say to the service and make of its answers, without any I/O.

An Attempt decides, from what came back or failed to, whether a request is done, worth another try,
or refused for good.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import httpx
import numpy as np

from .._arrays import Array, as_indices
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
from ..pir._wire import HEADER_BYTES

MAX_TEXT_BYTES = 64 << 10
LEAST_TOKEN_LENGTH = 16
_MAX_SHOWN = 300
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: the status, the whole body, and the headers."""

    status: int
    body: bytes
    headers: httpx.Headers


def pause(tries: int) -> float:
    """Seconds to wait after so many tries, spread so that clients do not return at once."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tries)
    return random.uniform(longest / 2, longest)  # noqa: S311 - hides nothing


@dataclass
class Attempt:
    """One request to one server, with the tries it has left.

    Repeating a query is safe: the same server gets the same key, which tells it nothing new.
    """

    url: str
    retries: int
    tries: int = field(default=0, init=False)

    def timed_out(self) -> float:
        """Seconds to pause before the next try. Raises ServerTimeoutError if none is left."""
        return self._pause(
            ServerTimeoutError(f"{self.url} did not answer in time", url=self.url), None
        )

    def failed(self, error: Exception) -> float:
        """Seconds to pause before the next try. Raises ServiceError if none is left."""
        if isinstance(error, httpx.TimeoutException):
            return self.timed_out()
        reason = printable(str(error)) or type(error).__name__
        final = ServerUnreachableError(
            f"{self.url} cannot be reached: {reason}; is the server running?", url=self.url
        )
        if not isinstance(error, httpx.TransportError):
            raise final from error
        return self._pause(final, error)

    def answered(self, reply: Reply) -> float | None:
        """None if the reply is good, else seconds to pause.

        Raises MismatchError if the server's table is another one, else ServerRefusedError.
        """
        if 200 <= reply.status < 300:
            return None
        error = _read_error(reply)
        message = f"{self.url} refused with status {reply.status} ({error.code}): {error.message}"
        if reply.status == 409 and error.code == "mismatch":
            raise MismatchError(message, found=error.found, expected=error.expected)
        refused = ServerRefusedError(message, url=self.url, status=reply.status, code=error.code)
        if reply.status not in _TRY_AGAIN:
            raise refused
        return self._pause(refused, None)

    def _pause(self, final: ServiceError, cause: Exception | None) -> float:
        self.tries += 1
        if self.tries > self.retries:
            raise final from cause
        return pause(self.tries)


@dataclass(frozen=True, slots=True)
class _ServerError:
    code: str
    message: str
    found: str = ""
    expected: str = ""


def _read_error(reply: Reply) -> _ServerError:
    """What a JSON error says; of anything else, its first words."""
    try:
        fields = json.loads(reply.body)["error"]
        names = ("code", "message", "found", "expected")
        return _ServerError(*(printable(str(fields.get(name, ""))) for name in names))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _ServerError("http_error", printable(reply.body.decode(errors="replace")))


def printable(text: str) -> str:
    """A stranger's text for a message of ours: short, and without control characters."""
    clean = "".join(c if c.isprintable() else " " for c in text[: 2 * _MAX_SHOWN])
    clean = " ".join(clean.split())
    return clean if len(clean) <= _MAX_SHOWN else clean[: _MAX_SHOWN - 3] + "..."


@dataclass(frozen=True, slots=True)
class Description:
    """What a server says of its table."""

    url: str
    party: int
    params: TableParams
    max_keys: int

    @classmethod
    def parse(cls, url: str, body: bytes) -> "Description":
        """Reads `GET /v1/tables/{name}`. Raises MalformedMessageError."""
        try:
            fields = json.loads(body)
            party, max_keys = fields["party"], fields["limits"]["max_keys"]
            params, id_ = TableParams.from_dict(fields["params"]), fields["id"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            reason = printable(repr(error))
            raise MalformedMessageError(f"{url} does not describe a table: {reason}") from error
        if party not in (0, 1) or not isinstance(max_keys, int) or max_keys < 1:
            raise MalformedMessageError(
                f"{url} describes party {printable(repr(party))} with "
                f"{printable(repr(max_keys))} keys a request: expected party 0 or 1 and a key"
            )
        if id_ != params.id.hex():
            raise MalformedMessageError(
                f"{url} describes a table by the id {printable(repr(id_))}: expected "
                f"{params.id.hex()}; one of the two computes ids wrongly"
            )
        return cls(url, party, params, max_keys)


class TablesDifferError(MismatchError):
    """What two servers hold or answer differs and their versions do not: waiting will not help."""


class Lookup:
    """The two servers of one table, agreed on what they serve: makes queries, reads answers.

    `urls[p]` is where party p's answers come from.
    """

    def __init__(
        self, descriptions: Sequence[Description], *, insecure_generator: bool = False
    ) -> None:
        first, second = sorted(descriptions, key=lambda d: d.party)
        if first.party == second.party:
            raise ArgumentError(
                f"{first.url} and {second.url} both say they are party {first.party}: "
                "name one server of each party, run by different people"
            )
        if first.params != second.params:
            for_good = first.params.version == second.params.version
            raise (TablesDifferError if for_good else MismatchError)(
                f"the servers hold different tables: {first.url} has {first.params.describe()}, "
                f"{second.url} has {second.params.describe()}",
                found=second.params.describe(),
                expected=first.params.describe(),
            )
        self.client = Client(first.params, insecure_generator=insecure_generator)
        self.urls = (f"{first.url}/answer", f"{second.url}/answer")
        self.max_keys = min(first.max_keys, second.max_keys)

    def queries(self, indices: object) -> Iterator[Query]:
        """Queries of at most `max_keys` rows each for indices of any shape, one after the other."""
        rows = as_indices(indices, self.client.params.rows, "an index").reshape(-1)
        for first in range(0, rows.size, self.max_keys):
            yield self.client.query(rows[first : first + self.max_keys])

    def most_answer_bytes(self, query: Query) -> int:
        """The length of an answer to a query: more than that is not read."""
        return HEADER_BYTES + query.count * self.client.params.answer_bytes

    def assemble(self, indices: object, parts: Sequence[Array]) -> Array:
        """The parts' rows as one array: what `table[indices]` would be."""
        params = self.client.params
        shape = as_indices(indices, params.rows, "an index").shape
        rows = np.empty((sum(map(len, parts)), *params.row_shape), params.dtype)
        np.concatenate([rows[:0], *parts], out=rows)
        return rows.reshape((*shape, *params.row_shape))


def table_url(server: str, table: str) -> str:
    """The address of a table on a server. Raises ArgumentError for what is no address."""
    try:
        url = httpx.URL(server)
        plain = url.scheme in ("http", "https") and url.host and not set("?#@") & set(server)
        plain = plain and (url.port is None or 0 < url.port < 1 << 16)
    except (httpx.InvalidURL, ValueError, TypeError):  # UnicodeError is a ValueError
        plain = False
    if not plain:
        shown = re.sub("//.*@", "//...@", repr(server))  # a password is nobody's to print
        raise ArgumentError(f"a server is named like https://example.org:8080, not {shown}")
    try:
        return str(httpx.URL(f"{server.rstrip('/')}/v1/tables/{quote(table, safe='')}"))
    except (httpx.InvalidURL, ValueError) as error:  # UnicodeError is one
        raise ArgumentError(f"there can be no table {table!r}") from error


def check_token(token: str) -> None:
    """Raises ArgumentError for an operator's token that is short or that no request can carry."""
    if not (token.isascii() and token.isprintable()) or len(token) < LEAST_TOKEN_LENGTH:
        raise ArgumentError(
            f"an admin token has at least {LEAST_TOKEN_LENGTH} printable ASCII characters"
        )


def check_servers(servers: Sequence[str]) -> None:
    """Raises ArgumentError unless there are two different servers."""
    if len(servers) != 2 or len({s.rstrip("/") for s in servers}) != 2:
        raise ArgumentError(
            f"a lookup needs two different servers, each run by another party: found {servers}"
        )
