"""Counts and times of a service, as Prometheus reads them.

Every metric is about the service as a whole or about one of its tables. None has a label for a
client, an address, a key, a query or a row, and none counts rows apart from each other.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.types import Message, Scope, Send

from ... import __version__, _core
from ...errors import MismatchError
from ...pir import Server
from ...pir._wire import QueryMessage
from ._state import Connections, TableSource, TableStates

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_KEYS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_RELOADED = ("tables", "certificate", "configuration", "client_keys")
_ALERTED = ("internal_error", "overloaded", "answer_too_slow", "no_resources", "not_admitted")
REFUSED = "nescio.refused"
"""The entry of an ASGI scope that names the reason of a refusal."""

AnswerBatch = Callable[[Sequence[QueryMessage]], Sequence[bytes | MismatchError]]


class Metrics:
    """The metrics of one party's service, in a registry of their own.

    Counting costs some microseconds a request. Methods may be called from any thread.
    """

    def __init__(self, party: int) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.connections = Connections()
        self._states = TableStates(self.connections)
        self.registry.register(self._states)
        self._endpoints: dict[object, str] = {}
        self._children: dict[tuple[object, ...], Any] = {}
        ProcessCollector(registry=self.registry)
        self._make_requests()
        self._make_passes()
        self._make_journal()
        about = Gauge(
            "nescio_service_info",
            "The software and the party; always 1.",
            ["version", "party", "tier"],
            registry=self.registry,
        )
        about.labels(__version__, str(party), _core.active_tier()).set(1)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def _make_requests(self) -> None:
        self._requests = self._counter(
            "nescio_requests", "Requests answered or refused.", "endpoint", "status"
        )
        self._refused = self._counter(
            "nescio_refused", "Requests refused, by the code of the error.", "reason"
        )
        self._answer_seconds = self._histogram(
            "nescio_answer_seconds",
            "Seconds from the head of a query to the first byte of its answer.",
            _SECONDS,
            "table",
        )
        self._changes = self._counter(
            "nescio_changes", "Changes of rows acknowledged to the operator.", "table"
        )
        self._reloads = self._counter(
            "nescio_reloads", "Reloads of tables, certificates and client keys.", "what", "result"
        )
        # increase() misses the first event of a counter that begins with it
        for reason in _ALERTED:
            self._refused.labels(reason)
        for what in _RELOADED:
            for result in ("done", "refused"):
                self._reloads.labels(what, result)

    def _make_passes(self) -> None:
        self._keys = self._counter("nescio_keys", "Keys for rows that were answered.", "table")
        self._batch_keys = self._histogram(
            "nescio_batch_keys", "Keys answered in one pass over a table.", _KEYS, "table"
        )
        self._batch_requests = self._histogram(
            "nescio_batch_requests", "Requests answered in one pass.", _KEYS, "table"
        )
        self._passes = self._counter("nescio_passes", "Passes over a table.", "table")
        self._pass_seconds = self._counter(
            "nescio_pass_seconds", "Seconds spent in passes over a table.", "table"
        )
        self._read_bytes = self._counter(
            "nescio_read_bytes", "Bytes of rows and hashes that passes read.", "table"
        )

    def _make_journal(self) -> None:
        self._journal_records = self._counter(
            "nescio_journal_records", "Changes written to a journal.", "table"
        )
        self._journal_bytes = self._counter(
            "nescio_journal_bytes", "Bytes written to a journal.", "table"
        )
        self._journal_errors = self._counter(
            "nescio_journal_errors", "Changes refused because a journal was not written.", "table"
        )
        self._fsync_seconds = self._histogram(
            "nescio_journal_fsync_seconds", "Seconds of a journal's fsync.", _SECONDS, "table"
        )
        self._snapshots = self._counter(
            "nescio_snapshots", "Snapshots of a table.", "table", "result"
        )
        self._snapshot_seconds = Gauge(
            "nescio_snapshot_seconds",
            "Seconds that the latest snapshot took.",
            ["table"],
            registry=self.registry,
        )

    # Events

    def name_endpoints(self, endpoints: dict[object, str]) -> None:
        """Names the endpoints, by their functions; all others are counted as `other`."""
        self._endpoints.update(endpoints)

    def watch(self, scope: Scope, send: Send, table: str | None = None) -> Send:
        """Returns a `send` that counts the request of `scope` when its response starts.

        `table` is the name of the table whose rows the request asks for, if it does.
        """
        begin = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, message["status"], table, begin)
            await send(message)

        return counted

    def _count(self, scope: Scope, status: int, table: str | None, begin: float) -> None:
        endpoint = self._endpoints.get(scope.get("endpoint"), "other")
        if table is not None:
            endpoint = "/v1/tables/{name}/answer"
            if status == 200:
                self._child(self._answer_seconds, table).observe(time.perf_counter() - begin)
        elif status == 200 and endpoint == "/v1/tables/{name}/rows":
            self._changes.labels(scope["path_params"]["name"]).inc()
        self._child(self._requests, endpoint, status).inc()
        if REFUSED in scope:
            self.refused(scope[REFUSED])

    def _child(self, metric: Any, *labels: str | int) -> Any:  # noqa: ANN401 - of any kind
        """Returns a metric with labels; looking them up again would cost more than counting."""
        key = (id(metric), *labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*map(str, labels))
        return child

    def refused(self, reason: str) -> None:
        """Counts a refusal: the code of an error, or `connection` for one without a reply."""
        self._refused.labels(reason).inc()

    def reloaded(self, what: str, *, done: bool) -> None:
        """Counts a reload of `tables`, `certificate`, `configuration` or `client_keys`."""
        self._reloads.labels(what, "done" if done else "refused").inc()

    def counted_passes(self, table: str, server: Server) -> AnswerBatch:
        """Returns the server's `answer_batch`, which then counts its passes, keys and bytes."""

        def answer_batch(queries: Sequence[QueryMessage]) -> Sequence[bytes | MismatchError]:
            begin = time.perf_counter()
            answers = server.answer_batch(queries)
            seconds = time.perf_counter() - begin
            keys = sum(query.bin_keys for query in queries)
            self._keys.labels(table).inc(keys)
            self._batch_keys.labels(table).observe(keys)
            self._batch_requests.labels(table).observe(len(queries))
            self._passes.labels(table).inc()
            self._pass_seconds.labels(table).inc(seconds)
            tables = max((len(query.keys) for query in queries), default=1)
            self._read_bytes.labels(table).inc(server.pass_bytes(tables))
            return answers

        return answer_batch

    def journal(self, table: str) -> "JournalMetrics":
        """Returns what the journal of a table tells of itself."""
        return JournalMetrics(self, table)

    # State, read when it is asked for

    def add_table(self, name: str, source: TableSource) -> None:
        """Adds a table, whose size, version and queue are read at each scrape."""
        self._states.add(name, source)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Adds a number that `read` returns at each scrape."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def measure_machine(self, servers: Sequence[Server]) -> None:
        """Measures how fast this machine reads the largest table; a GPU's table is left out."""
        largest = max(servers, key=lambda server: server.table.bytes)
        rate = largest.measured_read()
        self.gauge(
            "nescio_machine_read_bytes_per_second",
            "Bytes a second at which the threads read the largest table, measured at the start.",
            lambda: rate,
        )


class JournalMetrics:
    """The events of one table's journal and snapshots."""

    def __init__(self, metrics: Metrics, table: str) -> None:
        self._records: Any = metrics._journal_records.labels(table)
        self._bytes: Any = metrics._journal_bytes.labels(table)
        self._errors: Any = metrics._journal_errors.labels(table)
        self._fsync: Any = metrics._fsync_seconds.labels(table)
        self._snapshots = metrics._snapshots
        for result in ("done", "failed"):  # from 0: an alert compares with the value before
            self._snapshots.labels(table, result)
        self._seconds: Any = metrics._snapshot_seconds.labels(table)
        self._table = table

    def written(self, count: int, fsync_seconds: float) -> None:
        """Counts a record of `count` bytes that is on the disk."""
        self._records.inc()
        self._bytes.inc(count)
        self._fsync.observe(fsync_seconds)

    def failed(self) -> None:
        """Counts a record that could not be written."""
        self._errors.inc()

    def snapshot(self, seconds: float, *, done: bool) -> None:
        """Counts a snapshot that took `seconds`, and if it is complete."""
        self._snapshots.labels(self._table, "done" if done else "failed").inc()
        if done:
            self._seconds.set(seconds)
