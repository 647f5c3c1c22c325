"""Runs the service: binds a socket, reports that it is ready, stops on a signal."""

import contextlib
import ctypes
import errno
import logging
import math
import os
import resource
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from .._arrays import check_file
from ..errors import ArgumentError, FileError, ServiceError
from ._connection import ConnectionLimits
from ._connection._protocol import protocol_factory
from ._operation import OperatedServer, Operation
from ._responses import Budget

_LOG = logging.getLogger(__name__)

_OTHER_DESCRIPTORS = 256
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of glibc's mallopt
_KEPT_BYTES = 256 << 20
_HEAP_BYTES = 32 << 20  # the most that glibc allows
_ARENAS = 2  # heaps; else one for each thread that has made a change, up to 8 for each processor


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
        self.context()

    def context(self) -> ssl.SSLContext | None:
        """Creates the context of TLS, if there are files. Raises FileError for invalid ones."""
        if self.tls_cert is None or self.tls_key is None:
            return None
        for path in (self.tls_cert, self.tls_key):
            check_file(path, "a PEM file")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key, _no_password)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise FileError(
                f"{self.tls_cert} and {self.tls_key} are not a certificate and its private key: "
                f"{error}"
            ) from error
        return context

    def url(self, port: int) -> str:
        """Returns the URL for clients."""
        scheme = "http" if self.tls_cert is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"


def _no_password() -> str:
    """Refuses a private key that needs one: OpenSSL would ask for it at the terminal, and wait."""
    raise ValueError("the key is encrypted; expected one without a passphrase")


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
    limits: ConnectionLimits,
    operation: Operation | None = None,
    admin: socket.socket | None = None,
    until_stdin_closes: bool = False,
) -> None:
    """Serves until a signal; calls `ready` with the URL as soon as requests are accepted.

    `admin` listens for the application `app.state.admin`, with the same certificate.

    With `until_stdin_closes` it also stops when standard input closes, so that the server does not
    outlive the program that started it. Raises ServiceError if the application does not start.
    """
    limits = _allow_descriptors(limits)
    _keep_memory()
    operation, context = operation or Operation(), address.context()
    config = uvicorn_config(app, app.state.budget, limits, context)
    config.timeout_graceful_shutdown = math.ceil(operation.drain_seconds)
    url = address.url(listener.getsockname()[1])
    beside = None
    if admin is not None:
        beside = uvicorn_config(app.state.admin, app.state.budget, limits, context), admin
    readiness = app.state.readiness
    server = OperatedServer(
        config, lambda: ready(url), operation, readiness, context, beside=beside
    )
    if until_stdin_closes:
        threading.Thread(target=_stop_with_stdin, args=(server,), daemon=True).start()
    try:
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
    except OSError as error:  # ssl.SSLError among them
        raise ServiceError(f"cannot serve {url}: {error}", url=url) from error
    if not server.started:
        raise ServiceError(f"the service on {url} did not start", url=url)


def uvicorn_config(
    app: Starlette, budget: Budget, limits: ConnectionLimits, context: ssl.SSLContext | None
) -> uvicorn.Config:
    """Configures uvicorn: the limits on connections, no web sockets, no access log."""
    metrics = getattr(getattr(app, "state", None), "metrics", None)
    return uvicorn.Config(
        app,
        http=protocol_factory(limits, budget, context, metrics),  # type: ignore[arg-type]  # is a callable
        ws="none",
        log_level="warning",
        log_config=None,  # its records go where those of the service go
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the client's address is not used
        timeout_keep_alive=math.ceil(limits.head_seconds),
    )


def _keep_memory() -> None:
    """Tells glibc to keep memory that is freed, because the next batch needs as much.

    By default it returns what exceeds a few megabytes, and the system then clears those pages again
    in every batch. Threads share few heaps, because each keeps what its last change needed. Other C
    libraries have no such settings.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        libc.mallopt(_MMAP_THRESHOLD, _HEAP_BYTES)
        libc.mallopt(_ARENA_MAX, _ARENAS)


def _allow_descriptors(limits: ConnectionLimits) -> ConnectionLimits:
    """Raises the limit of file descriptors, so that the limit of connections applies first.

    Returns limits with fewer connections, and says so, if the system allows fewer descriptors.
    """
    needed = limits.max_connections + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= needed:
        return limits
    allowed = needed if hard == unlimited else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed == needed:
        return limits
    fewer = max(1, allowed - _OTHER_DESCRIPTORS)
    _LOG.warning(
        "the system allows %d open files: at most %d connections instead of %d",
        allowed,
        fewer,
        limits.max_connections,
    )
    return replace(limits, max_connections=fewer)


def _stop_with_stdin(server: uvicorn.Server) -> None:
    if sys.stdin is not None:
        with contextlib.suppress(OSError):
            while os.read(sys.stdin.fileno(), 4096):
                pass
    server.should_exit = True
