"""Runs the service: binds, announces itself, stops when told."""

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from ..errors import ArgumentError, ServiceError

# A connection that sends nothing is closed after this many seconds.
_KEEP_ALIVE = 30
_MOST_CONNECTIONS = 1024
_SHUTDOWN_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0 takes any free one. Both TLS files, or neither."""

    host: str = "127.0.0.1"
    port: int = 8080
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise ArgumentError(f"port: found {self.port}, expected 0 to 65535")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ArgumentError("TLS needs both a certificate and its key")
        for path in (self.tls_cert, self.tls_key):
            if path is not None and not path.is_file():
                raise ArgumentError(f"there is no file {path}")

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
    except OSError as error:
        listener.close()
        raise ServiceError(
            f"cannot listen on {url}: {error.strerror}; choose another with --port", url=url
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
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        limit_concurrency=_MOST_CONNECTIONS,
        ssl_certfile=None if address.tls_cert is None else str(address.tls_cert),
        ssl_keyfile=None if address.tls_key is None else str(address.tls_key),
    )
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
    while sys.stdin.buffer.read(4096):
        pass
    server.should_exit = True
