"""The meaning of a reply, an error or a timeout of a request, without I/O.

An Attempt decides if a request is done, is retried, or has failed.
"""

import json
import random
import ssl
from dataclasses import dataclass, field

import httpx

from ...errors import (
    MismatchError,
    ServerRefusedError,
    ServerTimeoutError,
    ServerUnreachableError,
    ServiceError,
)

_MAX_SHOWN = 300
_FIRST_PAUSE = 0.1
_MAX_PAUSE = 2.0
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
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

        Raises MismatchError if the server has another table, or the version no longer;
        ServerRefusedError for any other refusal after the last try.
        """
        if 200 <= reply.status < 300:
            return None
        error = _read_error(reply)
        message = f"{self.url} refused with status {reply.status} ({error.code}): {error.message}"
        if error.code == _OTHER_VERSION.get(reply.status):
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
