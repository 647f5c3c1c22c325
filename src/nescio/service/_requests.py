"""Reads the bodies of requests, within limits of length, time and memory."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from . import _quotas as refuse
from ._connection import client_address
from ._responses import Holding

_MAX_DIGITS = 19


def client_of(request: Request) -> str:
    """Returns the address that tells clients apart."""
    return client_address("" if request.client is None else request.client.host)


def declared_bytes(request: Request) -> int:
    """Returns the length of the body that the head declares; 0 if it declares none."""
    declared = request.headers.get("content-length", "")
    return int(declared) if declared.isdecimal() and len(declared) < _MAX_DIGITS else 0


def check_length(request: Request, limit: int) -> None:
    """Raises RefusedError if the head declares a body that is too long."""
    declared = request.headers.get("content-length", "0").lstrip("0") or "0"
    if declared.isdecimal() and int(declared) > limit:
        raise refuse.body_too_large(declared, limit)


async def read_body(
    request: Request, limit: int, seconds: float, held: Holding | None = None
) -> bytes:
    """Reads the body. Raises RefusedError if it is too long or too slow, or the budget is spent."""
    check_length(request, limit)
    body = bytearray()
    more = True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                part, more = message.get("body", b""), message.get("more_body", False)
                body += part
                if held is not None:
                    held.add(len(part))
                if len(body) > limit:
                    raise refuse.body_too_large(f"more than {limit}", limit)
    except TimeoutError:
        raise refuse.body_too_slow(seconds) from None
    return bytes(body)
