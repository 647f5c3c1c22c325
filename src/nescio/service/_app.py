"""The HTTP service of one party, as an ASGI application.

    GET  /healthz                      health of the service
    GET  /readyz                       readiness: serves the version that it should
    GET  /metrics                      metrics for Prometheus, if they are public
    GET  /v1/openapi.json              the interface as an OpenAPI document
    GET  /v1/tables                    all tables
    GET  /v1/tables/{name}             one table: its public parameters, the party, the quotas
    GET  /v1/tables/{name}/tops        the hashes that clients check rows against
    GET  /v1/tables/{name}/layout      the text that says which content is where in the bins
    POST /v1/tables/{name}/answer      answers a query
    POST /v1/tables/{name}/rows        changes rows; needs the operator's token
    POST /v1/tables/{name}/rows/check  tests if a change would be made; needs the token
    GET  /v1/tables/{name}/rows/vacant lists the lowest vacant rows; needs the token

Heads of requests and connections are bounded in _protocol.py, before the application runs.

Security model: see `nescio.Client`. The service learns the client's address, the time, the client's
HTTP headers, and the number of rows of a lookup. It stores nothing and logs no bodies.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from .._arrays import shown
from ..errors import MessageError, ResourceError
from ..pir import Server
from . import _quotas as refuse
from ._access import Access, check_origins, with_origins
from ._changes import Changes
from ._exchange import check_token
from ._lookups import Lookups
from ._observe import Endpoints, Metrics, Readiness, observe
from ._observe._metrics import REFUSED
from ._quotas import Quotas, RefusedError
from ._responses import refused_response
from ._served import Served

_LOG = logging.getLogger(__name__)


class _App(Starlette):
    """Starlette's application, except that answers do not pass through its routes and middleware.

    Those would take a third of the time of a request, and an answer's time is a server's capacity.
    """

    def __init__(
        self,
        lookups: Lookups,
        names: Iterable[str],
        routes: Sequence[Route],
        metrics: Metrics,
        origins: Sequence[str] = (),
    ) -> None:
        super().__init__(routes=routes, exception_handlers=_HANDLERS, lifespan=lookups.lifespan)
        self._lookups = lookups
        self._metrics = metrics
        metrics.name_endpoints({route.endpoint: route.path for route in routes})
        self._names = {f"/v1/tables/{name}/answer": name for name in names}
        self._entry = with_origins(self._enter, origins)
        self.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._entry(scope, receive, send)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await super().__call__(scope, receive, send)
        name = self._names.get(scope["path"]) if scope["method"] == "POST" else None
        send = self._metrics.watch(scope, send, name)
        if name is None:
            return await super().__call__(scope, receive, send)
        request = Request(scope, receive, send)
        try:
            response = await self._lookups.answer_from(name, request)
        except Exception as error:
            kind = next(kind for kind in _HANDLERS if isinstance(error, kind))
            if kind is Exception:
                _LOG.exception("a request for an answer failed")
            response = await _HANDLERS[kind](request, error)
        return await response(scope, receive, send)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    request.scope[REFUSED] = error.code
    return refused_response(error)


async def _message_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MessageError)
    return await _refused(request, refuse.refusal(error))


async def _no_resources(request: Request, error: Exception) -> Response:
    _LOG.error("a request was refused: %s", error)
    return await _refused(request, refuse.no_resources(failed=False))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {shown(request.url.path)}: {error.detail}"
    response = await _refused(request, RefusedError(error.status_code, "http_error", message))
    response.headers.update(error.headers or {})
    return response


async def _disconnected(_: Request, error: Exception) -> Response:
    del error  # the client has gone
    return Response(status_code=499)


async def _internal_error(request: Request, error: Exception) -> Response:
    del error  # it is in the log; the client does not see its text
    message = "the server failed; its log says how"
    return await _refused(request, RefusedError(500, "internal_error", message))


_Handler = Callable[[Request, Exception], Coroutine[Any, Any, Response]]
_HANDLERS: dict[Any, _Handler] = {
    RefusedError: _refused,
    MessageError: _message_error,
    ResourceError: _no_resources,
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
    metrics: bool = False,
    access: Access | None = None,
    origins: Sequence[str] = (),
    admin_apart: bool = False,
) -> Starlette:
    """Makes the application that serves tables, by name, as one party (0 or 1).

    Each server must have been made with the same `party`. Clients that send `admin_token` may
    change rows. With `metrics` everyone may read /metrics, which has counts and times, and nothing
    of a single client or row. `access` says who may ask, and how much (by default, everyone).
    Web pages of the `origins` may ask (CORS). With `admin_apart` the operator's endpoints are in
    another application, `app.state.admin`, for another port, which has /metrics too.
    `app.state` has `budget`, `metrics`, `readiness`, `client_keys` and `batcher`.

    Raises ArgumentError for a server of another party, a name that does not fit into a URL, quotas
    that do not allow a request for one row, an invalid token, or if there is no table.
    """
    served = Served(servers, party, quotas or Quotas())
    if admin_token is not None:
        check_token(admin_token)
    seen, readiness = Metrics(served.party), Readiness()
    access = access or Access()
    lookups = Lookups(served, seen, access)
    changes, endpoints = Changes(served, admin_token), Endpoints(seen, readiness)
    routes = [*lookups.routes(), *(changes.absent() if admin_apart else changes.routes())]
    routes += endpoints.public(metrics=metrics)
    app = _App(lookups, served, routes, seen, check_origins(origins))
    app.state.budget, app.state.client_keys = lookups.budget, access.keys
    app.state.metrics, app.state.readiness = seen, readiness
    app.state.batcher = lookups.batcher
    if admin_apart:
        routes = [route for route in lookups.routes() if not route.path.endswith("/answer")]
        routes += [*changes.routes(), *endpoints.public(metrics=True)]
        app.state.admin = _App(lookups, (), routes, seen)
        app.state.admin.state.metrics = seen
    seen.connections.held_bytes = lambda: lookups.budget.held
    observe(seen, readiness, list(served), served, lookups.batcher)
    return app
