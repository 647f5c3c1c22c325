"""What clients say to the service and make of its answers, without any I/O.

An Attempt decides, from what came back or failed to, whether a request is done, worth another try,
or refused for good. The sync and the async client differ only in how they send.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

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

OCTETS = "application/octet-stream"
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


@dataclass
class Attempt:
    """One request to one server, with the tries it has left.

    Repeating a query is safe: the same server gets the same key, which tells it nothing new.
    """

    url: str
    retries: int
    tries: int = field(default=0, init=False)

    def failed(self, error: httpx.HTTPError | httpx.InvalidURL) -> float:
        """Seconds to pause before the next try. Raises ServiceError if none is left."""
        if isinstance(error, httpx.TimeoutException):
            return self._pause(
                ServerTimeoutError(f"{self.url} did not answer in time", url=self.url), error
            )
        if not isinstance(error, httpx.TransportError):
            raise ServerUnreachableError(f"{self.url}: {error}", url=self.url) from error
        reason = str(error) or type(error).__name__
        return self._pause(
            ServerUnreachableError(
                f"{self.url} cannot be reached: {reason}; is the server running?", url=self.url
            ),
            error,
        )

    def answered(self, response: httpx.Response) -> float | None:
        """None if the response is good, else seconds to pause. Raises ServerRefusedError."""
        if response.is_success:
            return None
        code, message = _read_error(response)
        refused = ServerRefusedError(
            f"{self.url} refused with status {response.status_code} ({code}): {message}",
            url=self.url,
            status=response.status_code,
            code=code,
        )
        if response.status_code not in _TRY_AGAIN:
            raise refused
        return self._pause(refused, None)

    def _pause(self, final: ServiceError, cause: Exception | None) -> float:
        self.tries += 1
        if self.tries > self.retries:
            raise final from cause
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self.tries)
        return random.uniform(longest / 2, longest)  # noqa: S311 - spreads retries, hides nothing


def _read_error(response: httpx.Response) -> tuple[str, str]:
    """The code and message of a JSON error; of anything else, its first words."""
    try:
        error = json.loads(response.content)["error"]
        return str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "http_error", response.text[:200]


@dataclass(frozen=True, slots=True)
class Description:
    """What a server says of its table."""

    url: str
    party: int
    params: TableParams
    max_keys: int

    @classmethod
    def parse(cls, url: str, response: httpx.Response) -> "Description":
        """Reads `GET /v1/tables/{name}`. Raises MalformedMessageError."""
        try:
            fields = json.loads(response.content)
            party, max_keys = fields["party"], fields["limits"]["max_keys"]
            params = TableParams.from_dict(fields["params"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise MalformedMessageError(f"{url} does not describe a table: {error!r}") from error
        if party not in (0, 1) or not isinstance(max_keys, int) or max_keys < 1:
            raise MalformedMessageError(
                f"{url} describes party {party!r} with {max_keys!r} keys a request: "
                "expected party 0 or 1 and at least one key"
            )
        return cls(url, party, params, max_keys)


class Lookup:
    """The two servers of one table, agreed on what they serve: makes queries, reads answers.

    `urls[p]` is where party p's answers come from.
    """

    def __init__(self, descriptions: Sequence[Description]) -> None:
        first, second = sorted(descriptions, key=lambda d: d.party)
        if first.party == second.party:
            raise MismatchError(
                f"{first.url} and {second.url} both say they are party {first.party}: "
                "name one server of each party, run by different people",
                found=f"parties {first.party} and {second.party}",
                expected="parties 0 and 1",
            )
        if first.params != second.params:
            raise MismatchError(
                f"the servers hold different tables: {first.url} has {first.params.describe()}, "
                f"{second.url} has {second.params.describe()}",
                found=second.params.describe(),
                expected=first.params.describe(),
            )
        self.client = Client(first.params)
        self.urls = (f"{first.url}/answer", f"{second.url}/answer")
        self.max_keys = min(first.max_keys, second.max_keys)

    def queries(self, indices: object) -> Iterator[Query]:
        """Queries of at most `max_keys` rows each for a flat array of indices."""
        rows = as_indices(indices, self.client.params.rows, "an index").reshape(-1)
        for first in range(0, rows.size, self.max_keys):
            yield self.client.query(rows[first : first + self.max_keys])

    def assemble(self, indices: object, parts: Sequence[Array]) -> Array:
        """The parts' rows as one array: what `table[indices]` would be."""
        params = self.client.params
        shape = as_indices(indices, params.rows, "an index").shape
        empty = np.zeros((0, *params.row_shape), params.dtype)
        return np.concatenate([empty, *parts]).reshape((*shape, *params.row_shape))


def table_url(server: str, table: str) -> str:
    """The address of a table on a server. Raises ArgumentError for what is no address."""
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ArgumentError(f"a server is named like https://example.org:8080, not {server!r}")
    return f"{server.rstrip('/')}/v1/tables/{quote(table, safe='')}"


def check_servers(servers: Sequence[str]) -> None:
    """Raises ArgumentError unless there are two different servers."""
    if len(servers) != 2 or len({s.rstrip("/") for s in servers}) != 2:
        raise ArgumentError(
            f"a lookup needs two different servers, each run by another party: found {servers}"
        )
