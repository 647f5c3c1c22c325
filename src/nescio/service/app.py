"""The HTTP service of one party, as an ASGI application.

    GET  /healthz                      alive
    GET  /v1/tables                    the tables here
    GET  /v1/tables/{name}             one table: its public parameters, the party, the limits
    POST /v1/tables/{name}/answer      a query in, its answer out

Security model: see `nescio.Client`. The service learns the sender's address, the time, and how many
rows are asked for. It stores nothing and logs no bodies.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..errors import ArgumentError, MessageError
from ..pir import Server
from ..pir.wire import HEADER_BYTES
from . import limits as refuse
from .batcher import Batcher
from .limits import Limits, RefusedError

OCTETS = "application/octet-stream"


class _Service:
    """The tables of one party, and the endpoints."""

    def __init__(self, servers: Mapping[str, Server], party: int, limits: Limits) -> None:
        self._servers = dict(servers)
        self._party = party
        self._limits = limits
        self._batchers = {
            name: Batcher(server.answer_checked, limits) for name, server in servers.items()
        }

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        for batcher in self._batchers.values():
            batcher.start()
        try:
            yield
        finally:
            for batcher in self._batchers.values():
                await batcher.stop()

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def tables(self, _: Request) -> Response:
        return JSONResponse({"tables": [self._describe(name) for name in self._servers]})

    async def table(self, request: Request) -> Response:
        return JSONResponse(self._describe(self._known(request)))

    async def answer(self, request: Request) -> Response:
        name = self._known(request)
        server = self._servers[name]
        body = await self._read(request, self._limits.max_body_bytes)
        keys = (len(body) - HEADER_BYTES) // server.params.key_bytes
        if keys > self._limits.max_keys:
            raise refuse.too_many_keys(keys, self._limits.max_keys)
        try:
            query = server.check(body)
        except MessageError as error:
            raise refuse.refusal(error) from error
        answer, seconds = await self._batchers[name].submit(query)
        timing = {"Server-Timing": f"answer;dur={1000 * seconds:.3f}"}
        return Response(answer, media_type=OCTETS, headers=timing)

    def _describe(self, name: str) -> dict[str, object]:
        params = self._servers[name].params
        return {
            "name": name,
            "party": self._party,
            "params": params.to_dict(),
            "limits": {"max_keys": self._limits.keys(params)},
        }

    def _known(self, request: Request) -> str:
        name: str = request.path_params["name"]
        if name not in self._servers:
            raise refuse.unknown_table(name, list(self._servers))
        return name

    async def _read(self, request: Request, limit: int) -> bytes:
        """The body, if it is short enough and arrives in time."""
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > limit:
            raise refuse.body_too_large(declared, limit)
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.read_seconds):
                async for part in request.stream():
                    body += part
                    if len(body) > limit:
                        raise refuse.body_too_large(f"more than {limit}", limit)
        except TimeoutError:
            raise refuse.body_too_slow(self._limits.read_seconds) from None
        return bytes(body)


def _as_json(error: RefusedError) -> Response:
    headers = {"Retry-After": "1"} if error.status == 503 else {}
    # An unread body cannot be skipped over: the connection ends with the refusal.
    if error.status in (408, 413):
        headers["Connection"] = "close"
    return JSONResponse(error.to_dict(), error.status, headers)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return _as_json(error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}"
    response = _as_json(RefusedError(error.status_code, "http_error", message))
    response.headers.update(error.headers or {})
    return response


async def _disconnected(_: Request, error: Exception) -> Response:
    del error  # nobody is left to read this
    return Response(status_code=499)


async def _internal_error(_: Request, error: Exception) -> Response:
    del error  # Starlette logs it; its text stays here
    return _as_json(RefusedError(500, "internal_error", "the server failed; its log says how"))


def create_app(
    servers: Mapping[str, Server], *, party: int, limits: Limits | None = None
) -> Starlette:
    """The application that serves these tables, by name, as one party (0 or 1).

    Servers answer for `party` only if they were made with it. Raises ArgumentError if one was not,
    or if there is no table at all.
    """
    if not servers:
        raise ArgumentError("a service needs at least one table")
    for name, server in servers.items():
        if server.party != party:
            raise ArgumentError(
                f"table {name!r}: its server is for party {server.party}, the service for {party}"
            )
    service = _Service(servers, party, limits or Limits())
    return Starlette(
        routes=[
            Route("/healthz", service.health),
            Route("/v1/tables", service.tables),
            Route("/v1/tables/{name}", service.table),
            Route("/v1/tables/{name}/answer", service.answer, methods=["POST"]),
        ],
        exception_handlers={
            RefusedError: _refused,
            HTTPException: _http_error,
            ClientDisconnect: _disconnected,
            Exception: _internal_error,
        },
        lifespan=service.lifespan,
    )
