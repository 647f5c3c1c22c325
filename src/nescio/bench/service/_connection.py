"""A connection to the table that a benchmark serves, which does as little as possible."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

TABLE = "bench"
"""The name of the table."""

_STREAM_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply; the names of `fields` are in small letters."""

    status: int
    fields: Mapping[bytes, bytes]
    body: bytes


class Connection:
    """One connection to the table of a server, with one request at a time."""

    def __init__(
        self, netloc: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.netloc, self._reader, self._writer = netloc, reader, writer

    @classmethod
    async def open(cls, url: str, address: str | None = None) -> "Connection":
        """Connects to a server, from an address of this machine if one is named."""
        parts = urlsplit(url)
        local = None if address is None else (address, 0)
        streams = await asyncio.open_connection(
            parts.hostname, parts.port, local_addr=local, limit=_STREAM_BYTES
        )
        return cls(parts.netloc, *streams)

    async def ask(
        self, method: str, path: str, body: bytes = b"", fields: Mapping[str, str] | None = None
    ) -> Reply:
        """Sends a request about the table; returns the reply."""
        lines = [
            f"{method} /v1/tables/{TABLE}{path} HTTP/1.1",
            f"Host: {self.netloc}",
            *(f"{name}: {value}" for name, value in (fields or {}).items()),
            f"Content-Length: {len(body)}\r\n\r\n",
        ]
        self._writer.write("\r\n".join(lines).encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        pairs = [line.split(b": ", 1) for line in head[1:] if line]
        found = {name.lower(): value for name, value in pairs}
        content = await self._reader.readexactly(int(found[b"content-length"]))
        return Reply(int(head[0].split()[1]), found, content)

    def close(self) -> None:
        """Closes the connection."""
        self._writer.transport.abort()
