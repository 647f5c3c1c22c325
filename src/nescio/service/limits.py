"""What a server accepts, and how it says no."""

from dataclasses import dataclass

from ..errors import ArgumentError, MalformedKeyError, MalformedMessageError, MismatchError
from ..pir.params import TableParams
from ..pir.wire import HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one request and on the work that may wait.

    `max_keys`: keys in one request. `max_body_bytes`: its body.
    `max_waiting_keys`: keys of all requests that wait for an answer, a table. `read_seconds`: for
    a body to arrive. `answer_seconds`: from a body's arrival to its answer. `batch_window`: seconds
    that the first request of a batch waits for company.
    """

    max_keys: int = 1024
    max_body_bytes: int = 4 << 20
    max_waiting_keys: int = 16384
    read_seconds: float = 10.0
    answer_seconds: float = 30.0
    batch_window: float = 0.002

    def __post_init__(self) -> None:
        for name in (
            "max_keys",
            "max_body_bytes",
            "max_waiting_keys",
            "read_seconds",
            "answer_seconds",
        ):
            if getattr(self, name) <= 0:
                raise ArgumentError(f"{name}: found {getattr(self, name)}, expected more than 0")
        if not 0 <= self.batch_window <= 1:
            raise ArgumentError(f"batch_window: found {self.batch_window} s, expected 0 to 1 s")

    def keys(self, params: TableParams) -> int:
        """Keys for a table that one request may carry, by both limits; 0 if a body is too short."""
        return min(self.max_keys, (self.max_body_bytes - HEADER_BYTES) // params.key_bytes)


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


def overloaded(limit: int) -> RefusedError:
    """503: too many keys wait already."""
    return RefusedError(
        503, "overloaded", f"{limit} keys wait for an answer already: try again later"
    )


def refusal(error: Exception) -> RefusedError:
    """How a server refuses bytes that the wire module has rejected with `error`."""
    if isinstance(error, MismatchError):
        return RefusedError(409, "mismatch", str(error), found=error.found, expected=error.expected)
    if isinstance(error, MalformedKeyError):
        return RefusedError(400, "malformed_key", str(error))
    assert isinstance(error, MalformedMessageError)
    return RefusedError(400, "malformed_message", str(error))
