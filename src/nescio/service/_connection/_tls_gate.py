"""TLS of one connection until its handshake is done, in bounded time."""

import asyncio
import contextlib
import os
import socket
import ssl
from typing import TYPE_CHECKING, Any, cast

from ._limits import Admission, ConnectionLimits

if TYPE_CHECKING:
    from ._protocol import BoundedProtocol


class TlsGate(asyncio.Protocol):
    """A TCP connection until its TLS handshake is done; then `inner` takes its place.

    An event loop that does the handshake itself does not tell of a connection before the end of it.
    So the gate accepts the TCP connection, counts it, and gives its socket back to the loop.
    """

    def __init__(
        self,
        inner: "BoundedProtocol",
        context: ssl.SSLContext,
        limits: ConnectionLimits,
        admission: Admission,
    ) -> None:
        self._inner = inner
        self._context = context
        self._limits = limits
        self._admission = admission
        self._counted: set[Any] = inner.connections  # of uvicorn, which calls `shutdown` of each
        self._task: asyncio.Task[None] | None = None
        self._started = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts the handshake, or closes the connection if there are too many."""
        tcp = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        if not self._admission.enter(self, tcp):
            self._inner.refused("connection")
        else:
            # A copy, because the loop owns the socket of a transport; nothing was read from it yet.
            copy = socket.socket(fileno=os.dup(tcp.get_extra_info("socket").fileno()))
            copy.setblocking(False)
            self._counted.add(self)
            self._task = self._inner.loop.create_task(self._secure(copy))
            self._task.add_done_callback(lambda _: self._end(copy))
        tcp.abort()

    def evict(self) -> None:
        """Closes the connection at once."""
        if self._task is not None:
            self._task.cancel()

    def shutdown(self) -> None:
        """Closes the connection, because the server ends."""
        self.evict()

    async def _secure(self, connection: socket.socket) -> None:
        """Does the handshake, then gives the connection to `inner`."""
        self._started = True
        self._inner.gate = self
        with contextlib.suppress(OSError, asyncio.CancelledError):  # ssl.SSLError is an OSError
            await self._inner.loop.connect_accepted_socket(
                lambda: self._inner,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.handshake_seconds,
                ssl_shutdown_timeout=self._limits.handshake_seconds,
            )

    def _end(self, connection: socket.socket) -> None:
        """Forgets this connection, unless `inner` has its place."""
        self._counted.discard(self)
        self._admission.leave(self)
        if not self._started:  # else the loop owns it
            connection.close()
