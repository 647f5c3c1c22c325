"""A relay between both parties of a session, which sees each frame and can change what arrives."""

import contextlib
import socket
import struct
import threading
from typing import NamedTuple

from nescio.net import Channel

HEADER = struct.Struct("<4sIQ")
PATIENCE = 20


class Frame(NamedTuple):
    """A frame on its way: its sender, its number and kind, and all its bytes."""

    sender: str
    number: int
    kind: str
    raw: bytes

    @property
    def data(self):
        return self.raw[HEADER.size :]

    def changed(self, *, kind=None, number=None, length=None, data=None):
        """Returns the frame's bytes with another head, or other data of the length it says."""
        data = self.data if data is None else data
        length = len(data) if length is None else length
        kind, number = kind or self.kind, self.number if number is None else number
        return HEADER.pack(kind.encode(), number, length) + data


class Cut(Exception):  # noqa: N818 - no error
    """Ends the connections to both parties, after some last bytes."""

    def __init__(self, last=b""):
        super().__init__()
        self.last = last


class Outcome(NamedTuple):
    """Values and errors of both parties, the client's first, and the frames that they sent."""

    values: list
    errors: list
    frames: list


def relayed(client, server, change=None, timeout=PATIENCE):
    """Runs a function of a channel for each party, over TCP, with a relay between them.

    `change(frame)` returns the bytes to pass on, or raises Cut. Neither party may hang.
    """
    outcome = Outcome([None, None], [None, None], [])
    change = change or (lambda frame: frame.raw)
    with contextlib.ExitStack() as opened:
        raws, channels = zip(*(_opened(opened, timeout) for _ in range(2)), strict=True)
        threads = [
            threading.Thread(target=_run, args=(outcome, which, work, channels[which]))
            for which, work in enumerate((client, server))
        ]
        threads += [
            threading.Thread(target=_pump, args=(outcome, name, raws[a], raws[1 - a], change))
            for a, name in enumerate(("client", "server"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads[:2]:
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"hangs: {outcome}"
        for thread in threads[2:]:
            thread.join(PATIENCE)
            assert not thread.is_alive()
    return outcome


def _opened(opened, timeout):
    """Connects a channel and a raw socket."""
    with Channel.listener(timeout=timeout) as listener:
        raw = opened.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return raw, listener.accept()


def _run(outcome, which, work, channel):
    try:
        outcome.values[which] = work(channel)
    except BaseException as error:
        outcome.errors[which] = error
    finally:
        channel.close()


def _pump(outcome, sender, source, target, change):
    """Passes the frames of one party on, until one of the two closes."""
    number = 0
    try:
        while head := _exactly(source, HEADER.size):
            kind, _, length = HEADER.unpack(head)
            frame = Frame(sender, number, kind.decode(), head + _exactly(source, length))
            number += 1
            if frame.kind == "ABRT":
                target.sendall(frame.raw)
                continue
            outcome.frames.append(frame)
            target.sendall(change(frame))
    except Cut as cut:
        with contextlib.suppress(OSError):
            target.sendall(cut.last)
            source.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _exactly(source, count):
    """Reads so many bytes; nothing at the end of the connection."""
    data = bytearray()
    while len(data) < count:
        more = source.recv(min(1 << 20, count - len(data)))
        if not more:
            if data:
                raise ConnectionError
            break
        data += more
    return bytes(data)
