"""The operator's token at a server: checked in constant time, wrong ones slowly and logged."""

import asyncio
import hmac
import logging
import time

from starlette.requests import Request

from . import _quotas as refuse
from ._access import admit

_LOG = logging.getLogger(__name__)
_LOG_SECONDS = 10.0


class TokenCheck:
    """Admits requests with the operator's token.

    A request with a wrong token gets its refusal after `wrong_token_seconds`. The log has a line
    with the client's address for the first one, and at most one line in 10 seconds for later ones.
    """

    def __init__(self, token: str | None, wrong_token_seconds: float) -> None:
        self._expected = None if token is None else f"Bearer {token}".encode()
        self._seconds = wrong_token_seconds
        self._wrong = 0  # since the last line in the log
        self._next_line = 0.0

    async def check(self, request: Request) -> None:
        """Raises RefusedError for a wrong or missing token, or if no changes are accepted."""
        if self._expected is None:
            raise refuse.no_changes()
        given = request.headers.get("authorization", "").encode()
        if hmac.compare_digest(given, self._expected):
            admit(request)
            return
        self._note(request)
        await asyncio.sleep(self._seconds)
        raise refuse.not_admitted()

    def _note(self, request: Request) -> None:
        self._wrong += 1
        if time.monotonic() < self._next_line:
            return
        client = "an unknown address" if request.client is None else request.client.host
        _LOG.warning(
            "%d request(s) without the operator's token since the last such line, the latest from "
            "%s for %s",
            self._wrong,
            client,
            request.path_params["name"],
        )
        self._wrong = 0
        self._next_line = time.monotonic() + _LOG_SECONDS
