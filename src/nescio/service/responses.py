"""How answers leave: in pieces, in time, and accounted for until they are gone."""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from .limits import RefusedError, overloaded

OCTETS = "application/octet-stream"
_PIECE_BYTES = 256 << 10


class Budget:
    """Bytes that may be held at once, shared by all requests."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    def take(self, count: int) -> Callable[[], None]:
        """Holds bytes; returns what gives them back, once. Raises RefusedError if too many are."""
        if self._held + count > self._most:
            raise overloaded(f"{self._held} bytes of answers")
        self._held += count
        left = [count]

        def give_back() -> None:
            self._held -= left[0]
            left[0] = 0

        return give_back


class AnswerResponse(StreamingResponse):
    """An answer that is sent piece by piece as the client takes it.

    A client that has not taken all of it after `seconds` is cut off. `sent` is called at the end,
    however it comes.
    """

    def __init__(
        self, answer: bytes, timing: float, *, seconds: float, sent: Callable[[], None]
    ) -> None:
        headers = {
            "Content-Length": str(len(answer)),
            "Server-Timing": f"answer;dur={1000 * timing:.3f}",
        }
        super().__init__(_pieces(answer), media_type=OCTETS, headers=headers)
        self._seconds = seconds
        self._sent = sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response."""
        try:
            async with asyncio.timeout(self._seconds):
                await super().__call__(scope, receive, send)
        finally:
            self._sent()


async def _pieces(answer: bytes) -> AsyncIterator[memoryview]:
    view = memoryview(answer)
    for first in range(0, len(view), _PIECE_BYTES):
        yield view[first : first + _PIECE_BYTES]


def refused_response(error: RefusedError) -> Response:
    """A refusal as JSON."""
    headers = {}
    if error.status == 503:
        headers["Retry-After"] = "1"
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in (408, 413):
        # An unread body cannot be skipped over: the connection ends with the refusal.
        headers["Connection"] = "close"
    return JSONResponse(error.to_dict(), error.status, headers)
