"""The quotas of a server, and its refusals as HTTP errors."""

import math
from dataclasses import dataclass, fields

from .._arrays import shown
from ..errors import ArgumentError, MalformedKeyError, MessageError, MismatchError, VersionGoneError
from ..pir._params import TableParams
from ..pir._wire import HEADER_BYTES

_RETRY = (429, 503)
_MAX_RETRY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits on one request, and on all concurrent requests.

    For one request: `max_keys`, for each bin of a table in bins; `max_body_bytes` of a query;
    `max_answer_bytes` of an answer, which also limits the keys; `max_change_bytes` of a change to
    rows. For all requests of a table: `max_waiting_keys` that wait for an answer, of which one
    client may have `max_waiting_per_client` (0: a quarter), or one request, or as many as stay free
    for others. For all tables:
    `max_held_bytes` of queries and answers in memory. Seconds: `read_seconds` to receive a query,
    `change_seconds` to receive a change, `answer_seconds` to compute an answer, `write_seconds` to
    send it; `wrong_token_seconds` until a request with a wrong token is refused. `batch_window`:
    seconds that the first request of a batch waits for other requests.

    Raises ArgumentError for numbers that are out of range or contradict each other.
    """

    max_keys: int = 1024
    max_body_bytes: int = 4 << 20
    max_answer_bytes: int = 64 << 20
    max_change_bytes: int = 1 << 30
    max_waiting_keys: int = 16384
    max_waiting_per_client: int = 0
    max_held_bytes: int = 512 << 20
    read_seconds: float = 10.0
    change_seconds: float = 300.0
    answer_seconds: float = 30.0
    write_seconds: float = 60.0
    wrong_token_seconds: float = 1.0
    batch_window: float = 0.002

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = field.type is int
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                raise ArgumentError(f"{field.name}: found {shown(value)}, expected a number")
            zero = field.name in ("batch_window", "max_waiting_per_client")
            minimum = 0 if zero else 1 if whole else 1e-9
            maximum = 1 if field.name == "batch_window" else 1 << 62
            if not math.isfinite(value) or not minimum <= value <= maximum:
                raise ArgumentError(
                    f"{field.name}: found {shown(value)}, expected {minimum} to {maximum}"
                )
        if self.max_waiting_keys < self.max_keys or self.max_held_bytes < self.max_answer_bytes:
            raise ArgumentError(
                "max_waiting_keys and max_held_bytes must hold one request: found "
                f"{self.max_waiting_keys} and {self.max_held_bytes} for requests of up to "
                f"{self.max_keys} keys and answers of up to {self.max_answer_bytes} bytes"
            )
        if not self.max_waiting_per_client:
            object.__setattr__(self, "max_waiting_per_client", max(1, self.max_waiting_keys // 4))

    def keys(self, params: TableParams) -> int:
        """Returns the maximum lookups per request for a table under all quotas; 0 if none fits.

        Lookups are those of a client that checks them: each takes keys for every hash table too.
        `max_keys` limits the keys for a bin, which determine the server's work.
        """
        by_body = (self.max_body_bytes - HEADER_BYTES) // params.verified_key_bytes
        by_answer = (self.max_answer_bytes - HEADER_BYTES) // params.verified_answer_bytes
        return max(0, min(self.max_keys // params.bin_keys, by_body, by_answer))


class RefusedError(Exception):
    """A refused request: an HTTP status and a JSON error.

    `seconds` estimates when the request would be accepted; `retry_after` is the header's value,
    or None if waiting does not help.
    """

    def __init__(
        self, status: int, code: str, message: str, *, seconds: float = 0, **details: str
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.details = details
        self.retry_after: int | None = None
        if status in _RETRY:
            self.retry_after = max(1, min(_MAX_RETRY_SECONDS, math.ceil(seconds)))

    def to_dict(self) -> dict[str, object]:
        """Converts the error to the body of the response."""
        return {"error": {"code": self.code, "message": str(self), **self.details}}


def unknown_table(name: str, known: list[str]) -> RefusedError:
    """Makes a 404: the table does not exist."""
    return RefusedError(
        404, "unknown_table", f"there is no table {shown(name)} here; there are: {', '.join(known)}"
    )


def other_port() -> RefusedError:
    """Makes a 404: operators have a port of their own."""
    return RefusedError(
        404, "other_port", "this port takes no changes: operators use the port of --admin-port"
    )


def no_layout(name: str) -> RefusedError:
    """Makes a 404: the table has no layout."""
    return RefusedError(404, "no_layout", f"the table {shown(name)} has no layout")


def body_too_large(found: str, limit: int) -> RefusedError:
    """Makes a 413: the body is too long."""
    return RefusedError(
        413,
        "body_too_large",
        f"the body has {found} bytes, this server reads at most {limit}: ask for fewer rows",
        found=found,
        expected=f"at most {limit}",
    )


def too_many_keys(found: int, limit: int) -> RefusedError:
    """Makes a 422: the query has too many keys."""
    return RefusedError(
        422,
        "too_many_keys",
        f"the query has {found} keys, this server takes at most {limit} in one request",
        found=str(found),
        expected=f"at most {limit}",
    )


def head_too_large(limit: int) -> RefusedError:
    """Makes a 431: the head of the request, or what frames its body, is too long."""
    return RefusedError(
        431,
        "head_too_large",
        f"the request has more than {limit} bytes of head, chunk extensions and trailers: send "
        "fewer header fields, and larger chunks",
        expected=f"at most {limit}",
    )


def too_many_fields(limit: int) -> RefusedError:
    """Makes a 431: the request has too many header fields."""
    return RefusedError(
        431,
        "head_too_large",
        f"the request has more than {limit} header fields",
        expected=f"at most {limit}",
    )


def wrong_host(found: int) -> RefusedError:
    """Makes a 400: HTTP/1.1 requires exactly one field `Host`."""
    return RefusedError(
        400, "http_error", f"the request has {found} header fields 'Host', expected one"
    )


def malformed_head() -> RefusedError:
    """Makes a 400: the bytes are not HTTP."""
    return RefusedError(400, "http_error", "the request is not valid HTTP/1.1")


def too_many_pipelined(limit: int) -> RefusedError:
    """Makes a 503: the client sends requests faster than it takes responses."""
    return RefusedError(
        503, "overloaded", f"more than {limit} requests wait on this connection: use several"
    )


def body_too_slow(seconds: float) -> RefusedError:
    """Makes a 408: the body did not arrive in time."""
    return RefusedError(408, "body_too_slow", f"the body did not arrive within {seconds:g} s")


def answer_too_slow(limit: float, seconds: float) -> RefusedError:
    """Makes a 503: the answer was not ready in time."""
    message = f"no answer was ready within {limit:g} s: try again later"
    return RefusedError(503, "answer_too_slow", message, seconds=seconds)


def overloaded(what: str, seconds: float = 0) -> RefusedError:
    """Makes a 503: too many keys or bytes are waiting."""
    message = f"{what} wait already: try again later"
    return RefusedError(503, "overloaded", message, seconds=seconds)


def too_much_waiting(found: int, limit: int, seconds: float) -> RefusedError:
    """Makes a 429: too many keys of this client are waiting."""
    return RefusedError(
        429,
        "too_much_waiting",
        f"{found} keys of this client wait already, of at most {limit}: wait for their answers",
        seconds=seconds,
        expected=f"at most {limit}",
    )


def over_budget(rate: float, seconds: float) -> RefusedError:
    """Makes a 429: the client has spent its keys a second."""
    return RefusedError(
        429,
        "over_budget",
        f"this client has spent its budget of {rate:g} keys a second",
        seconds=seconds,
        expected=f"at most {rate:g} keys a second",
    )


def not_a_client(why: str) -> RefusedError:
    """Makes a 401: the client's key is missing or wrong."""
    return RefusedError(401, "not_a_client", f"{why}: send it as 'Authorization: Bearer KEY'")


def no_resources(*, failed: bool) -> RefusedError:
    """Makes a 503: the machine lacks a resource, which the log names."""
    when = "until it is restarted" if failed else "now: try again later"
    return RefusedError(503, "no_resources", f"this server cannot answer {when}")


def not_admitted() -> RefusedError:
    """Makes a 401: the operator's token is missing or wrong."""
    return RefusedError(401, "not_admitted", "changes to rows need the operator's token")


def no_changes() -> RefusedError:
    """Makes a 403: the server has no admin token."""
    return RefusedError(
        403, "no_changes", "this server takes no changes: it was started without an admin token"
    )


def not_durable(why: str) -> RefusedError:
    """Makes a 507: the journal of a table cannot be written, so that no change is made."""
    return RefusedError(
        507,
        "not_durable",
        f"the change was not made: {why}; lookups go on. Make room, or see the server's log",
    )


def refusal(error: MessageError) -> RefusedError:
    """Converts an error of a wire module to a refusal."""
    if isinstance(error, MismatchError):
        gone = isinstance(error, VersionGoneError)
        status, code = (410, "version_gone") if gone else (409, "mismatch")
        return RefusedError(status, code, str(error), found=error.found, expected=error.expected)
    code = "malformed_key" if isinstance(error, MalformedKeyError) else "malformed_message"
    return RefusedError(400, code, str(error))
