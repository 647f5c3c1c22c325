"""TCP connections between the two parties, and their authentication by TLS."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .._arrays import as_count, shown
from ..errors import (
    ArgumentError,
    ChannelError,
    FileError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
    PeerUntrustedError,
)
from ._frame import clean

_BACKLOG = 64
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5


class TlsFiles(NamedTuple):
    """PEM files: a party's certificate and key, and the authorities that it trusts."""

    cert: Path | str | None = None
    key: Path | str | None = None
    ca: Path | str | None = None

    def context(self, purpose: int) -> ssl.SSLContext:
        """Creates a TLS 1.3 context for one side. Raises FileError for invalid files."""
        if (self.cert is None) != (self.key is None):
            raise ArgumentError("TLS needs both a certificate and its key (tls_cert, tls_key)")
        context = ssl.SSLContext(purpose)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            if self.cert is not None:
                context.load_cert_chain(self.cert, self.key)
            if self.ca is not None:
                context.load_verify_locations(self.ca)
        except (OSError, TypeError, ValueError) as error:  # ssl.SSLError is an OSError
            reason = getattr(error, "strerror", None) or error
            raise FileError(
                f"TLS files: found {self.cert}, {self.key}, {self.ca}, expected PEM files with a "
                f"certificate, its key and the other party's authority: {reason}"
            ) from error
        return context


def listening_context(files: TlsFiles) -> ssl.SSLContext | None:
    """Server-side TLS context, or None if no files are given.

    With an authority, clients must present a certificate.
    """
    if files == TlsFiles():
        return None
    if files.cert is None:
        raise ArgumentError(
            "TLS: the listening party needs a certificate and its key (tls_cert, tls_key)"
        )
    context = files.context(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0  # connections are never resumed
    if files.ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def connecting_context(tls: bool, files: TlsFiles) -> ssl.SSLContext | None:
    """Client-side TLS context, or None without TLS.

    Without an authority, it trusts those of the system.
    """
    if not tls and files == TlsFiles():
        return None
    context = files.context(ssl.PROTOCOL_TLS_CLIENT)
    if files.ca is None:
        context.load_default_certs()
    return context


def check_address(host: object, port: object, min_port: int) -> tuple[str, int]:
    """Checks a host and a port. Raises ArgumentError."""
    if not isinstance(host, str) or not host or not host.isascii() or not host.isprintable():
        raise ArgumentError(f"host: found {shown(host)}, expected a name or an address in ASCII")
    return host, as_count(port, "port", min_port, 65535)


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        raise ChannelError(
            f"cannot listen on {host} port {port}: {error}; choose another host or port"
        ) from error


def dial(host: str, port: int, timeout: float) -> socket.socket:
    """Connects, with retries until the other party listens or the timeout ends."""
    end = time.monotonic() + timeout
    for pause in _pauses():
        left = end - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError("timed out")
            connection = socket.create_connection((host, port), timeout=left)
            # TCP can connect a local port without a listener to itself.
            if connection.getsockname() != connection.getpeername():
                return connection
            connection.close()
        except (ConnectionError, TimeoutError) as error:
            if left <= pause:
                raise PeerTimeoutError(
                    f"no connection to {host} port {port} within {timeout:g} s: {error}; check "
                    "that the other party listens there"
                ) from error
        except (OSError, UnicodeError) as error:
            raise ChannelError(f"cannot connect to {host} port {port}: {error}") from error
        time.sleep(min(pause, max(0.0, end - time.monotonic())))
    raise AssertionError


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def secure(
    connection: socket.socket, context: ssl.SSLContext | None, host: str | None, seconds: float
) -> socket.socket:
    """Wraps the connection in TLS, if there is a context; a client verifies `host`."""
    if context is None:
        return connection
    with contextlib.ExitStack() as failed:
        failed.callback(connection.close)
        with tls_errors():
            wrapped = context.wrap_socket(
                connection,
                server_side=host is None,
                server_hostname=host,
                do_handshake_on_connect=False,
            )
            failed.callback(wrapped.close)
            wrapped.settimeout(max(seconds, 1e-3))
            wrapped.do_handshake()
        failed.pop_all()
    return wrapped


@contextlib.contextmanager
def tls_errors() -> Iterator[None]:
    """Converts the errors of a TLS handshake to those of nescio.errors."""
    try:
        yield
    except TimeoutError as error:
        raise PeerTimeoutError(
            "the other party did not finish the TLS handshake in time"
        ) from error
    except ssl.SSLCertVerificationError as error:
        raise PeerUntrustedError(
            f"the other party's certificate is not trusted: {error.verify_message}; it must be "
            "issued by the authority in tls_ca"
        ) from error
    except ssl.SSLEOFError as error:
        raise PeerGoneError("the connection ended during the TLS handshake") from error
    except ssl.SSLError as error:
        if alert := alert_of(error):
            raise PeerRefusedError(
                f"the other party refused the TLS handshake: {alert}", reason=alert
            ) from error
        raise PeerUntrustedError(
            f"the TLS handshake failed: {clean(str(error.reason))}; check that both parties use "
            "TLS, and that each presents a certificate if the other requires one"
        ) from error
    except OSError as error:
        raise PeerGoneError(f"the connection failed during the TLS handshake: {error}") from error


def alert_of(error: ssl.SSLError) -> str | None:
    """Returns the alert by which the other party's TLS refused, or None for other errors."""
    reason = error.reason or ""
    _, found, alert = reason.partition("ALERT_")
    return alert.lower().replace("_", " ") if found else None
