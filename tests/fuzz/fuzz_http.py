"""Fuzzes the protocol of one HTTP connection, by coverage (atheris, libFuzzer).

    python tests/fuzz/fuzz_http.py -max_total_time=60

Whatever arrives, in whatever pieces, no exception leaves the protocol, and it stores no more than
its limits allow. Options are libFuzzer's.
"""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import atheris
from uvicorn import Config
from uvicorn.server import ServerState

from nescio.service._connection import Admission, ConnectionLimits, _protocol
from nescio.service._responses import Budget

LIMITS = ConnectionLimits(max_head_bytes=200, max_fields=4, max_pipelined=2)
MOST_HELD = (LIMITS.max_pipelined + 2) * (LIMITS.max_head_bytes + _protocol._PIECE_BYTES)
"""Heads that wait for a response, the one that is answered, and one that arrives."""
WORDS = [
    *(b"GET / HTTP/1.1\r\n", b"POST /v1/tables/words/answer HTTP/1.1\r\n", b"Host: x\r\n", b"\r\n"),
    *(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"5;a=b\r\nhello\r\n", b"0\r\n"),
    *(b"hello", b"A: b\r\n", b"Upgrade: x\r\nConnection: Upgrade\r\n", b"Expect: 100-continue\r\n"),
]


class Loop:
    """An event loop in which nothing happens."""

    def call_later(self, *_: object) -> asyncio.TimerHandle:
        """Returns a timer that never ends."""
        return asyncio.TimerHandle(0, print, (), LOOP)

    def create_task(self, work: Coroutine[Any, Any, None], **_: object) -> "asyncio.Future[None]":
        """Drops the work of the application."""
        work.close()
        return LOOP.create_future()


class Transport:
    """A transport that drops what is written."""

    closing = False

    def get_extra_info(self, *_: object) -> None:
        """Returns nothing."""

    def is_closing(self) -> bool:
        """Tests if the connection was closed."""
        return self.closing

    def close(self) -> None:
        """Closes the connection."""
        self.closing = True

    def can_write_eof(self) -> bool:
        """Tests if one direction can be closed."""
        return False

    def write(self, data: bytes) -> None:
        """Drops data."""

    def get_write_buffer_size(self) -> int:
        """Returns 0: nothing waits."""
        return 0

    abort = close

    def pause_reading(self) -> None:
        """Does nothing."""

    resume_reading = pause_reading


async def application(*_: object) -> None:
    """Never runs."""


LOOP = asyncio.new_event_loop()
CONFIG = Config(application, lifespan="off", ws="none", log_level="critical")
CONFIG.load()
for name, method in list(vars(_protocol.BoundedProtocol).items()):
    if callable(method) and not name.startswith("__"):
        atheris.instrument_func(method)


def one_input(data: bytes) -> None:
    """Runs one input of the fuzzer: pieces of requests, and random bytes between them."""
    provider = atheris.FuzzedDataProvider(data)
    budget = Budget(1000)
    protocol = _protocol.BoundedProtocol(
        CONFIG,
        ServerState(),
        {},
        Loop(),  # type: ignore[arg-type]
        limits=LIMITS,
        admission=Admission(LIMITS),
        budget=budget,
        refused=lambda _: None,
    )
    transport: Any = Transport()
    protocol.connection_made(transport)
    while provider.remaining_bytes() and not transport.closing:
        piece = provider.PickValueInList([*WORDS, None])
        if piece is None:
            piece = provider.ConsumeBytes(provider.ConsumeIntInRange(1, 300))
        protocol.data_received(piece * provider.ConsumeIntInRange(1, 40))
        assert 0 <= budget._held <= MOST_HELD
        assert len(protocol.headers or []) <= LIMITS.max_fields
        assert len(protocol.pipeline) <= LIMITS.max_pipelined
    protocol.connection_lost(None)
    assert budget._held == 0


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
