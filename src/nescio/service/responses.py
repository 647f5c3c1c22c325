"""How answers leave: in pieces, in time, and accounted for until they are gone."""

import asyncio
from collections.abc import Callable

from starlette.responses import JSONResponse, Response
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


class AnswerResponse(Response):
    """An answer that is sent piece by piece as the client takes it.

    A client that has not taken all of it after `seconds` is cut off. `sent` is called at the end,
    however it comes. (Starlette's own StreamingResponse does as much, in five times the time.)
    """

    def __init__(
        self, answer: bytes, timing: float, *, seconds: float, sent: Callable[[], None]
    ) -> None:
        headers = {"Server-Timing": f"answer;dur={1000 * timing:.3f}"}
        super().__init__(answer, headers=headers, media_type=OCTETS)
        self._seconds = seconds
        self._sent = sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response."""
        del scope, receive
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            async with asyncio.timeout(self._seconds):
                await send(start)
                for first in range(0, len(self.body), _PIECE_BYTES):
                    end = first + _PIECE_BYTES
                    piece = memoryview(self.body)[first:end]
                    more = end < len(self.body)
                    await send({"type": "http.response.body", "body": piece, "more_body": more})
        finally:
            self._sent()


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
