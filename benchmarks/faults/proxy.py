"""A network between clients and a server: slow, cut, or one that carries only one direction."""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from types import TracebackType
from typing import Literal, Self

Mode = Literal["pass", "refuse", "silent", "no replies"]
Direction = Literal["request", "reply"]
_RESET = struct.pack("ii", 1, 0)  # closes with RST
_PIECE = 4096


class Proxy:
    """Carries TCP connections to a port of 127.0.0.1; its attributes may change at any time.

    `delay` is in seconds for each piece of 4,096 bytes, `rate` in bytes a second, `cut` the chance
    that a piece of a direction is cut in its middle and the connection reset. The mode `refuse`
    resets every connection, `silent` carries nothing, `no replies` carries requests only.
    """

    def __init__(self, port: int) -> None:
        self.delay = 0.0
        self.rate = float("inf")
        self.cut: dict[Direction, float] = {"request": 0.0, "reply": 0.0}
        self.cuts = 0
        self._mode: Mode = "pass"
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        """Starts the thread of the proxy."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the thread and its connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def become(self, mode: Mode) -> None:
        """Changes the mode. Connections that lost bytes, or may no longer exist, are reset."""
        before, self._mode = self._mode, mode
        if mode == "refuse" or before != "pass":
            self._loop.call_soon_threadsafe(self._reset_all)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            start = asyncio.start_server(self._carry, sock=self._listener)
            server = runner.get_loop().run_until_complete(start)
            runner.get_loop().run_forever()
            server.close()
            self._reset_all()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carries one connection."""
        self._open.add(writer)
        writers = [writer]
        try:
            if self._mode == "refuse":
                return
            there, server = await asyncio.open_connection("127.0.0.1", self._port)
            writers.append(server)
            self._open.add(server)
            await asyncio.gather(
                self._pump("request", reader, server), self._pump("reply", there, writer)
            )
        except (OSError, asyncio.IncompleteReadError, EOFError):
            pass
        finally:
            for one in writers:
                self._open.discard(one)
                _reset(one)

    async def _pump(
        self, direction: Direction, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        """Carries one direction until its end. Raises EOFError at the end and at a cut."""
        while data := await source.read(_PIECE):
            await asyncio.sleep(self.delay + len(data) / self.rate)
            if random.random() < self.cut[direction]:  # noqa: S311 - not a secret
                target.write(data[: len(data) // 2])
                await target.drain()
                self.cuts += 1
                raise EOFError
            if self._mode == "silent" or (self._mode == "no replies" and direction == "reply"):
                continue
            target.write(data)
            await target.drain()
        raise EOFError

    def _reset_all(self) -> None:
        for writer in list(self._open):
            _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closes a connection with RST."""
    with contextlib.suppress(OSError):
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
