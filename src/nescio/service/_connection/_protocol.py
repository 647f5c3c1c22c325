"""HTTP of one connection, in bounded memory and time."""

import asyncio
import json
import ssl
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from .. import _quotas as refuse
from .._observe import Metrics
from .._quotas import RefusedError
from .._responses import Budget
from ._limits import Admission, ConnectionLimits
from ._tls_gate import TlsGate

# A piece in which a message ends does not count for the next one, which may be so much longer.
_PIECE_BYTES = 16 << 10
_FIELD_BYTES = 4  # colon, space and end of line
_PARTING_SECONDS = 2
_BLOCKED_SECONDS = 1  # until a connection whose client does not read may be closed for another
_DRAINED_BYTES = 1 << 20

ProtocolFactory = Callable[..., asyncio.Protocol]
Refused = Callable[[str], None]


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits for everything that arrives before the application runs.

    uvicorn stores the head of a request without a limit. It closes a connection that idles after a
    response, but not one that sends nothing at first, never completes the head of a request, or
    does not read the rest of a closing connection. Here all of them have the same timeout.

    Bytes of a request that are not its body are its head and the framing of its body: chunk sizes,
    chunk extensions and trailers. They may exceed the body by `max_head_bytes`. `budget` counts the
    heads of all requests that wait for a response, and what has arrived of the next one.

    A client that leaves so much unread that the server cannot send for `write_seconds` is
    disconnected, whatever the replies are.
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
        refused: Refused,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._admission = admission
        self._held = budget.hold()
        self.refused = refused
        self.gate: TlsGate | None = None  # whose place this connection takes
        self._next_check: asyncio.TimerHandle | None = None
        self._was_closing = False
        self._drainable: int | None = None  # bytes that are still ignored before the end
        self._in_message = False
        self._overhead = 0  # bytes in excess of twice the body, since a message began or ended
        self._body_bytes = 0  # of the body, in the piece that is being parsed
        self._ended = False  # a message ended in the piece that is being parsed
        self._refusal: RefusedError | None = None
        self._last_reply: RefusedError | None = None  # waits for the earlier responses
        self._answering: RequestResponseCycle | None = None  # others are in `pipeline`
        self._heads: dict[RequestResponseCycle, int] = {}  # bytes, of unanswered requests
        self._blocked: list[asyncio.TimerHandle] = []  # while the client does not read

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
            self.refused("connection")
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timeout and releases what is held."""
        if self._next_check is not None:
            self._next_check.cancel()
        self._unblock()
        self._admission.leave(self)
        self._held.release()
        if self._answering is not None:  # uvicorn tells only the latest request
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Starts the deadline for the client to read replies."""
        super().pause_writing()
        self._unblock()
        later = self.loop.call_later
        self._blocked = [
            later(_BLOCKED_SECONDS, self._admission.idle, self),
            later(self._limits.write_seconds, self.transport.abort),
        ]

    def resume_writing(self) -> None:
        """Ends the deadline."""
        self._unblock()
        if self._answering is not None:
            self._admission.busy(self)
        super().resume_writing()

    def _unblock(self) -> None:
        for timer in self._blocked:
            timer.cancel()
        self._blocked = []

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
        if self._answering is None:
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
        self._ended = False
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            return False
        except httptools.HttpParserError:
            raise self._refusal or refuse.malformed_head() from None
        if not self._ended:
            self._overhead = max(0, self._overhead + len(piece) - 2 * self._body_bytes)
        self._held.set(self._unanswered())
        if self._overhead >= self._limits.max_head_bytes:
            raise refuse.head_too_large(self._limits.max_head_bytes)
        return True

    def _unanswered(self) -> int:
        """Counts the bytes of heads without a response, and of a message that is incomplete."""
        counted = self._heads.get(self.cycle, 0) if "path" in (self.scope or {}) else 0
        arriving = max(0, self._overhead - counted) if self._in_message else 0
        return sum(self._heads.values()) + arriving

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
        if not self.flow.write_paused:
            self._admission.busy(self)
        super().on_headers_complete()
        fields = sum(len(name) + len(value) + _FIELD_BYTES for name, value in self.headers)
        self._heads[self.cycle] = len(self.url) + fields

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """Counts the bytes of a body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends the counting of a message."""
        super().on_message_complete()
        self._in_message = False
        self._ended = True
        self._overhead = 0  # bytes until the next message count too

    def on_response_complete(self) -> None:
        """Starts the next response or the timeout, and releases what the head took."""
        if self._answering is not None:
            self._heads.pop(self._answering, None)
        self._answering = None
        super().on_response_complete()
        self._check_later()
        self._held.set(min(self._held.count, self._unanswered()))
        if self._answering is None:
            self._admission.idle(self)
            if self._last_reply is not None and not self.transport.is_closing():
                self._reply_and_part(self._last_reply)

    def _stop(self, error: RefusedError) -> RefusedError:
        """Keeps the reason while the parser turns the exception of a callback into its own."""
        self._refusal = error
        return error

    def _refuse(self, error: RefusedError) -> None:
        """Replies with an error after the earlier responses, and closes the connection.

        The reply is left out if the response to the refused request has begun.
        """
        self._drainable = _DRAINED_BYTES
        if self.pipeline and self.pipeline[0][0].scope is self.scope:  # the newest is the first
            self.pipeline.popleft()
        cycle = self._answering
        if cycle is None:
            self._reply_and_part(error)
        elif cycle.scope is not self.scope:
            self._last_reply = error
            self.flow.pause_reading()
        else:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self._part()
            else:
                self._reply_and_part(error)

    def _reply_and_part(self, error: RefusedError) -> None:
        self.refused(error.code)
        body = json.dumps(error.to_dict()).encode()
        retry = b"" if error.retry_after is None else b"retry-after: %d\r\n" % error.retry_after
        head = (
            b"content-type: application/json\r\n"
            b"content-length: %d\r\nconnection: close\r\n%s\r\n" % (len(body), retry)
        )
        self.transport.write(STATUS_LINE[error.status] + head + body)
        self._part()

    def _part(self) -> None:
        """Closes the connection after the client has had time to stop sending and read the reply.

        TCP would discard the reply if data of the client were unread.
        """
        self._drainable = _DRAINED_BYTES
        self._admission.idle(self)
        unsent = self.transport.get_write_buffer_size()
        if self.transport.can_write_eof():
            self.transport.write_eof()
            seconds = self._limits.write_seconds if unsent else _PARTING_SECONDS
            self.loop.call_later(seconds, self.transport.abort)
        else:
            self.transport.close()


def protocol_factory(
    limits: ConnectionLimits,
    budget: Budget,
    context: ssl.SSLContext | None = None,
    metrics: Metrics | None = None,
) -> ProtocolFactory:
    """Returns what uvicorn calls for each connection of one server, as its option `http`."""
    admission = Admission(limits)
    refused: Refused = _ignored if metrics is None else metrics.refused
    if metrics is not None:
        metrics.connections.counts.append(lambda: len(admission))

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
            refused=refused,
        )
        return inner if context is None else TlsGate(inner, context, limits, admission)

    return make


def _ignored(_: str) -> None:
    """Takes the reason of a refusal that nobody counts."""
