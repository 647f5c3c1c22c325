"""The metrics that are read when they are asked for: tables, queues and connections."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ...pir import Table


class Queue(NamedTuple):
    """The requests of a table that wait for a pass, their keys, and how many clients sent them."""

    requests: int
    keys: int
    clients: int


class TableSource(Protocol):
    """A table that is served, which a reload may replace."""

    def table(self) -> Table:
        """Returns the table."""

    def queue(self) -> Queue:
        """Returns its queue."""


class Connections:
    """The open connections of all listeners, and the bytes of requests and answers in memory."""

    def __init__(self) -> None:
        self.counts: list[Callable[[], int]] = []
        self.held_bytes: Callable[[], int] | None = None


class TableStates(Collector):
    """Collects the state of all tables and connections at each scrape."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._sources: dict[str, TableSource] = {}

    def add(self, name: str, source: TableSource) -> None:
        """Adds a table by its name."""
        self._sources[name] = source

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yields the metrics without values."""
        return iter(_families().values())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields all metrics with their present values."""
        found = _families()
        found["connections"].add_metric([], sum(count() for count in self._connections.counts))
        if self._connections.held_bytes is not None:
            found["held_bytes"].add_metric([], self._connections.held_bytes())
        for name, source in self._sources.items():
            _add_table(found, name, source)
        return iter(found.values())


def _add_table(found: dict[str, GaugeMetricFamily], name: str, source: TableSource) -> None:
    table, queue = source.table(), source.queue()
    params = table.params
    found["table_rows"].add_metric([name], params.rows)
    found["table_bytes"].add_metric([name], table.bytes)
    found["table_version_info"].add_metric([name, params.version, params.id.hex()], 1)
    found["kept_versions"].add_metric([name], len(table.versions))
    found["queue_requests"].add_metric([name], queue.requests)
    found["queue_keys"].add_metric([name], queue.keys)
    found["queue_clients"].add_metric([name], queue.clients)


def _families() -> dict[str, GaugeMetricFamily]:
    def family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"nescio_{name}", text, labels=labels)

    return {
        name: family(name, text, *labels)
        for name, text, *labels in (
            ("connections", "Open connections."),
            ("held_bytes", "Bytes of queries and answers in memory."),
            ("table_rows", "Rows of a table.", "table"),
            ("table_bytes", "Bytes of a table's rows and hashes in memory.", "table"),
            ("table_version_info", "The current version; always 1.", "table", "version", "id"),
            ("kept_versions", "Versions that are answered, the current one included.", "table"),
            ("queue_requests", "Requests that wait for a pass.", "table"),
            ("queue_keys", "Keys that wait for a pass.", "table"),
            ("queue_clients", "Clients with a request that waits.", "table"),
        )
    }
