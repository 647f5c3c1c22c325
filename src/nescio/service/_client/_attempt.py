"""The meaning of a reply, an error or a timeout of a request, without I/O.

A Failure says if the request may be tried again.
"""

import json
import random
import re
import ssl
from dataclasses import dataclass

import httpx

from ...errors import (
    MismatchError,
    NescioError,
    ServerRefusedError,
    ServerTimeoutError,
    ServerUnreachableError,
    VersionGoneError,
)

ASK_OPERATOR = "check this address, and ask its operator which release of Nescio runs there"

_MAX_SHOWN = 300
_FIRST_PAUSE = 0.1
_MAX_PAUSE = 2.0
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")  # of Retry-After
_OTHER_VERSION = {409: "mismatch", 410: "version_gone"}


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


@dataclass(frozen=True, slots=True)
class Failure:
    """A try that failed: its error, if another try may succeed, the wait that the server asks for.

    Repeating a query is safe: the same party gets the same key, and learns nothing new.
    """

    error: NescioError
    again: bool = False
    after: float = 0.0


def timed_out(url: str) -> Failure:
    """Returns the failure of a try without a reply in time."""
    return Failure(ServerTimeoutError(f"{url} did not answer in time", url=url), again=True)


def failed(url: str, error: Exception) -> Failure:
    """Returns the failure of a try that ended with an error."""
    if isinstance(error, httpx.TimeoutException):
        return timed_out(url)
    reason = printable(str(error)) or type(error).__name__
    tls = _tls_error(error)
    found = f"cannot be reached: {reason}; is the server running?"
    if isinstance(error, httpx.RemoteProtocolError):
        found = f"did not reply with HTTP: {reason}; is it a server of Nescio, and is it https://?"
    message = f"{url} {found}"
    if tls is not None:
        message = f"{url}: {_describe_tls(tls) or f'TLS failed: {reason}'}"
    final = ServerUnreachableError(message, url=url)
    final.__cause__ = error
    return Failure(final, again=tls is None and isinstance(error, httpx.TransportError))


def refused(url: str, reply: Reply) -> Failure | None:
    """Returns None if the reply is a success, else the failure.

    It is MismatchError if the server has another table, VersionGoneError if it no longer has the
    version; ServerRefusedError for any other refusal.
    """
    if 200 <= reply.status < 300:
        return None
    error = _read_error(reply)
    message = f"{url} refused with status {reply.status} ({error.code}): {error.message}"
    if error.code == _OTHER_VERSION.get(reply.status):
        kind = VersionGoneError if reply.status == 410 else MismatchError
        return Failure(kind(message, found=error.found, expected=error.expected))
    if reply.status == 401 and error.code == "not_a_client":
        message += (
            "; ask this server's operator for a client key, and pass it as client_key "
            "(nescio lookup --client-key-file)"
        )
    final = ServerRefusedError(message, url=url, status=reply.status, code=error.code)
    wait = _SECONDS.fullmatch(reply.headers.get("Retry-After", ""))
    return Failure(final, reply.status in _RETRIED, float(wait[0]) if wait else 0.0)


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
