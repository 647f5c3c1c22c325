"""HTTP and TLS of one connection, in bounded memory and time."""

import asyncio
import contextlib
import json
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, cast

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from . import _quotas as refuse
from ._connections import Admission, ConnectionLimits
from ._quotas import RefusedError
from ._responses import Budget

# A piece in which a message begins counts as a whole for it; smaller ones make that more exact.
_PIECE_BYTES = 16 << 10
_PARTING_SECONDS = 2
_DRAINED_BYTES = 1 << 20

ProtocolFactory = Callable[..., asyncio.Protocol]


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits for everything that arrives before the application runs.

    uvicorn stores the head of a request without a limit. It closes a connection that idles after a
    response, but not one that sends nothing at first, never completes the head of a request, or
    does not read the rest of a closing connection. Here all of them have the same timeout.

    Bytes of a request that are not its body are its head and the framing of its body: chunk sizes,
    chunk extensions and trailers. They may exceed the body by `max_head_bytes`, and are counted in
    `budget` until the response is complete.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
        admission: Admission,
        budget: Budget,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._admission = admission
        self._held = budget.hold()
        self.gate: TlsGate | None = None  # whose place this connection takes
        self._next_check: asyncio.TimerHandle | None = None
        self._was_closing = False
        self._drainable: int | None = None  # bytes that are still ignored before the end
        self._in_message = False
        self._overhead = 0  # bytes in excess of twice the body, since a message began or ended
        self._body_bytes = 0  # of the body, in the piece that is being parsed
        self._refusal: RefusedError | None = None

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts the timeout, or closes the connection if there are too many."""
        super().connection_made(transport)
        if self.gate is not None:
            entered = self._admission.replace(self.gate, self)
        else:
            entered = self._admission.enter(self, transport)
        if entered:
            self._check_later()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timeout and releases what is held."""
        if self._next_check is not None:
            self._next_check.cancel()
        self._admission.leave(self)
        self._held.release()
        super().connection_lost(exc)

    def evict(self) -> None:
        """Closes the connection at once."""
        self.transport.abort()

    def _check_later(self) -> None:
        if self._next_check is not None:
            self._next_check.cancel()
        self._next_check = self.loop.call_later(self._limits.head_seconds, self._check)

    def _check(self) -> None:
        """Closes a connection that idled since the last check; aborts one that was closing then."""
        if self._was_closing:
            self.transport.abort()
            return
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        self._was_closing = self.transport.is_closing()
        self._check_later()

    # The parser

    def data_received(self, data: bytes) -> None:
        """Parses data in pieces, so that no more than the limit is ever stored."""
        self._unset_keepalive_if_required()
        rest = memoryview(data)
        if self._drainable is not None:
            self._drainable -= len(data)
            if self._drainable < 0:
                self.transport.abort()
        while rest and self._drainable is None and not self.transport.is_closing():
            room = min(_PIECE_BYTES, self._limits.max_head_bytes - self._overhead)
            piece, rest = rest[:room], rest[room:]
            try:
                if not self._parse(piece):
                    return
            except RefusedError as error:
                self._refuse(error)

    def _parse(self, piece: memoryview) -> bool:
        """Parses a piece; False if the rest of the connection is ignored. Raises RefusedError."""
        self._body_bytes = 0
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            return False
        except httptools.HttpParserError:
            raise self._refusal or refuse.malformed_head() from None
        self._overhead = max(0, self._overhead + len(piece) - 2 * self._body_bytes)
        self._hold()
        if self._overhead >= self._limits.max_head_bytes:
            raise refuse.head_too_large(self._limits.max_head_bytes)
        return True

    def _hold(self) -> None:
        """Reserves the bytes of the head until the response is complete."""
        waiting = not (self.cycle is None or self.cycle.response_complete)
        least = self._held.count if waiting else 0
        self._held.set(max(least, self._overhead) if waiting or self._in_message else 0)

    def on_message_begin(self) -> None:
        """Begins to count the head of a request."""
        super().on_message_begin()
        self._in_message = True
        self._overhead = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Stores a field of a head, up to the limit, and drops one of trailers."""
        if "path" in self.scope:  # the head is complete
            return
        if len(self.headers) >= self._limits.max_fields:
            raise self._stop(refuse.too_many_fields(self._limits.max_fields))
        HttpToolsProtocol.on_header(self, name, value)

    def on_headers_complete(self) -> None:
        """Checks the head of a request, and starts to answer it."""
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            raise self._stop(refuse.wrong_host(hosts))
        if len(self.pipeline) >= self._limits.max_pipelined:
            raise self._stop(refuse.too_many_pipelined(self._limits.max_pipelined))
        self._admission.busy(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Counts the bytes of a body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends the counting of a message."""
        super().on_message_complete()
        self._in_message = False
        self._overhead = 0  # bytes until the next message count too

    def on_response_complete(self) -> None:
        """Starts the timeout for the next request, and releases what the head took."""
        super().on_response_complete()
        self._check_later()
        if self.cycle.response_complete:
            self._admission.idle(self)
            self._hold()

    def _stop(self, error: RefusedError) -> RefusedError:
        """Keeps the reason while the parser turns the exception of a callback into its own."""
        self._refusal = error
        return error

    def _refuse(self, error: RefusedError) -> None:
        """Replies with an error and closes the connection.

        The reply is left out if a response has begun, or if it would answer an earlier request.
        """
        cycle = self.cycle
        answered = cycle is None or cycle.response_complete
        if answered or (
            cycle.scope is self.scope and not (cycle.response_started or self.pipeline)
        ):
            body = json.dumps(error.to_dict()).encode()
            head = (
                b"content-type: application/json\r\n"
                b"content-length: %d\r\nconnection: close\r\n%s\r\n"
                % (len(body), b"retry-after: 1\r\n" if error.status == 503 else b"")
            )
            self.transport.write(STATUS_LINE[error.status] + head + body)
        if not answered:
            cycle.disconnected = True
            cycle.message_event.set()
        self._part()

    def _part(self) -> None:
        """Closes the connection after the client has had time to stop sending and read the reply.

        TCP would discard the reply if data of the client were unread.
        """
        self._drainable = _DRAINED_BYTES
        self._admission.idle(self)
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self.loop.call_later(_PARTING_SECONDS, self.transport.abort)
        else:
            self.transport.close()


class TlsGate(asyncio.Protocol):
    """A TCP connection until its TLS handshake is done; then `inner` takes its place.

    An event loop that does the handshake itself does not tell of a connection before the end of it.
    So the gate accepts the TCP connection, counts it, and gives its socket back to the loop.
    """

    def __init__(
        self,
        inner: BoundedProtocol,
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
        if self._admission.enter(self, tcp):
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


def protocol_factory(
    limits: ConnectionLimits, budget: Budget, context: ssl.SSLContext | None = None
) -> ProtocolFactory:
    """Returns what uvicorn calls for each connection of one server, as its option `http`."""
    admission = Admission(limits)

    def make(
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> asyncio.Protocol:
        inner = BoundedProtocol(
            config,
            server_state,
            app_state,
            _loop,
            limits=limits,
            admission=admission,
            budget=budget,
        )
        return inner if context is None else TlsGate(inner, context, limits, admission)

    return make
