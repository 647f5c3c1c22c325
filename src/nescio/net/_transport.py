"""Transports of frames: queues in memory, and sockets with or without TLS.

A transport moves headers and data without interpreting them. It raises TimeoutError when the time
limits of `Patience` end, and other OSErrors when the connection ends. Only one thread may use a
transport at a time.
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

MIN_BYTES_PER_SECOND = 64 * 1024
"""A frame that takes longer than this rate counts as a stall, even with steady progress."""

PARTING_SECONDS = 1.0
"""Longest time for which a party tries to send its abort."""

MAX_TIMEOUT = 1_000_000
"""Seconds: more than eleven days, within the limits of every system's timers."""

_MAX_QUEUED_BYTES = 64 << 20
_SMALL_BYTES = 16 << 10
_CLOSED = "the other party closed the connection"


def check_timeout(timeout: object) -> float:
    """Checks a timeout in seconds. Raises ArgumentError."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ArgumentError(f"timeout: found {shown(timeout)}, expected a number of seconds")
    if not 0 < timeout <= MAX_TIMEOUT:
        raise ArgumentError(f"timeout: found {timeout}, expected above 0, at most {MAX_TIMEOUT}")
    return float(timeout)


class Patience(NamedTuple):
    """Time limits of one operation: seconds without progress, and seconds in total."""

    idle: float
    total: float

    @classmethod
    def for_bytes(cls, count: int, timeout: float) -> "Patience":
        """Limits for a frame of `count` bytes: `timeout` without progress, longer in total."""
        return cls(timeout, timeout + count / MIN_BYTES_PER_SECOND)

    def longer(self, seconds: float) -> "Patience":
        """Returns limits that are longer by `seconds`."""
        return Patience(self.idle + seconds, self.total + seconds)


class Deadline:
    """The limits of an operation that has started."""

    def __init__(self, patience: Patience) -> None:
        self._idle = patience.idle
        self._end = time.monotonic() + patience.total

    def left(self) -> float:
        """Returns the time limit of the next step. Raises TimeoutError if no time is left."""
        seconds = min(self._idle, self._end - time.monotonic())
        if seconds <= 0:
            raise TimeoutError
        return seconds


class Transport(Protocol):
    """Carries frames to and from the other party."""

    def write(self, header: bytes, data: memoryview, patience: Patience) -> None:
        """Sends a frame; `data` may change once this returns."""

    def read_header(self, size: int, patience: Patience) -> bytes:
        """Waits for the first `size` bytes of the next frame."""

    def poll_header(self, size: int) -> bytes | None:
        """Returns the first `size` bytes of the next frame, or None if they have not arrived."""

    def read_data(self, length: int, patience: Patience) -> bytearray:
        """Reads the data of the frame whose header was read."""

    def interrupt(self) -> None:
        """Ends the connection, from any thread: operations raise OSErrors from now on."""

    def close(self, *, linger: bool) -> None:
        """Closes the transport; with `linger`, waits so that all bytes written still arrive."""


class _Queue:
    """Frames that one party has sent and the other has not received."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.frames: deque[tuple[bytes, bytearray]] = deque()
        self.bytes = 0
        self.ended = False  # the writer has closed
        self.abandoned = False  # the reader has closed


class MemoryTransport:
    """One end of two queues; data are copied once, when they are sent.

    A queue holds at most 64 MiB, or one larger frame.
    """

    def __init__(self, inbox: _Queue, outbox: _Queue) -> None:
        self._in = inbox
        self._out = outbox
        self._data = bytearray()

    @classmethod
    def pair(cls) -> tuple["MemoryTransport", "MemoryTransport"]:
        """Creates both ends."""
        first, second = _Queue(), _Queue()
        return cls(first, second), cls(second, first)

    def write(self, header: bytes, data: memoryview, patience: Patience) -> None:
        """Sends a frame; waits only while the queue is full."""
        queue, copy, deadline = self._out, bytearray(data), Deadline(patience)
        with queue.changed:
            while queue.frames and queue.bytes + len(copy) > _MAX_QUEUED_BYTES:
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
        deadline = Deadline(patience)
        with self._in.changed:
            while (header := self._next(size)) is None:
                _wait(self._in.changed, deadline)
        return header

    def poll_header(self, size: int) -> bytes | None:
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

    def read_data(self, length: int, patience: Patience) -> bytearray:  # noqa: ARG002 - no wait
        """Returns the copy that was made when the frame was sent."""
        data, self._data = self._data, bytearray()
        return data if len(data) == length else data[:length]

    def interrupt(self) -> None:
        for queue in (self._in, self._out):
            with queue.changed:
                queue.ended = queue.abandoned = True
                queue.changed.notify_all()

    def close(self, *, linger: bool) -> None:  # noqa: ARG002 - nothing is lost in memory
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
    """Owns a connected stream socket, which may be wrapped in TLS."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._head = bytearray(64)
        self._head_bytes = 0
        # Small frames are sent immediately, without Nagle's delay.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(self, header: bytes, data: memoryview, patience: Patience) -> None:
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
        deadline = Deadline(patience)
        while self._head_bytes < size:
            self._socket.settimeout(deadline.left())
            self._read_some_header(size)
        self._head_bytes = 0
        return bytes(self._head[:size])

    def poll_header(self, size: int) -> bytes | None:
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
        deadline = Deadline(patience)
        data = bytearray(length)
        with memoryview(data) as view:
            filled = 0
            while filled < length:
                self._socket.settimeout(deadline.left())
                filled += self._read_some(view[filled:])
        return data

    def _read_some(self, view: memoryview) -> int:
        """Reads at least one byte."""
        count = self._socket.recv_into(view)
        if not count:
            raise ConnectionError(_CLOSED)
        return count

    def interrupt(self) -> None:
        with contextlib.suppress(OSError):  # of a socket that is closed, or not connected any more
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # also beneath TLS

    def close(self, *, linger: bool) -> None:
        """Closes the socket; with `linger`, first reads for one second at most.

        A socket that is closed with unread input resets the connection, and the other party may
        lose the last bytes sent.
        """
        with contextlib.suppress(OSError), self._socket:
            self._socket.shutdown(socket.SHUT_WR)
            if linger:
                deadline = Deadline(Patience(PARTING_SECONDS, PARTING_SECONDS))
                discarded = bytearray(1 << 18)
                while True:
                    self._socket.settimeout(deadline.left())
                    self._read_some(memoryview(discarded))


def _after(views: list[memoryview], sent: int) -> list[memoryview]:
    """Returns the views that remain after the first `sent` bytes."""
    rest = []
    for view in views:
        if sent < len(view):
            rest.append(view[sent:])
        sent = max(0, sent - len(view))
    return rest
