"""Connections that have not sent a request yet: the limits on their time and on their number."""

import copy
import ipaddress
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ...net import Channel, Listener

__all__ = ["MAX_ARRIVALS", "Arrival", "Arrivals"]

FIRST_SECONDS = 10.0  # for the TLS handshake and the first frame together
MAX_ARRIVALS = 64
MAX_OF_ADDRESS = 16
_IPV6_NETWORK_BITS = 64


class Arrival:
    """A connection whose request has not arrived.

    `open` does the TLS handshake and returns the channel. `address` is that of the client; of an
    IPv6 address the network, which one client has. `problem` tells why the server closed it.
    """

    def __init__(self, open_channel: Callable[[], Channel], own: socket.socket, host: str) -> None:
        self.open, self.address = open_channel, _network(host)
        self.problem: str | None = None
        self.end = time.monotonic() + FIRST_SECONDS
        self._own = own

    def close(self, problem: str) -> None:
        """Breaks the connection, also during its handshake: the thread that uses it gets errors."""
        self.problem = problem
        with suppress(OSError):  # the client has left
            self._own.shutdown(socket.SHUT_RDWR)

    def forget(self) -> None:
        """Frees what `close` needs; the channel stays open."""
        self._own.close()


class Arrivals:
    """Accepts connections, and closes the oldest ones without a request at a limit.

    At most `MAX_ARRIVALS` are kept, of which `MAX_OF_ADDRESS` have one address, each for
    `FIRST_SECONDS`. So connections that never ask keep no client out for long. Threads may share
    it.
    """

    def __init__(self, listener: Listener) -> None:
        self._door = _Door(listener)
        self._listener = copy.copy(listener)
        self._listener._socket = self._door  # type: ignore[assignment]  # the methods of `pending`
        self._lock = threading.Lock()
        self._waiting: dict[Arrival, None] = {}  # the oldest first

    def accept(self) -> Arrival:
        """Waits for a connection, and makes room for it. Raises ChannelError if it has ended."""
        found = Arrival(self._listener.pending(), *self._door.last)
        with self._lock:
            same = [one for one in self._waiting if one.address == found.address]
            if len(same) >= MAX_OF_ADDRESS:
                self._close(same[0], "newer connections of its address took its place")
            elif len(self._waiting) >= MAX_ARRIVALS:
                self._close(next(iter(self._waiting)), "newer connections took its place")
            self._waiting[found] = None
        return found

    def _close(self, one: Arrival, why: str) -> None:
        del self._waiting[one]
        one.close(f"no request arrived, and {why}")

    def leave(self, one: Arrival) -> None:
        """Forgets a connection: its request has arrived, or it has ended."""
        with self._lock:
            self._waiting.pop(one, None)
            one.forget()

    def expire(self) -> float | None:
        """Closes those whose time is over; returns the seconds until the next one's end."""
        with self._lock:
            for one in list(self._waiting):
                left = one.end - time.monotonic()
                if left > 0:
                    return left
                self._close(one, f"its {FIRST_SECONDS:g} s were over")
        return None

    def close(self) -> None:
        """Closes all of them."""
        with self._lock:
            for one in list(self._waiting):
                self._close(one, "the server stops")


class _Door:
    """The socket of a listener; keeps a descriptor and the host of the last connection."""

    last: tuple[socket.socket, str]

    def __init__(self, listener: Listener) -> None:
        self._socket = listener._socket
        self.settimeout = self._socket.settimeout

    def accept(self) -> tuple[socket.socket, object]:
        connection, address = self._socket.accept()
        self.last = connection.dup(), str(address[0])
        return connection, address


def _network(host: str) -> str:
    host = host.partition("%")[0]
    if ":" not in host:
        return host
    return str(ipaddress.ip_network((host, _IPV6_NETWORK_BITS), strict=False))
