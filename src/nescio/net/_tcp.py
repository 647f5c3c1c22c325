"""Connections: how the two parties find each other over TCP, and know each other by TLS."""

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
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
    PeerUntrustedError,
)
from ._frame import clean

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5


class TlsFiles(NamedTuple):
    """PEM files: a party's own certificate and key, and the authorities that it asks others for."""

    cert: Path | str | None = None
    key: Path | str | None = None
    ca: Path | str | None = None

    def context(self, purpose: int) -> ssl.SSLContext:
        """TLS 1.3 for one side. Raises ArgumentError for files that are no such thing."""
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
            raise ArgumentError(
                f"TLS files: found {self.cert}, {self.key}, {self.ca}, expected a certificate, its "
                f"key and the other party's authority in PEM: {error}"
            ) from error
        return context


def listening_context(files: TlsFiles) -> ssl.SSLContext | None:
    """For who listens: None without files; with an authority, who connects has to show itself."""
    if files == TlsFiles():
        return None
    if files.cert is None:
        raise ArgumentError("TLS: who listens needs a certificate and its key (tls_cert, tls_key)")
    context = files.context(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0  # nobody comes back to this connection
    if files.ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def connecting_context(tls: bool, files: TlsFiles) -> ssl.SSLContext | None:
    """For who connects: None without TLS; without an authority, the system's are asked for."""
    if not tls and files == TlsFiles():
        return None
    context = files.context(ssl.PROTOCOL_TLS_CLIENT)
    if files.ca is None:
        context.load_default_certs()
    return context


def check_address(host: object, port: object, least_port: int) -> tuple[str, int]:
    """Host and port, if they can be. Raises ArgumentError."""
    if not isinstance(host, str) or not host or not host.isascii() or not host.isprintable():
        raise ArgumentError(f"host: found {shown(host)}, expected a name or an address in ASCII")
    return host, as_count(port, "port", least_port, 65535)


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1)
    except (OSError, UnicodeError) as error:
        raise ChannelError(
            f"cannot listen on {host} port {port}: {error}; choose another host or port"
        ) from error


def dial(host: str, port: int, timeout: float) -> socket.socket:
    """A connection, tried again until somebody listens or the time is over."""
    end = time.monotonic() + timeout
    for pause in _pauses():
        left = end - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError("timed out")
            connection = socket.create_connection((host, port), timeout=left)
            # A port of this machine that nobody listens on can be connected to itself.
            if connection.getsockname() != connection.getpeername():
                return connection
            connection.close()
        except (ConnectionError, TimeoutError) as error:
            if left <= pause:
                raise PeerTimeoutError(
                    f"no connection to {host} port {port} in {timeout:g} s: {error}; does the "
                    "other party listen there?"
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
    """The connection under TLS, if there is a context; `host` names who has to answer."""
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
    """Says in Nescio's errors what went wrong in a handshake."""
    try:
        yield
    except TimeoutError as error:
        raise PeerTimeoutError(
            "the other party did not finish the TLS handshake in time"
        ) from error
    except ssl.SSLCertVerificationError as error:
        raise PeerUntrustedError(
            f"the other party's certificate is not trusted: {error.verify_message}; tls_ca names "
            "the authority that it has to come from"
        ) from error
    except ssl.SSLEOFError as error:
        raise PeerGoneError("the connection ended within the TLS handshake") from error
    except ssl.SSLError as error:
        if alert := alert_of(error):
            raise PeerRefusedError(
                f"the other party refused the TLS handshake: {alert}", reason=alert
            ) from error
        raise PeerUntrustedError(
            f"the other party does not speak TLS as expected: {clean(str(error.reason))}; do both "
            "parties use TLS, and does each show a certificate where the other asks for one?"
        ) from error
    except OSError as error:
        raise PeerGoneError(f"the connection broke within the TLS handshake: {error}") from error


def alert_of(error: ssl.SSLError) -> str | None:
    """What the other party's TLS said when it refused, if that is the error."""
    reason = error.reason or ""
    _, found, alert = reason.partition("ALERT_")
    return alert.lower().replace("_", " ") if found else None
