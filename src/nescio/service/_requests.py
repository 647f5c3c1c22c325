"""Reads the bodies of requests, within limits of length, time and memory."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from . import _quotas as refuse
from ._responses import Holding


async def read_body(
    request: Request, limit: int, seconds: float, held: Holding | None = None
) -> bytes:
    """Reads the body. Raises RefusedError if it is too long or too slow, or the budget is spent."""
    declared = request.headers.get("content-length", "0").lstrip("0") or "0"
    if declared.isdecimal() and int(declared) > limit:
        raise refuse.body_too_large(declared, limit)
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
