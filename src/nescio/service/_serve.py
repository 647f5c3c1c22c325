"""Runs the service: binds, announces itself, stops when told."""

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

from ..errors import ArgumentError, FileError, ServiceError

# A connection has so many seconds to send the head of a request, its first or another.
_HEAD_SECONDS = 30
_MAX_CONNECTIONS = 1024
_OTHER_DESCRIPTORS = 256
_SHUTDOWN_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0 takes any free one. Both TLS files, or neither."""

    host: str = "127.0.0.1"
    port: int = 8080
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def __post_init__(self) -> None:
        if not self.host or not self.host.isprintable():
            raise ArgumentError(
                f"host: found {self.host!r}, expected a name or an address; "
                "0.0.0.0 listens on all of them"
            )
        if not 0 <= self.port < 1 << 16:
            raise ArgumentError(f"port: found {self.port}, expected 0 to 65535")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ArgumentError("TLS needs both a certificate and its key")
        for path in (self.tls_cert, self.tls_key):
            if path is not None and not path.is_file():
                raise FileError(f"the file {path} does not exist")
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
        """The address that clients use."""
        scheme = "http" if self.tls_cert is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"


def bind(address: Address) -> socket.socket:
    """A listening socket. Raises ServiceError, naming the address, if it cannot be had."""
    url = address.url(address.port)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With the protocol named, asyncio switches Nagle's algorithm off; without, answers wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(2048)
    except (OSError, UnicodeError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        elsewhere = isinstance(error, UnicodeError | socket.gaierror) or (
            error.errno == errno.EADDRNOTAVAIL
        )
        advice = "--host" if elsewhere else "--port"
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
    """Serves until a signal says stop; calls `ready` with the address once requests are taken.

    With `until_stdin_closes` it also stops when standard input ends, so that a server that another
    program started never outlives it. Raises ServiceError if the application will not start.
    """
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who asks does not matter here, whatever a header says
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
    """Asks the system for as many, so that connections run out first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's protocol, with an end to its patience.

    uvicorn closes a connection that idles after a response, but not one that says nothing at first,
    that sends the head of a request for ever, or that is closed and does not take what was still
    to be sent: here each has the same time. Connections beyond `max_connections` are closed at
    once.
    """

    head_seconds = _HEAD_SECONDS
    max_connections = _MAX_CONNECTIONS
    _next_look: asyncio.TimerHandle | None = None
    _was_closing = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begins to wait for a request, unless there are too many connections already."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()
        else:
            self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the wait."""
        if self._next_look is not None:
            self._next_look.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begins to wait for the next request."""
        super().on_response_complete()
        self._look_later()

    def _look_later(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        self._next_look = self.loop.call_later(self.head_seconds, self._look)

    def _look(self) -> None:
        """Closes a connection that idled since the last look, aborts one that was closing then."""
        if self._was_closing:
            self.transport.abort()
            return
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        self._was_closing = self.transport.is_closing()
        self._look_later()


class _Server(uvicorn.Server):
    """uvicorn's server, telling when it is ready."""

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
