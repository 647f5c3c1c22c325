"""The state and the checks of each table that is served."""

from collections.abc import Callable
from typing import Protocol

from ...pir import Server, Table
from ._metrics import Metrics
from ._ready import Check, Readiness
from ._state import Queue


class _Servers(Protocol):
    def __getitem__(self, name: str) -> Server: ...


class _Batcher(Protocol):
    @property
    def healthy(self) -> bool: ...

    @property
    def waiting(self) -> tuple[int, int, int]: ...


class _Observed:
    """A table that is served, with its queue. A reload may replace both."""

    def __init__(self, name: str, servers: _Servers, batcher: Callable[[str], _Batcher]) -> None:
        self._name = name
        self._servers = servers
        self._batcher = batcher

    def table(self) -> Table:
        """Returns the table."""
        return self._servers[self._name].table

    def queue(self) -> Queue:
        """Returns the queue of requests."""
        return Queue(*self._batcher(self._name).waiting)


def observe(
    metrics: Metrics,
    readiness: Readiness,
    names: list[str],
    servers: _Servers,
    batcher: Callable[[str], _Batcher],
) -> None:
    """Adds the metrics and checks of all tables."""
    for name in names:
        metrics.add_table(name, _Observed(name, servers, batcher))
    readiness.add("tables", lambda: Check(ok=True, detail=_versions(names, servers)))
    readiness.add("answering", lambda: _answering(names, batcher))
    metrics.gauge("nescio_ready", "1 if /readyz has status 200.", lambda: float(readiness.ready))


def _versions(names: list[str], servers: _Servers) -> str:
    found = ((name, servers[name].params) for name in names)
    return ", ".join(f"{name}: version {p.version}, id {p.id.hex()}" for name, p in found)


def _answering(names: list[str], batcher: Callable[[str], _Batcher]) -> Check:
    failed = [name for name in names if not batcher(name).healthy]
    if not failed:
        return Check(ok=True)
    return Check(ok=False, detail=f"a thread or a device has failed: {', '.join(failed)}")
