"""The connections of a server: their limits, and the choice of those that are closed."""

import asyncio
import ipaddress
import math
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Protocol

from ..._arrays import as_count, shown
from ...errors import ArgumentError

_MAX_CONNECTIONS = 1 << 20
_IPV6_NETWORK_BITS = 64
_CACHED_ADDRESSES = 4096


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on connections, before a request is complete.

    `max_connections` counts all connections, unfinished TLS handshakes included. At the maximum, a
    new connection closes the one that has been idle for the longest time, or is closed itself if
    none is idle. A connection whose client does not read its replies is idle after a second.
    `max_per_address` does the same for the connections from one address; for IPv6, an address is
    the first 64 bits. `head_seconds` is the time to send the head of a request, `handshake_seconds`
    the time for a TLS handshake, `write_seconds` the time that unread replies may keep the server
    from sending. `max_head_bytes` limits the head, and what frames the body: chunk extensions and
    trailers. `max_fields` limits the header fields of a request, `max_pipelined` the requests that
    a client sends before it gets a response.

    Raises ArgumentError for numbers that are out of range.
    """

    max_connections: int = 1024
    max_per_address: int = 256
    head_seconds: float = 30.0
    handshake_seconds: float = 10.0
    write_seconds: float = 60.0
    max_head_bytes: int = 64 << 10
    max_fields: int = 100
    max_pipelined: int = 16

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.type is int:
                as_count(value, one.name, 1, _MAX_CONNECTIONS)
            elif not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise ArgumentError(
                    f"{one.name}: found {shown(value)}, expected seconds greater than 0"
                )


class Connection(Protocol):
    """A connection that an Admission may close."""

    def evict(self) -> None:
        """Closes the connection at once."""


@dataclass
class _Place:
    """An address of clients: the number of its connections, and the idle ones, oldest first."""

    count: int = 0
    idle: dict[Connection, None] = field(default_factory=dict)


class Admission:
    """Counts connections by address, and closes idle ones to make room for new ones."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._places: dict[str, _Place] = {}
        self._addresses: dict[Connection, str] = {}
        self._idle: dict[Connection, None] = {}  # the oldest first

    def __len__(self) -> int:
        """The number of connections."""
        return len(self._addresses)

    def enter(self, connection: Connection, transport: asyncio.BaseTransport) -> bool:
        """Counts a new connection, as an idle one; returns False if there is no room for it."""
        address = _address(transport)
        place = self._places.get(address, _Place())
        if place.count >= self._limits.max_per_address and not self._make_room(place.idle):
            return False
        if len(self._addresses) >= self._limits.max_connections and not self._make_room(self._idle):
            return False
        self._places.setdefault(address, place).count += 1
        self._addresses[connection] = address
        self.idle(connection)
        return True

    def idle(self, connection: Connection) -> None:
        """Marks a connection as idle from now on: no request of it is being answered."""
        if (address := self._addresses.get(connection)) is not None:
            self.busy(connection)
            self._idle[connection] = self._places[address].idle[connection] = None

    def busy(self, connection: Connection) -> None:
        """Marks a connection as one that has sent the head of a request."""
        self._idle.pop(connection, None)
        if (address := self._addresses.get(connection)) is not None:
            self._places[address].idle.pop(connection, None)

    def leave(self, connection: Connection) -> None:
        """Forgets a connection; a second call has no effect."""
        self.busy(connection)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._places[address].count -= 1
            if not self._places[address].count:
                del self._places[address]

    def replace(self, old: Connection, new: Connection) -> bool:
        """Lets a connection take the place of another, as idle; False if that was closed."""
        address = self._addresses.get(old)
        if address is None:
            return False
        self.busy(old)
        del self._addresses[old]
        self._addresses[new] = address
        self.idle(new)
        return True

    def _make_room(self, idle: dict[Connection, None]) -> bool:
        """Closes the connection that has been idle for the longest time, if there is one."""
        oldest = next(iter(idle), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.evict()
        return True


def _address(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return client_address(str(peer[0]) if isinstance(peer, tuple) and peer else "")


@lru_cache(_CACHED_ADDRESSES)
def client_address(host: str) -> str:
    """Returns a client's address; of an IPv6 address its network, which one client has."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK_BITS), strict=False))
