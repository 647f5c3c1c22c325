"""Asks the other party for the versions of its tables.

Both parties may know each other's versions, which every client sees. Nothing else is asked, and
nothing is said of queries: the requests are `GET /v1/tables/NAME` at fixed times.
"""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import quote

from ..._arrays import shown
from ...errors import ArgumentError, NescioError
from ...pir import Server, TableParams
from .._exchange import table_url
from .._http import Http
from .._reloaded import answered_tables
from ._metrics import Metrics
from ._ready import Check, Readiness

_LOG = logging.getLogger(__name__)
_SECONDS = 5.0
_TIMEOUT = 3.0
_MAX_BYTES = 1 << 20
_MAX_VERSIONS = 64


class _Servers(Protocol):
    def __getitem__(self, name: str) -> Server: ...


class Peer:
    """The versions of the other party, asked for every five seconds.

    The check `peer` fails if both parties have no version of a table in common: lookups then fail
    until one party gets the version of the other. The check passes for an unreachable party,
    because clients may still reach it. Its text and a metric say that the party is unreachable.
    """

    def __init__(
        self,
        url: str,
        names: Sequence[str],
        servers: _Servers,
        *,
        tls: bool | ssl.SSLContext = True,
        seconds: float = _SECONDS,
    ) -> None:
        try:
            table_url(url, "words")
        except ArgumentError:
            raise ArgumentError(
                f"--peer: found {shown(url)}, expected the other party's URL: https://..."
            ) from None
        self._url = url.rstrip("/")
        self._names = names
        self._servers = servers
        self._tls = tls
        self._seconds = seconds
        self._found: dict[str, frozenset[bytes]] = {}
        self._error = "no reply yet"
        self._asked = 0.0

    def observe(self, metrics: Metrics, readiness: Readiness) -> None:
        """Adds the check, and metrics of the other party."""
        readiness.add("peer", self.check)
        metrics.gauge(
            "nescio_peer_reachable",
            "1 if the other party told its versions when it was last asked.",
            lambda: float(not self._error),
        )
        metrics.gauge(
            "nescio_peer_agrees",
            "1 if both parties answer a common version of each table, as far as is known.",
            lambda: float(self.check().ok),
        )

    def check(self) -> Check:
        """Tests if both parties answer a common version of each table, as far as is known."""
        if self._error:
            return Check(ok=True, detail=f"unknown: {self._error}")
        apart = [
            name
            for name, found in self._found.items()
            if found.isdisjoint(_own_versions(self._servers[name]))
        ]
        if apart:
            return Check(
                ok=False, detail=f"no version in common with {self._url}: {', '.join(apart)}"
            )
        return Check(ok=True, detail=f"asked {time.monotonic() - self._asked:.0f} s ago")

    async def run(self) -> None:
        """Asks until it is cancelled."""
        http = Http(timeout=_TIMEOUT, retries=0, tls=self._tls)
        try:
            while True:
                await self._ask(http)
                await asyncio.sleep(self._seconds)
        finally:
            await http.close()

    async def _ask(self, http: Http) -> None:
        before = self._error
        try:
            for name in self._names:
                body = await http.get(f"{self._url}/v1/tables/{quote(name, safe='')}", _MAX_BYTES)
                self._found[name] = _versions(json.loads(body))
            self._error, self._asked = "", time.monotonic()
        except NescioError as error:
            text = str(error)
            self._error = text if self._url in text else f"{self._url}: {text}"
        except (ValueError, TypeError, KeyError, RecursionError):
            self._error = f"{self._url} sends another description than a table's"
        if self._error and self._error != before:
            _LOG.warning("the other party's versions are not known: %s", self._error)
        elif before and not self._error:
            _LOG.info("the other party tells its versions")


def _own_versions(server: Server) -> frozenset[bytes]:
    tables = answered_tables(server)
    return frozenset(params.id for table in tables for params in table.versions)


def _versions(description: object) -> frozenset[bytes]:
    """Returns the ids of all versions in a description. Raises ValueError and others for others."""
    if not isinstance(description, dict):
        raise TypeError("description")
    listed = description.get("versions", [])
    if not isinstance(listed, list) or len(listed) > _MAX_VERSIONS:
        raise ValueError("versions")
    ids = {TableParams.from_json(json.dumps(params)).id for params in listed}
    return frozenset({bytes.fromhex(str(description["id"])), *ids})
