"""How answers leave: in pieces, in time, and accounted for until they are gone."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ._quotas import RefusedError, overloaded

OCTETS = "application/octet-stream"
_PIECE_BYTES = 256 << 10


class Budget:
    """Bytes that may be held at once, shared by all requests."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    def add(self, count: int) -> None:
        """Holds bytes; fewer than none gives some back. Raises RefusedError if too many are."""
        if self._held + count > self._most:
            raise overloaded(f"{self._held} bytes of queries and answers")
        self._held += count

    @contextmanager
    def holding(self) -> "Iterator[Holding]":
        """What one request holds, given back at the end of the block unless it is kept."""
        held = Holding(self)
        try:
            yield held
        finally:
            if not held.kept:
                held.release()


class Holding:
    """One request's share of a budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._count = 0
        self.kept = False

    def add(self, count: int) -> None:
        """Holds bytes more. Raises RefusedError if there is no room."""
        self._budget.add(count)
        self._count += count

    def keep(self) -> None:
        """Leaves it to someone else to release it."""
        self.kept = True

    def release(self) -> None:
        """Gives everything back."""
        self._budget.add(-self._count)
        self._count = 0


class AnswerResponse(Response):
    """An answer that is sent piece by piece as the client takes it.

    A client that has not taken all of it after `seconds` is cut off. `sent` is called at the end,
    however it comes. (Starlette's StreamingResponse does as much, with a group of tasks for each.)
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
        except (OSError, RuntimeError):
            # The client is too slow (TimeoutError) or has gone, which uvloop says in either way.
            # For want of a complete response uvicorn ends the connection.
            return
        finally:
            self._sent()


def refused_response(error: RefusedError) -> Response:
    """A refusal as JSON."""
    headers = {}
    if error.status == 503:
        headers["Retry-After"] = "1"
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in (408, 413, 503):
        # An unread body cannot be skipped over: the connection ends with the refusal.
        headers["Connection"] = "close"
    return JSONResponse(error.to_dict(), error.status, headers)
