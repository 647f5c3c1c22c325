"""The endpoints of operators, who change tables: each needs the operator's token."""

import asyncio
import logging

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..errors import ArgumentError, FileError, ResourceError
from ..pir._change import MAX_HEAD_BYTES, check_head, make_change, summary
from . import _quotas as refuse
from ._access import AUDIT, audited
from ._operator.vacant import checked_count, vacant_message
from ._quotas import RefusedError
from ._requests import read_body
from ._served import Served
from ._token import TokenCheck

_LOG = logging.getLogger(__name__)


class Changes:
    """The endpoints that change the tables of one party. Without a token all are refused."""

    def __init__(self, served: Served, admin_token: str | None) -> None:
        self._served = served
        self._quotas = served.quotas
        self._token = TokenCheck(admin_token, served.quotas.wrong_token_seconds)

    def routes(self) -> list[Route]:
        """Lists the endpoints."""
        return [
            Route("/v1/tables/{name}/rows", self.change, methods=["POST"]),
            Route("/v1/tables/{name}/rows/check", self.check, methods=["POST"]),
            Route("/v1/tables/{name}/rows/vacant", self.vacant),
        ]

    def absent(self) -> list[Route]:
        """Lists the endpoints of a port that has none of these: all are refused, in any method."""
        paths = ("/v1/tables/{name}/rows", "/v1/tables/{name}/rows/{rest:path}")
        return [Route(path, self.refuse, methods=[]) for path in paths]

    async def refuse(self, _: Request) -> Response:
        """Refuses a request to a port without these endpoints."""
        raise refuse.other_port()

    @audited("change")
    async def change(self, request: Request) -> Response:
        """Makes a change, and describes the table after it."""
        name = self._served.known(request)
        await self._token.check(request)
        quotas = self._quotas
        body = await read_body(request, quotas.max_change_bytes, quotas.change_seconds)
        request.scope[AUDIT] = summary(body)
        try:
            params = await asyncio.to_thread(make_change, self._served.table(name), body)
        except FileError as error:
            _LOG.error("table %s: a change was refused: %s", name, error)
            raise refuse.not_durable(str(error)) from error
        except ArgumentError as error:
            raise RefusedError(422, "impossible_change", str(error)) from error
        except (ResourceError, MemoryError) as error:
            _LOG.error("a change was refused: %s", error)
            raise refuse.no_resources(failed=False) from error
        return JSONResponse(
            self._served.describe(name, params)
        )  # the version of this change, which may not be the latest

    @audited("check")
    async def check(self, request: Request) -> Response:
        """Tells if a change would be made, from its head."""
        name = self._served.known(request)
        await self._token.check(request)
        quotas = self._quotas
        head = await read_body(request, MAX_HEAD_BYTES, quotas.read_seconds)
        table = self._served.table(name)
        request.scope[AUDIT] = summary(head)
        try:
            check_head(table, head, quotas.max_change_bytes)
            if table.journal is not None:
                table.journal.check()
        except FileError as error:
            raise refuse.not_durable(str(error)) from error
        except ArgumentError as error:
            raise RefusedError(422, "impossible_change", str(error)) from error
        return JSONResponse(self._served.describe(name))

    @audited("vacant")
    async def vacant(self, request: Request) -> Response:
        """Lists the lowest vacant rows of a table."""
        name = self._served.known(request)
        await self._token.check(request)
        try:
            count = checked_count(request.query_params.get("count", "1"))
        except ArgumentError as error:
            raise RefusedError(400, "malformed", str(error)) from error
        table = self._served.table(name)
        return JSONResponse(await asyncio.to_thread(vacant_message, table, count))
