"""The log of operators' actions: one line for each, made or refused."""

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ...errors import MessageError
from .._quotas import RefusedError, refusal

_LOG = logging.getLogger("nescio.audit")
_S = TypeVar("_S")
AUDIT = "nescio.audit"
"""The entry of an ASGI scope that has what an action adds to its line: version, rows."""

_Endpoint = Callable[[_S, Request], Awaitable[Response]]


def audited(action: str) -> Callable[[_Endpoint[_S]], _Endpoint[_S]]:
    """Decorates an endpoint of operators, so that the log has a line for each call with the token.

    A line has the action, the client's address, the table, the version and the number of rows if
    they are known, and the result: `done`, or the code of the refusal. It never has the content of
    rows, their numbers, or a token. Calls without the token have lines of their own, which are
    few: see `TokenCheck`. Anyone could fill the log with more.
    """

    def decorate(endpoint: _Endpoint[_S]) -> _Endpoint[_S]:
        @functools.wraps(endpoint)
        async def wrapped(self: _S, request: Request) -> Response:
            try:
                response = await endpoint(self, request)
            except RefusedError as error:
                _write(action, request, error.code)
                raise
            except MessageError as error:
                _write(action, request, refusal(error).code)
                raise
            except BaseException as error:
                _write(action, request, type(error).__name__)
                raise
            _write(action, request, "done" if response.status_code < 400 else "refused")
            return response

        return wrapped

    return decorate


def admit(request: Request) -> None:
    """Notes that a call has the operator's token."""
    request.scope[AUDIT] = {}


def _write(action: str, request: Request, result: str) -> None:
    if AUDIT not in request.scope:
        return
    fields: dict[str, Any] = {
        "action": action,
        "address": "" if request.client is None else request.client.host,
        "table": str(request.path_params.get("name", ""))[:128],
        **request.scope[AUDIT],
        "result": result,
    }
    _LOG.info("an operator's action", extra=fields)
