"""Both servers of a table, as their operator reaches them."""

import asyncio
import ssl
from collections.abc import Sequence

from ...errors import ArgumentError, NescioError, ServerRefusedError
from ...pir._change import head_of
from .._exchange import Description, check_servers, check_token, table_url
from .._http import Http
from .vacant import Vacant, max_reply_bytes

_NOT_FOUND = 404


class Parties:
    """Sends requests with the operator's tokens to both servers of a table.

    `servers` may be the addresses of the operator's ports, which answer all of these requests.
    Raises ArgumentError for invalid servers or tokens.
    """

    def __init__(
        self,
        servers: Sequence[str],
        table: str,
        tokens: Sequence[str] | None,
        *,
        timeout: float,
        retries: int,
        tls: bool | ssl.SSLContext,
    ) -> None:
        check_servers(servers)
        if tokens is not None and len(tokens) != 2:
            raise ArgumentError(f"tokens: found {len(tokens)}, expected two tokens, one per server")
        for token in tokens or ():
            check_token(token)
        self.urls = [table_url(server, table) for server in servers]
        self._tokens = dict(zip(self.urls, tokens or (), strict=tokens is not None))
        self._roots = dict(zip(self.urls, (url.rstrip("/") for url in servers), strict=True))
        self.http = Http(timeout=timeout, retries=retries, tls=tls)

    def check_tokens(self) -> None:
        """Raises ArgumentError if there are no tokens."""
        if not self._tokens:
            raise ArgumentError("tokens: found None, expected two tokens, one per server")

    async def describe(self) -> list[Description]:
        """Describes both servers, party 0 first, so that all operators change them in one order."""
        return in_order([await self.describe_one(url) for url in self.urls])

    async def try_describe(self) -> list[Description | NescioError]:
        """Describes each server, in the order of `urls`, or says why it cannot be described."""
        return list(await asyncio.gather(*map(self._try_one, self.urls)))

    async def _try_one(self, url: str) -> Description | NescioError:
        try:
            return await self.describe_one(url)
        except NescioError as error:
            return error

    async def describe_one(self, url: str) -> Description:
        """Describes one server."""
        return Description.parse(url, await self.http.get(url))

    async def is_ready(self, url: str) -> bool:
        """Tests if the server of a table's address says that it is ready, or healthy."""
        try:
            await self.http.get(f"{self._roots[url]}/readyz")
        except ServerRefusedError as error:
            return error.status == _NOT_FOUND and await self._is_healthy(url)
        except NescioError:
            return False
        return True

    async def _is_healthy(self, url: str) -> bool:
        """Tests the health of a server of an older release, which does not tell if it is ready."""
        try:
            await self.http.get(f"{self._roots[url]}/healthz")
        except NescioError:
            return False
        return True

    async def check(self, servers: Sequence[Description], body: bytes) -> None:
        """Asks servers if they would make a change, before it is made at any of them."""
        for server in servers:
            await self._post(server.url, "rows/check", head_of(body))

    async def make(self, url: str, body: bytes) -> Description:
        """Makes a change at one server, which applies it only once; returns the table."""
        return await self._post(url, "rows", body)

    async def vacant(self, url: str, count: int) -> Vacant:
        """Lists the `count` lowest vacant rows of a server's table."""
        path, most = f"{url}/rows/vacant?count={count}", max_reply_bytes(count)
        reply = await self.http.get(path, most, headers=self._authorization(url))
        return Vacant.parse(url, reply)

    async def _post(self, url: str, path: str, body: bytes) -> Description:
        reply = await self.http.post(f"{url}/{path}", body, headers=self._authorization(url))
        return Description.parse(url, reply.body)

    def _authorization(self, url: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._tokens[url]}"}


def in_order(servers: Sequence[Description]) -> list[Description]:
    """Returns descriptions, party 0 first. Raises ArgumentError for two servers of one party."""
    first, second = sorted(servers, key=lambda server: server.party)
    if first.party == second.party:
        raise ArgumentError(
            f"servers: found two of party {first.party}, {first.url} and {second.url}, "
            "expected one of each party"
        )
    return [first, second]
