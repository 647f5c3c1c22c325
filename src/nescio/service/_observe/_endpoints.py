"""The endpoints for operators and their tools: /metrics, /readyz and /v1/openapi.json."""

import asyncio

from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ._metrics import Metrics
from ._openapi import document
from ._ready import Readiness


class Endpoints:
    """The endpoints of what is seen from outside."""

    def __init__(self, metrics: Metrics, readiness: Readiness) -> None:
        self._metrics = metrics
        self._readiness = readiness

    def public(self, *, metrics: bool) -> list[Route]:
        """Lists the endpoints of the public port; /metrics is among them only if asked for."""
        shown = [Route("/metrics", self.metrics)] if metrics else []
        described = Route("/v1/openapi.json", self.openapi)
        return [Route("/readyz", self.ready), described, *shown]

    async def ready(self, _: Request) -> Response:
        """Tells if the service should get requests, and what is wrong if not."""
        found = self._readiness.to_dict()
        return JSONResponse(found, 200 if found["status"] == "ready" else 503)

    async def openapi(self, _: Request) -> Response:
        """Describes the service by OpenAPI."""
        return JSONResponse(document())

    async def metrics(self, request: Request) -> Response:
        """Sends all metrics in the format that Prometheus asks for."""
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        body = await asyncio.to_thread(encode, self._metrics.registry)
        return Response(body, headers={"Content-Type": kind})
