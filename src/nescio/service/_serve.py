"""Runs the service: binds a socket, reports that it is ready, stops on a signal."""

import asyncio
import contextlib
import errno
import os
import resource
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from .._arrays import check_file
from ..errors import ArgumentError, FileError, ServiceError

# Time to send the head of a request, the first one or a later one.
_HEAD_SECONDS = 30
_MAX_CONNECTIONS = 1024
_OTHER_DESCRIPTORS = 256
_SHUTDOWN_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Address:
    """The address to listen on. Port 0 chooses a free one. TLS needs both files."""

    host: str = "127.0.0.1"
    port: int = 8080
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def __post_init__(self) -> None:
        if not self.host or not self.host.isprintable():
            raise ArgumentError(
                f"host: found {self.host!r}, expected a host name or an address; "
                "0.0.0.0 listens on all addresses"
            )
        if not 0 <= self.port < 1 << 16:
            raise ArgumentError(f"port: found {self.port}, expected 0 to 65535")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ArgumentError("TLS needs both a certificate and its key")
        for path in (self.tls_cert, self.tls_key):
            if path is not None:
                check_file(path, "a PEM file")
        if self.tls_cert is not None:
            self._check_certificate(self.tls_cert)

    def _check_certificate(self, cert: Path) -> None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, self.tls_key)
        except OSError as error:  # ssl.SSLError is one
            raise FileError(
                f"{cert} and {self.tls_key} are not a certificate and its private key: {error}"
            ) from error

    def url(self, port: int) -> str:
        """Returns the URL for clients."""
        scheme = "http" if self.tls_cert is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"


def bind(address: Address) -> socket.socket:
    """Opens a listening socket. Raises ServiceError with the address if that fails."""
    url = address.url(address.port)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is given; else answers wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(2048)
    except (OSError, UnicodeError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        bad_host = isinstance(error, UnicodeError | socket.gaierror) or (
            error.errno == errno.EADDRNOTAVAIL
        )
        advice = "--host" if bad_host else "--port"
        raise ServiceError(
            f"cannot listen on {url}: {reason}; choose another with {advice}", url=url
        ) from error
    return listener


def serve(
    app: Starlette,
    address: Address,
    listener: socket.socket,
    *,
    ready: Callable[[str], None],
    until_stdin_closes: bool = False,
) -> None:
    """Serves until a signal; calls `ready` with the URL as soon as requests are accepted.

    With `until_stdin_closes` it also stops when standard input closes, so that the server does not
    outlive the program that started it. Raises ServiceError if the application does not start.
    """
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the client's address is not used
        timeout_keep_alive=_HEAD_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        ssl_certfile=None if address.tls_cert is None else str(address.tls_cert),
        ssl_keyfile=None if address.tls_key is None else str(address.tls_key),
    )
    _allow_descriptors(_MAX_CONNECTIONS + _OTHER_DESCRIPTORS)
    url = address.url(listener.getsockname()[1])
    server = _Server(config, lambda: ready(url))
    if until_stdin_closes:
        threading.Thread(target=_stop_with_stdin, args=(server,), daemon=True).start()
    try:
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
    except OSError as error:  # ssl.SSLError among them
        raise ServiceError(f"cannot serve {url}: {error}", url=url) from error
    if not server.started:
        raise ServiceError(f"the service on {url} did not start", url=url)


def _allow_descriptors(count: int) -> None:
    """Raises the limit of file descriptors, so that the limit of connections applies first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's protocol with timeouts for idle and slow connections.

    uvicorn closes a connection that idles after a response, but not one that sends nothing at
    first, never completes the head of a request, or does not read the rest of a closing connection.
    Here all of them have the same timeout. Connections beyond `max_connections` are closed at once.
    """

    head_seconds = _HEAD_SECONDS
    max_connections = _MAX_CONNECTIONS
    _next_check: asyncio.TimerHandle | None = None
    _was_closing = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Starts the timeout, or closes the connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()
        else:
            self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timeout."""
        if self._next_check is not None:
            self._next_check.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Starts the timeout for the next request."""
        super().on_response_complete()
        self._check_later()

    def _check_later(self) -> None:
        if self._next_check is not None:
            self._next_check.cancel()
        self._next_check = self.loop.call_later(self.head_seconds, self._check)

    def _check(self) -> None:
        """Closes a connection that idled since the last check; aborts one that was closing then."""
        if self._was_closing:
            self.transport.abort()
            return
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        self._was_closing = self.transport.is_closing()
        self._check_later()


class _Server(uvicorn.Server):
    """uvicorn's server, with a callback when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def _stop_with_stdin(server: uvicorn.Server) -> None:
    if sys.stdin is not None:
        with contextlib.suppress(OSError):
            while os.read(sys.stdin.fileno(), 4096):
                pass
    server.should_exit = True
