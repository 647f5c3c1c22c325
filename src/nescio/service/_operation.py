"""The course of a running service: what runs beside it, its reloads, its end."""

import asyncio
import logging
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import uvicorn

from ..errors import ArgumentError
from ._observe import Readiness

_LOG = logging.getLogger(__name__)
_DRAIN_SECONDS = 5.0
_MAX_DRAIN_SECONDS = 86400


class HangUps:
    """Remembers a SIGHUP that arrives during the start, which would end the process.

    A start may read tables for minutes, and a hook that renews certificates does not wait for it.
    """

    def __init__(self) -> None:
        self.pending = False
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, self._note)

    def _note(self, _: int, __: FrameType | None) -> None:
        self.pending = True


@dataclass(frozen=True, slots=True)
class Operation:
    """The course of a service: what runs beside it, what SIGHUP does, and its end.

    `jobs` run in the event loop from the start to the end. `reload` is called in a thread for a
    SIGHUP, with the context of TLS; once at the start if `hang_ups` has one. `drain_seconds` is the
    maximum time for requests that have begun when a signal ends the service.
    """

    drain_seconds: float = _DRAIN_SECONDS
    jobs: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
    reload: Callable[[ssl.SSLContext | None], None] | None = None
    hang_ups: HangUps | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.drain_seconds <= _MAX_DRAIN_SECONDS:
            raise ArgumentError(
                f"--drain-seconds: found {self.drain_seconds}, expected 0 to {_MAX_DRAIN_SECONDS}"
            )


class OperatedServer(uvicorn.Server):
    """uvicorn's server, with a callback when it is ready, jobs, a reload and a readiness.

    `beside` is another application and its listening socket.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], None],
        operation: Operation,
        readiness: Readiness,
        context: ssl.SSLContext | None,
        *,
        beside: tuple[uvicorn.Config, socket.socket] | None = None,
    ) -> None:
        super().__init__(config)
        self._beside = beside
        self._ready = ready
        self._operation = operation
        self._readiness = readiness
        self._context = context
        self._tasks: list[asyncio.Task[None]] = []
        self._reloads = 0  # signals that wait for a reload, or for the end of the one before

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        loop = asyncio.get_running_loop()
        if self._beside is not None:
            await self._listen(*self._beside)
        self._tasks = [loop.create_task(job()) for job in self._operation.jobs]
        main = threading.current_thread() is threading.main_thread()
        if self._operation.reload is not None and main:
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
            if self._operation.hang_ups is not None and self._operation.hang_ups.pending:
                self._hang_up()
        self._ready()

    async def _listen(self, config: uvicorn.Config, listener: socket.socket) -> None:
        """Serves another application too, which shares the connections, signals and the end."""
        config.load()
        make: Callable[..., asyncio.Protocol] = config.http_protocol_class
        state, loop = self.server_state, asyncio.get_running_loop()
        self.servers.append(
            await loop.create_server(
                lambda: make(config=config, server_state=state, app_state={}, _loop=loop),
                sock=listener,
                backlog=config.backlog,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._readiness.drain()
        for task in self._tasks:
            task.cancel()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._readiness.drain()
        super().handle_exit(sig, frame)

    def _hang_up(self) -> None:
        """Starts a reload; signals that come during one start a single other after it."""
        self._reloads = min(2, self._reloads + 1)
        if self._reloads == 1:
            self._tasks.append(asyncio.get_running_loop().create_task(self._reload()))

    async def _reload(self) -> None:
        assert self._operation.reload is not None
        while self._reloads:
            try:
                await asyncio.to_thread(self._operation.reload, self._context)
            except Exception:
                _LOG.exception("a reload failed; the service goes on as it was")
            self._reloads -= 1
