"""The metrics of a service: what is counted, and that nothing is about one client or row."""

import socket
import threading
import time
from itertools import pairwise

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import nescio
from nescio.service import Quotas, RemoteTable, TableAdmin, create_app
from service.conftest import QUOTAS, TOKENS, VALUES, post, raw_request, running

LABELS = {"endpoint", "status", "reason", "table", "version", "id", "party", "tier", "le"}
LABELS |= {"what", "result"}
ANSWER = "/v1/tables/{name}/answer"


def seen_app(party=0, token=None, quotas=QUOTAS, server=nescio.Server):
    servers = {"words": server(nescio.Table(VALUES), threads=1, party=party)}
    return create_app(servers, party=party, quotas=quotas, admin_token=token, metrics=True)


@pytest.fixture
def seen():
    """Two services with metrics."""
    with running(seen_app(0, TOKENS[0])) as first, running(seen_app(1, TOKENS[1])) as second:
        yield first, second


def samples(url):
    """Returns the values of all metrics by name and labels."""
    response = httpx.get(f"{url}/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def value(found, name, **labels):
    return found[name, *sorted(labels.items())]


def test_metrics_are_public_only_if_asked_for(url):
    assert httpx.get(f"{url}/metrics").status_code == 404


def test_lookups_are_counted_by_endpoint_and_status(seen):
    with RemoteTable(seen, "words") as table:
        for _ in range(3):
            table.lookup([5, 999])
    found = samples(seen[0])
    assert value(found, "nescio_requests_total", endpoint=ANSWER, status="200") == 3
    assert value(found, "nescio_keys_total", table="words") == 6
    assert value(found, "nescio_passes_total", table="words") == 3
    assert value(found, "nescio_batch_keys_sum", table="words") == 6
    assert value(found, "nescio_batch_requests_count", table="words") == 3
    assert value(found, "nescio_answer_seconds_count", table="words") == 3
    assert value(found, "nescio_pass_seconds_total", table="words") > 0
    described = value(found, "nescio_requests_total", endpoint="/v1/tables/{name}", status="200")
    assert described == 1


def test_bytes_read_are_those_of_the_rows_and_of_the_hashes(seen, client):
    post(seen[0], client.query([5]).keys[0])
    read = value(samples(seen[0]), "nescio_read_bytes_total", table="words")
    assert read == nescio.Table(VALUES).bytes


def test_refusals_are_counted_by_reason(seen, client):
    post(seen[0], b"no query")
    post(seen[0], client.query([5]).keys[1])  # of the other party
    httpx.get(f"{seen[0]}/v1/tables/wrods")
    httpx.get(f"{seen[0]}/nowhere")
    long = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"A" * (80 << 10)
    assert raw_request(seen[0], long).startswith(b"HTTP/1.1 431 ")
    found = samples(seen[0])
    reasons = ["malformed_message", "mismatch", "unknown_table", "http_error", "head_too_large"]
    assert {
        reason: value(found, "nescio_refused_total", reason=reason) for reason in reasons
    } == dict.fromkeys(reasons, 1)
    assert value(found, "nescio_requests_total", endpoint="other", status="404") == 1
    assert value(found, "nescio_requests_total", endpoint=ANSWER, status="409") == 1


def test_connections_that_are_refused_are_counted():
    with running(seen_app(), max_connections=1) as url:
        parts = httpx.URL(url)
        with socket.create_connection((parts.host, parts.port)) as busy:
            busy.sendall(b"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\n")
            busy.sendall(b"Content-Length: 9\r\n\r\n")
            time.sleep(0.2)
            with pytest.raises(httpx.HTTPError):
                httpx.get(f"{url}/healthz")
        found = samples(url)
    assert value(found, "nescio_refused_total", reason="connection") == 1


def test_a_change_and_the_version_after_it(seen):
    with TableAdmin(seen, "words", TOKENS) as admin:
        params = admin.update([17], VALUES[[18]], version="2026-11")
    found = samples(seen[0])
    assert value(found, "nescio_changes_total", table="words") == 1
    labels = {"table": "words", "version": "2026-11", "id": params.id.hex()}
    assert value(found, "nescio_table_version_info", **labels) == 1
    assert value(found, "nescio_table_rows", table="words") == 1000
    assert value(found, "nescio_ready") == 1


class WaitingServer(nescio.Server):
    """A server whose answers wait for a test."""

    may_answer = threading.Event()

    def answer_batch(self, queries):
        assert self.may_answer.wait(20)
        return super().answer_batch(queries)


def test_the_queue_and_the_connections(client):
    body = client.query(np.arange(100)).keys[0]
    head = f"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
    with running(seen_app(quotas=Quotas(batch_window=0), server=WaitingServer)) as url:
        address = (httpx.URL(url).host, httpx.URL(url).port)
        with socket.create_connection(address) as one, socket.create_connection(address) as two:
            for connection in (one, two):
                connection.sendall(f"{head}\r\n\r\n".encode() + body)
                time.sleep(0.3)
            found = wait_for_queue(url)
            WaitingServer.may_answer.set()
    assert value(found, "nescio_queue_requests", table="words") == 1
    assert value(found, "nescio_queue_keys", table="words") == 100
    assert value(found, "nescio_queue_clients", table="words") == 1
    assert value(found, "nescio_connections") == 3
    assert value(found, "nescio_held_bytes") > 2 * len(body)


def wait_for_queue(url):
    """Returns the samples as soon as a request waits, or after ten seconds."""
    for _ in range(50):
        found = samples(url)
        if value(found, "nescio_queue_requests", table="words"):
            break
        time.sleep(0.2)
    return found


def test_nothing_is_about_one_client_or_row(seen):
    with RemoteTable(seen, "words") as table:
        table.lookup([5])
        found = [samples(seen[0])]
        for row in (123, 877):
            table.lookup([row])
            found.append(samples(seen[0]))
    assert {label for labels in found[2] for label, _ in labels[1:]} <= LABELS
    assert not [key for key in found[2] if "127.0.0.1" in str(key)]
    assert set(found[1]) == set(found[2]), "the row of a lookup makes no metric of its own"
    counted = {
        key
        for key in found[1]
        if key[0].endswith(("_total", "_count"))
        and not key[0].startswith("process_")
        and "seconds_total" not in key[0]
    }
    first, second = (
        {key: after[key] - before.get(key, 0) for key in counted}
        for before, after in pairwise(found)
    )
    first.pop(("nescio_requests_total", ("endpoint", "/metrics"), ("status", "200")))
    second.pop(("nescio_requests_total", ("endpoint", "/metrics"), ("status", "200")))
    assert first == second, "lookups of two rows count alike"


def test_the_machine_is_measured_once():
    app = seen_app()
    app.state.metrics.measure_machine([nescio.Server(nescio.Table(VALUES), threads=1, party=0)])
    with running(app) as url:
        rate = value(samples(url), "nescio_machine_read_bytes_per_second")
        assert rate > 1e6
        assert value(samples(url), "nescio_machine_read_bytes_per_second") == rate


def test_counters_of_alerts_begin_at_zero():
    """An alert on increase() misses an event that makes its counter."""
    app = seen_app()
    app.state.metrics.journal("words")
    with running(app) as url:
        found = samples(url)
    for what in ("tables", "certificate", "configuration", "client_keys"):
        for result in ("done", "refused"):
            assert value(found, "nescio_reloads_total", what=what, result=result) == 0
    for reason in ("internal_error", "overloaded", "answer_too_slow", "no_resources"):
        assert value(found, "nescio_refused_total", reason=reason) == 0
    assert value(found, "nescio_refused_total", reason="not_admitted") == 0
    assert value(found, "nescio_journal_errors_total", table="words") == 0
    for result in ("done", "failed"):
        assert value(found, "nescio_snapshots_total", table="words", result=result) == 0


def test_a_journal_tells_what_it_writes():
    app = seen_app()
    journal = app.state.metrics.journal("words")
    journal.written(120, 0.004)
    journal.failed()
    journal.snapshot(1.5, done=True)
    journal.snapshot(0.1, done=False)
    with running(app) as url:
        found = samples(url)
    assert value(found, "nescio_journal_records_total", table="words") == 1
    assert value(found, "nescio_journal_bytes_total", table="words") == 120
    assert value(found, "nescio_journal_errors_total", table="words") == 1
    assert value(found, "nescio_journal_fsync_seconds_sum", table="words") == 0.004
    assert value(found, "nescio_snapshot_seconds", table="words") == 1.5
    assert value(found, "nescio_snapshots_total", table="words", result="done") == 1
    assert value(found, "nescio_snapshots_total", table="words", result="failed") == 1
