"""HTTP responses: answers with a deadline and a memory budget, and refusals."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ._quotas import RefusedError, overloaded

OCTETS = "application/octet-stream"
_PIECE_BYTES = 256 << 10


class Budget:
    """A budget of bytes in memory, shared by all requests."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._held = 0

    def add(self, count: int) -> None:
        """Reserves bytes; a negative count releases them. Raises RefusedError over budget."""
        if self._held + count > self._max:
            raise overloaded(f"{self._held} bytes of queries and answers")
        self._held += count

    @property
    def held(self) -> int:
        """The bytes that are reserved."""
        return self._held

    def hold(self) -> "Holding":
        """Makes a reservation that the caller releases."""
        return Holding(self)

    @contextmanager
    def holding(self) -> "Iterator[Holding]":
        """Makes one request's reservation; leaving the block releases it unless it is kept."""
        held = self.hold()
        try:
            yield held
        finally:
            if not held.kept:
                held.release()


class Holding:
    """One request's reservation in a budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.count = 0
        self.kept = False

    def add(self, count: int) -> None:
        """Reserves more bytes. Raises RefusedError over budget."""
        self._budget.add(count)
        self.count += count

    def set(self, count: int) -> None:
        """Changes the number of reserved bytes. Raises RefusedError over budget."""
        self.add(count - self.count)

    def keep(self) -> None:
        """Leaves the release to the response."""
        self.kept = True

    def release(self) -> None:
        """Releases all reserved bytes."""
        self._budget.add(-self.count)
        self.count = 0


class AnswerResponse(Response):
    """An answer, sent in pieces as the client reads it.

    A client that has not read everything after `seconds` is disconnected. `sent` is called at the
    end in any case. (Starlette's StreamingResponse is similar, but starts a task group for each.)
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
            # The client is too slow (TimeoutError) or has gone; uvloop raises either error.
            # uvicorn closes the connection because the response is incomplete.
            return
        finally:
            self._sent()


def refused_response(error: RefusedError) -> Response:
    """Converts a refusal to a JSON response."""
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in (408, 413):
        # What is left of the body is too slow or too long to be read. Of other requests it is
        # read and dropped.
        headers["Connection"] = "close"
    return JSONResponse(error.to_dict(), error.status, headers)
