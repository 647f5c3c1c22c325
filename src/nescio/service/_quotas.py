"""What a server accepts, and how it says no."""

import math
from dataclasses import dataclass, fields

from .._arrays import shown
from ..errors import ArgumentError, MalformedKeyError, MessageError, MismatchError
from ..pir._params import TableParams
from ..pir._wire import HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Quotas:
    """Bounds on one request, and on all that are under way.

    One request: `max_keys` in it, `max_body_bytes` of it, `max_answer_bytes` of its answer (which
    also lowers the keys), `max_change_bytes` of a change to the rows. All of a table:
    `max_waiting_keys` that wait for an answer. All together: `max_held_bytes` of queries that
    arrive and answers that wait or are not yet sent. Seconds: `read_seconds` for a query to arrive,
    `change_seconds` for a change, `answer_seconds` from there to an answer, `write_seconds` for it
    to be taken. `batch_window`: seconds that the first request of a batch waits for company.

    Raises ArgumentError for numbers that make no sense, alone or together.
    """

    max_keys: int = 1024
    max_body_bytes: int = 4 << 20
    max_answer_bytes: int = 64 << 20
    max_change_bytes: int = 1 << 30
    max_waiting_keys: int = 16384
    max_held_bytes: int = 512 << 20
    read_seconds: float = 10.0
    change_seconds: float = 300.0
    answer_seconds: float = 30.0
    write_seconds: float = 60.0
    batch_window: float = 0.002

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = field.type is int
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                raise ArgumentError(f"{field.name}: found {shown(value)}, expected a number")
            least = 0 if field.name == "batch_window" else 1 if whole else 1e-9
            most = 1 if field.name == "batch_window" else 1 << 62
            if not math.isfinite(value) or not least <= value <= most:
                raise ArgumentError(
                    f"{field.name}: found {shown(value)}, expected {least} to {most}"
                )
        if self.max_waiting_keys < self.max_keys or self.max_held_bytes < self.max_answer_bytes:
            raise ArgumentError(
                "max_waiting_keys and max_held_bytes must hold one request: found "
                f"{self.max_waiting_keys} and {self.max_held_bytes} for requests of up to "
                f"{self.max_keys} keys and answers of up to {self.max_answer_bytes} bytes"
            )

    def keys(self, params: TableParams) -> int:
        """Keys for a table that one request may carry, by all quotas; 0 if not even one fits."""
        by_body = (self.max_body_bytes - HEADER_BYTES) // params.key_bytes
        by_answer = (self.max_answer_bytes - HEADER_BYTES) // params.answer_bytes
        return max(0, min(self.max_keys, by_body, by_answer))


class RefusedError(Exception):
    """A request that a server does not answer, as an HTTP status and a JSON error."""

    def __init__(self, status: int, code: str, message: str, **details: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.details = details

    def to_dict(self) -> dict[str, object]:
        """The body of the response."""
        return {"error": {"code": self.code, "message": str(self), **self.details}}


def unknown_table(name: str, known: list[str]) -> RefusedError:
    """404: no such table."""
    return RefusedError(
        404, "unknown_table", f"there is no table {name!r} here; there are: {', '.join(known)}"
    )


def body_too_large(found: str, limit: int) -> RefusedError:
    """413: the body exceeds the limit."""
    return RefusedError(
        413,
        "body_too_large",
        f"the body has {found} bytes, this server reads at most {limit}: ask for fewer rows",
        found=found,
        expected=f"at most {limit}",
    )


def too_many_keys(found: int, limit: int) -> RefusedError:
    """422: more keys than a request may carry."""
    return RefusedError(
        422,
        "too_many_keys",
        f"the query has {found} keys, this server takes at most {limit} in one request",
        found=str(found),
        expected=f"at most {limit}",
    )


def body_too_slow(seconds: float) -> RefusedError:
    """408: the body did not arrive in time."""
    return RefusedError(408, "body_too_slow", f"the body did not arrive within {seconds:g} s")


def answer_too_slow(seconds: float) -> RefusedError:
    """503: the answer was not ready in time."""
    return RefusedError(
        503, "answer_too_slow", f"no answer was ready within {seconds:g} s: try again later"
    )


def overloaded(what: str) -> RefusedError:
    """503: too much waits already."""
    return RefusedError(503, "overloaded", f"{what} wait already: try again later")


def no_resources(*, failed: bool) -> RefusedError:
    """503: the machine would not give what an answer needs; its log says what."""
    when = "until it is started anew" if failed else "now: try again later"
    return RefusedError(503, "no_resources", f"this server cannot answer {when}")


def not_admitted() -> RefusedError:
    """401: a change without the operator's token."""
    return RefusedError(401, "not_admitted", "changes to rows need the operator's token")


def no_changes() -> RefusedError:
    """403: a server that was started without a token."""
    return RefusedError(
        403, "no_changes", "this server takes no changes: it was started without --admin-token"
    )


def refusal(error: MessageError) -> RefusedError:
    """How a server refuses bytes that a wire module has rejected with `error`."""
    if isinstance(error, MismatchError):
        return RefusedError(409, "mismatch", str(error), found=error.found, expected=error.expected)
    code = "malformed_key" if isinstance(error, MalformedKeyError) else "malformed_message"
    return RefusedError(400, code, str(error))
