"""The HTTP service of one party, as an ASGI application.

    GET  /healthz                      health of the service
    GET  /v1/tables                    all tables
    GET  /v1/tables/{name}             one table: its public parameters, the party, the quotas
    GET  /v1/tables/{name}/tops        the hashes that clients check rows against
    GET  /v1/tables/{name}/layout      the text that says which content is where in the bins
    POST /v1/tables/{name}/answer      answers a query
    POST /v1/tables/{name}/rows        changes rows; needs the operator's token
    POST /v1/tables/{name}/rows/check  tests if a change would be made; needs the token

Heads of requests and connections are bounded in _protocol.py, before the application runs.

Security model: see `nescio.Client`. The service learns the client's address, the time, the client's
HTTP headers, and the number of rows of a lookup. It stores nothing and logs no bodies.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from .._arrays import as_count, shown
from ..errors import ArgumentError, MessageError, ResourceError
from ..pir import Server, Table, TableParams
from ..pir._change import MAX_HEAD_BYTES, check_head, make_change, row_kind
from ..pir._tops import encode_tops, max_message_bytes
from ..pir._wire import estimate
from . import _quotas as refuse
from ._batcher import Batcher
from ._exchange import check_token
from ._quotas import Quotas, RefusedError
from ._responses import AnswerResponse, Budget, Holding, refused_response
from ._token import TokenCheck

_LOG = logging.getLogger(__name__)
_ID = re.compile(r"[0-9a-f]{32}")
_NAME = re.compile(r"[A-Za-z0-9._~-]{1,128}")


class _Service:
    """The tables and endpoints of one party."""

    def __init__(
        self, servers: Mapping[str, Server], party: int, quotas: Quotas, admin_token: str | None
    ) -> None:
        self._servers = dict(servers)
        self._party = party
        self._quotas = quotas
        self._token = TokenCheck(admin_token, quotas.wrong_token_seconds)
        self.budget = Budget(quotas.max_held_bytes)
        self._batchers = {
            name: Batcher(server.answer_batch, quotas, server.batch_keys)
            for name, server in servers.items()
        }

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            for batcher in self._batchers.values():
                await batcher.stop()

    async def health(self, _: Request) -> Response:
        healthy = all(batcher.healthy for batcher in self._batchers.values())
        return JSONResponse({"status": "ok" if healthy else "failed"}, 200 if healthy else 500)

    async def tables(self, _: Request) -> Response:
        return JSONResponse({"tables": [self._describe(name) for name in self._servers]})

    async def table(self, request: Request) -> Response:
        return JSONResponse(self._describe(self._known(request)))

    async def tops(self, request: Request) -> Response:
        table = self._servers[self._known(request)].table
        since = request.query_params.get("since", "")
        known = bytes.fromhex(since) if _ID.fullmatch(since) else None
        with self.budget.holding() as held:
            held.add(max_message_bytes(table.params))
            message = await asyncio.to_thread(_tops_message, table, known)
            held.keep()
        return AnswerResponse(message, 0, seconds=self._quotas.write_seconds, sent=held.release)

    async def layout(self, request: Request) -> Response:
        name = self._known(request)
        layout = self._servers[name].table.layout
        if not layout:
            raise refuse.no_layout(name)
        with self.budget.holding() as held:
            held.add(len(layout))
            held.keep()
        return AnswerResponse(layout, 0, seconds=self._quotas.write_seconds, sent=held.release)

    async def answer(self, request: Request) -> Response:
        return await self.answer_from(self._known(request), request)

    async def answer_from(self, name: str, request: Request) -> Response:
        with self.budget.holding() as held:
            return await self._answer(request, name, held)

    async def _answer(self, request: Request, name: str, held: Holding) -> Response:
        server = self._servers[name]
        params = server.params
        quotas = self._quotas
        body = await _read(request, quotas.max_body_bytes, quotas.read_seconds, held)
        keys, answer_bytes = estimate(params, body)
        if keys > self._quotas.keys(params):
            raise refuse.too_many_keys(keys, self._quotas.keys(params))
        held.add(answer_bytes)
        query = server.check(body)
        answer, seconds = await self._batchers[name].submit(query)
        held.keep()
        return AnswerResponse(answer, seconds, seconds=quotas.write_seconds, sent=held.release)

    async def change(self, request: Request) -> Response:
        name = self._known(request)
        await self._token.check(request)
        quotas = self._quotas
        body = await _read(request, quotas.max_change_bytes, quotas.change_seconds)
        try:
            params = await asyncio.to_thread(make_change, self._servers[name].table, body)
        except ArgumentError as error:
            raise RefusedError(422, "impossible_change", str(error)) from error
        except (ResourceError, MemoryError) as error:
            _LOG.error("a change was refused: %s", error)
            raise refuse.no_resources(failed=False) from error
        return JSONResponse(
            self._describe(name, params)
        )  # the version of this change, which may not be the latest

    async def check_change(self, request: Request) -> Response:
        name = self._known(request)
        await self._token.check(request)
        quotas = self._quotas
        head = await _read(request, MAX_HEAD_BYTES, quotas.read_seconds)
        try:
            check_head(self._servers[name].table, head, quotas.max_change_bytes)
        except ArgumentError as error:
            raise RefusedError(422, "impossible_change", str(error)) from error
        return JSONResponse(self._describe(name))

    def _describe(self, name: str, params: TableParams | None = None) -> dict[str, object]:
        last = self._servers[name].table.last_change
        params = params or self._servers[name].params
        return {
            "name": name,
            "party": self._party,
            "id": params.id.hex(),
            "params": params.to_dict(),
            "changes": row_kind(self._servers[name].table).to_dict(),
            "last_change": None if last is None else last.content.hex(),
            "changed_id": None if last is None else last.changed.hex(),
            "next_version": self._servers[name].table.next_version,
            "limits": {
                "max_keys": self._quotas.keys(params),
                "max_body_bytes": self._quotas.max_body_bytes,
            },
        }

    def _known(self, request: Request) -> str:
        name: str = request.path_params["name"]
        if name not in self._servers:
            raise refuse.unknown_table(name, list(self._servers))
        return name


def _tops_message(table: Table, since: bytes | None) -> bytes:
    with table.reading() as state:
        return encode_tops(state, since)


async def _read(request: Request, limit: int, seconds: float, held: Holding | None = None) -> bytes:
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


class _App(Starlette):
    """Starlette's application, except that answers do not pass through its routes and middleware.

    Those would take a third of the time of a request, and an answer's time is a server's capacity.
    """

    def __init__(self, service: _Service, names: Iterable[str], routes: Sequence[Route]) -> None:
        super().__init__(routes=routes, exception_handlers=_HANDLERS, lifespan=service.lifespan)
        self._service = service
        self._names = {f"/v1/tables/{name}/answer": name for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in self._names:
            return await super().__call__(scope, receive, send)
        request = Request(scope, receive, send)
        try:
            response = await self._service.answer_from(self._names[scope["path"]], request)
        except Exception as error:
            kind = next(kind for kind in _HANDLERS if isinstance(error, kind))
            if kind is Exception:
                _LOG.exception("a request for an answer failed")
            response = await _HANDLERS[kind](request, error)
        return await response(scope, receive, send)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return refused_response(error)


async def _message_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, MessageError)
    return refused_response(refuse.refusal(error))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {shown(request.url.path)}: {error.detail}"
    response = refused_response(RefusedError(error.status_code, "http_error", message))
    response.headers.update(error.headers or {})
    return response


async def _disconnected(_: Request, error: Exception) -> Response:
    del error  # the client has gone
    return Response(status_code=499)


async def _internal_error(_: Request, error: Exception) -> Response:
    del error  # it is in the log; the client does not see its text
    message = "the server failed; its log says how"
    return refused_response(RefusedError(500, "internal_error", message))


_Handler = Callable[[Request, Exception], Coroutine[Any, Any, Response]]
_HANDLERS: dict[Any, _Handler] = {
    RefusedError: _refused,
    MessageError: _message_error,
    HTTPException: _http_error,
    ClientDisconnect: _disconnected,
    Exception: _internal_error,
}


def create_app(
    servers: Mapping[str, Server],
    *,
    party: int,
    quotas: Quotas | None = None,
    admin_token: str | None = None,
) -> Starlette:
    """Makes the application that serves tables, by name, as one party (0 or 1).

    Each server must have been made with the same `party`. Clients that send `admin_token` may
    change rows. Raises ArgumentError for a server of another party, a name that does not fit into a
    URL, quotas that do not allow a request for one row, an invalid token, or if there is no table.
    """
    quotas = quotas or Quotas()
    party = as_count(party, "party", 0, 1)
    if not servers:
        raise ArgumentError("servers: found none, expected at least one table")
    if admin_token is not None:
        check_token(admin_token)
    for name, server in servers.items():
        check_name(name)
        if server.party != party:
            raise ArgumentError(
                f"table {name!r}: its server is party {server.party}, the service is party {party}"
            )
        if quotas.keys(server.params) == 0:
            raise ArgumentError(
                f"table {name!r}: no request fits {quotas.max_body_bytes} bytes with its answer in "
                f"{quotas.max_answer_bytes}; keys for a lookup have "
                f"{server.params.verified_key_bytes} bytes, the answer "
                f"{server.params.verified_answer_bytes}"
            )
    service = _Service(servers, party, quotas, admin_token)
    app = _App(
        service,
        servers,
        [
            Route("/healthz", service.health),
            Route("/v1/tables", service.tables),
            Route("/v1/tables/{name}", service.table),
            Route("/v1/tables/{name}/tops", service.tops),
            Route("/v1/tables/{name}/layout", service.layout),
            Route("/v1/tables/{name}/answer", service.answer, methods=["POST"]),
            Route("/v1/tables/{name}/rows", service.change, methods=["POST"]),
            Route("/v1/tables/{name}/rows/check", service.check_change, methods=["POST"]),
        ],
    )
    app.router.redirect_slashes = False
    app.state.budget = service.budget
    return app


def check_name(name: str) -> None:
    """Raises ArgumentError for a table's name that does not fit into a URL unescaped."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ArgumentError(
            f"a table's name has 1 to 128 letters, digits, '.', '_', '~' or '-': found {name!r}"
        )
