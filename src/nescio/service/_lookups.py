"""The endpoints of clients, who look up rows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..pir import Server
from ..pir._tops import max_message_bytes
from ..pir._wire import estimate, least_lookups
from . import _quotas as refuse
from ._access import Access
from ._batcher import Batcher
from ._kept import NewerHeaders, TopsMessages, asked_version
from ._observe import Metrics
from ._requests import check_length, declared_bytes, read_body
from ._responses import AnswerResponse, Budget, Holding
from ._served import Served

_JSON = "application/json"


class Lookups:
    """The endpoints that describe the tables of one party and answer queries."""

    def __init__(self, served: Served, metrics: Metrics, access: Access) -> None:
        self._served = served
        self._access = access
        self._quotas = served.quotas
        self.budget = Budget(self._quotas.max_held_bytes)
        self._batchers = {
            name: Batcher(
                metrics.counted_passes(name, server),
                server.check,
                self._quotas,
                server.batch_keys,
                lanes=partial(_lanes, server),
            )
            for name, server in ((name, served[name]) for name in served)
        }
        self._newer = {name: NewerHeaders() for name in served}
        self._tops = {name: TopsMessages() for name in served}

    def batcher(self, name: str) -> Batcher:
        """Returns the batcher of a table."""
        return self._batchers[name]

    def routes(self) -> list[Route]:
        """Lists the endpoints."""
        return [
            Route("/healthz", self.health),
            Route("/v1/tables", self.tables),
            Route("/v1/tables/{name}", self.table),
            Route("/v1/tables/{name}/tops", self.tops),
            Route("/v1/tables/{name}/layout", self.layout),
            Route("/v1/tables/{name}/answer", self.answer, methods=["POST"]),
        ]

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Ends the answering threads with the application."""
        try:
            yield
        finally:
            for batcher in self._batchers.values():
                await batcher.stop()

    async def health(self, _: Request) -> Response:
        """Tells if the service is healthy."""
        healthy = all(batcher.healthy for batcher in self._batchers.values())
        return JSONResponse({"status": "ok" if healthy else "failed"}, 200 if healthy else 500)

    async def tables(self, _: Request) -> Response:
        """Describes all tables."""
        found = b",".join(self._served.description(name) for name in self._served)
        return Response(b'{"tables":[' + found + b"]}", media_type=_JSON)

    async def table(self, request: Request) -> Response:
        """Describes one table."""
        body = self._served.description(self._served.known(request))
        return Response(body, media_type=_JSON)

    async def tops(self, request: Request) -> Response:
        """Sends the tops of a table."""
        name = self._served.known(request)
        version = asked_version(request, self._served.tables(name))
        since = request.query_params.get("since", "")
        with self.budget.holding() as held:
            held.add(max_message_bytes(version.params))
            message = await self._tops[name].message(version, since)
            held.keep()
        return AnswerResponse(message, 0, seconds=self._quotas.write_seconds, sent=held.release)

    async def layout(self, request: Request) -> Response:
        """Sends the layout of a table."""
        name = self._served.known(request)
        layout = asked_version(request, self._served.tables(name)).state.layout
        if not layout:
            raise refuse.no_layout(name)
        with self.budget.holding() as held:
            held.add(len(layout))
            held.keep()
        return AnswerResponse(layout, 0, seconds=self._quotas.write_seconds, sent=held.release)

    async def answer(self, request: Request) -> Response:
        """Answers a query."""
        return await self.answer_from(self._served.known(request), request)

    async def answer_from(self, name: str, request: Request) -> Response:
        """Answers a query to the table of a name."""
        with self.budget.holding() as held:
            return await self._answer(request, name, held)

    async def _answer(self, request: Request, name: str, held: Holding) -> Response:
        server = self._served[name]
        params = server.params
        quotas, batcher = self._quotas, self._batchers[name]
        asking = self._access.enter(request)
        check_length(request, quotas.max_body_bytes)
        batcher.admit(
            asking.client, params.bin_keys * least_lookups(params, declared_bytes(request))
        )
        body = await read_body(request, quotas.max_body_bytes, quotas.read_seconds, held)
        if not server.knows(body):
            await asyncio.to_thread(server.learn)
        params = server.params_for(body)
        keys, answer_bytes = estimate(params, body)
        if keys > self._quotas.keys(params):
            raise refuse.too_many_keys(keys, self._quotas.keys(params))
        held.add(answer_bytes)
        query = server.check(body)
        self._access.spend(asking, query.bin_keys)
        answer, seconds = await batcher.submit(query, body, asking.client)
        held.keep()
        response = AnswerResponse(answer, seconds, seconds=quotas.write_seconds, sent=held.release)
        response.headers.update(self._newer[name].header(query.table, server.table))
        return response


def _lanes(server: Server) -> int:
    return server.lanes
