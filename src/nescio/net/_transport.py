"""What carries frames: queues in memory, and sockets with or without TLS.

A transport moves a header, then data; it knows nothing of what they mean. It raises TimeoutError
when patience ends and other OSErrors when the connection does. One thread uses it at a time.
"""

import contextlib
import socket
import ssl
import threading
import time
from collections import deque
from typing import NamedTuple, Protocol

from .._arrays import shown
from ..errors import ArgumentError

LEAST_BYTES_PER_SECOND = 64 * 1024
"""Slower than this for a whole frame is a stall, however steady."""

PARTING_SECONDS = 1.0
"""How long a party that stops tries to say so."""

MOST_TIMEOUT = 1_000_000
"""Seconds: more than eleven days, and what every system's clocks can wait for."""

_MOST_WAITING_BYTES = 64 << 20
_SMALL_BYTES = 16 << 10
_CLOSED = "the other party closed the connection"


def check_timeout(timeout: object) -> float:
    """A number of seconds to wait. Raises ArgumentError."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ArgumentError(f"timeout: found {shown(timeout)}, expected a number of seconds")
    if not 0 < timeout <= MOST_TIMEOUT:
        raise ArgumentError(f"timeout: found {timeout}, expected above 0, at most {MOST_TIMEOUT}")
    return float(timeout)


class Patience(NamedTuple):
    """How many seconds one operation may stand still, and how many it may take in all."""

    idle: float
    total: float

    @classmethod
    def for_bytes(cls, count: int, timeout: float) -> "Patience":
        """The rule for all frames: `timeout`, and longer as a whole the more bytes there are."""
        return cls(timeout, timeout + count / LEAST_BYTES_PER_SECOND)

    def longer(self, seconds: float) -> "Patience":
        """As patient, after so many seconds more."""
        return Patience(self.idle + seconds, self.total + seconds)


class Deadline:
    """Patience that has begun to run out."""

    def __init__(self, patience: Patience) -> None:
        self._idle = patience.idle
        self._end = time.monotonic() + patience.total

    def left(self) -> float:
        """How long the next step may take. Raises TimeoutError if that is no time at all."""
        seconds = min(self._idle, self._end - time.monotonic())
        if seconds <= 0:
            raise TimeoutError
        return seconds


class Transport(Protocol):
    """Frames to and from the other party."""

    def write(self, header: bytes, data: memoryview, patience: Patience) -> None:
        """Sends a frame; `data` may change once this returns."""

    def read_header(self, size: int, patience: Patience) -> bytes:
        """Waits for the next frame's first bytes."""

    def poll_header(self, size: int) -> bytes | None:
        """The next frame's first bytes if they are there already, without waiting."""

    def read_data(self, length: int, patience: Patience) -> bytearray:
        """The data of the frame whose header was read."""

    def close(self, *, linger: bool) -> None:
        """Ends it; with `linger` a little later, so that what was written still arrives."""


class _Queue:
    """Frames on their way to one party."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.frames: deque[tuple[bytes, bytearray]] = deque()
        self.bytes = 0
        self.ended = False  # nobody writes any more
        self.abandoned = False  # nobody reads any more


class MemoryTransport:
    """One end of two queues; data are copied once, when they are sent.

    What waits to be received is at most 64 MiB, or one frame.
    """

    def __init__(self, inbox: _Queue, outbox: _Queue) -> None:
        self._in = inbox
        self._out = outbox
        self._data = bytearray()

    @classmethod
    def pair(cls) -> tuple["MemoryTransport", "MemoryTransport"]:
        """Both ends."""
        first, second = _Queue(), _Queue()
        return cls(first, second), cls(second, first)

    def write(self, header: bytes, data: memoryview, patience: Patience) -> None:
        """As Transport says: waits only while too much has not been received yet."""
        queue, copy, deadline = self._out, bytearray(data), Deadline(patience)
        with queue.changed:
            while queue.frames and queue.bytes + len(copy) > _MOST_WAITING_BYTES:
                self._check_reader()
                _wait(queue.changed, deadline)
            self._check_reader()
            queue.frames.append((header, copy))
            queue.bytes += len(copy)
            queue.changed.notify_all()

    def _check_reader(self) -> None:
        if self._out.abandoned:
            raise ConnectionError(_CLOSED)

    def read_header(self, size: int, patience: Patience) -> bytes:
        """As Transport says."""
        deadline = Deadline(patience)
        with self._in.changed:
            while (header := self._next(size)) is None:
                _wait(self._in.changed, deadline)
        return header

    def poll_header(self, size: int) -> bytes | None:
        """As Transport says."""
        with self._in.changed:
            return self._next(size)

    def _next(self, size: int) -> bytes | None:
        queue = self._in
        if not queue.frames:
            if queue.ended:
                raise ConnectionError(_CLOSED)
            return None
        header, self._data = queue.frames.popleft()
        queue.bytes -= len(self._data)
        queue.changed.notify_all()
        # Both ends of a pair have the same link, so the size is right.
        assert len(header) == size
        return header

    def read_data(self, length: int, patience: Patience) -> bytearray:  # noqa: ARG002 - it is here
        """As Transport says: the copy that was sent, not another."""
        data, self._data = self._data, bytearray()
        return data if len(data) == length else data[:length]

    def close(self, *, linger: bool) -> None:  # noqa: ARG002 - nothing is lost in memory
        """As Transport says."""
        with self._out.changed:
            self._out.ended = True
            self._out.changed.notify_all()
        with self._in.changed:
            self._in.abandoned = True
            self._in.frames.clear()
            self._in.changed.notify_all()


def _wait(changed: threading.Condition, deadline: Deadline) -> None:
    if not changed.wait(deadline.left()):
        raise TimeoutError


class SocketTransport:
    """A connected stream socket, with TLS if it is wrapped so; takes it over."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._head = bytearray(64)
        self._head_bytes = 0
        # A frame leaves at once, also a small one after another.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(self, header: bytes, data: memoryview, patience: Patience) -> None:
        """As Transport says."""
        deadline = Deadline(patience)
        if len(data) <= _SMALL_BYTES:
            rest = [memoryview(header + bytes(data))]
        else:
            rest = [memoryview(header), data]
        secure = isinstance(self._socket, ssl.SSLSocket)
        while rest:
            self._socket.settimeout(deadline.left())
            sent = self._socket.send(rest[0]) if secure else self._socket.sendmsg(rest)
            rest = _after(rest, sent)

    def read_header(self, size: int, patience: Patience) -> bytes:
        """As Transport says."""
        deadline = Deadline(patience)
        while self._head_bytes < size:
            self._socket.settimeout(deadline.left())
            self._read_some_header(size)
        self._head_bytes = 0
        return bytes(self._head[:size])

    def poll_header(self, size: int) -> bytes | None:
        """As Transport says; what came of a header is kept."""
        self._socket.settimeout(0)
        try:
            while self._head_bytes < size:
                self._read_some_header(size)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        self._head_bytes = 0
        return bytes(self._head[:size])

    def _read_some_header(self, size: int) -> None:
        with memoryview(self._head) as view:
            self._head_bytes += self._read_some(view[self._head_bytes : size])

    def read_data(self, length: int, patience: Patience) -> bytearray:
        """As Transport says."""
        deadline = Deadline(patience)
        data = bytearray(length)
        with memoryview(data) as view:
            filled = 0
            while filled < length:
                self._socket.settimeout(deadline.left())
                filled += self._read_some(view[filled:])
        return data

    def _read_some(self, view: memoryview) -> int:
        """At least one byte."""
        count = self._socket.recv_into(view)
        if not count:
            raise ConnectionError(_CLOSED)
        return count

    def close(self, *, linger: bool) -> None:
        """As Transport says.

        A socket that is closed before all that came was read resets the connection, and what was
        sent last may be lost. With `linger` it is read, for a second at most.
        """
        with contextlib.suppress(OSError), self._socket:
            self._socket.shutdown(socket.SHUT_WR)
            if linger:
                deadline = Deadline(Patience(PARTING_SECONDS, PARTING_SECONDS))
                scrap = bytearray(1 << 18)
                while True:
                    self._socket.settimeout(deadline.left())
                    self._read_some(memoryview(scrap))


def _after(views: list[memoryview], sent: int) -> list[memoryview]:
    """What is left of some bytes in a row when the first ones are sent."""
    rest = []
    for view in views:
        if sent < len(view):
            rest.append(view[sent:])
        sent = max(0, sent - len(view))
    return rest
