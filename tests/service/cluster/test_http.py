"""Clients of a front over HTTP while a shard or the head of its table is away."""

import contextlib
import os
import signal
import time

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import ServerRefusedError, ServiceError
from nescio.service import RemoteTable, TableAdmin, create_app
from service.cluster.conftest import ROWS
from service.conftest import QUOTAS, TOKENS, running

pytestmark = [pytest.mark.timeout(180), pytest.mark.load]


@contextlib.contextmanager
def served(table):
    """Serves a table in shards as party 0, and the same as a whole as party 1."""
    other = nescio.Server(nescio.Table(table.whole[np.arange(ROWS)]), threads=1, party=1)
    servers = {"words": table.server}, {"words": other}
    apps = [
        create_app(own, party=number, quotas=QUOTAS, admin_token=TOKENS[number])
        for number, own in enumerate(servers)
    ]
    with running(apps[0]) as first, running(apps[1]) as second:
        yield first, second


def post(url, query):
    return httpx.post(f"{url}/v1/tables/words/answer", content=query, timeout=30)


def assert_refused(response):
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) >= 1
    assert response.json()["error"]["code"] == "no_resources"
    assert response.json()["error"]["message"].endswith("now: try again later")


def refusals(urls, rows, new, seconds=60.0):
    """Looks up rows until they come, and compares them; returns the refusals before."""
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with RemoteTable(urls, "words", retries=0) as remote:
                rows_found = remote.lookup(rows)
        except ServerRefusedError as error:
            found.append((error.status, error.code))
            time.sleep(0.05)
        else:
            np.testing.assert_array_equal(rows_found, new)
            return found
    raise AssertionError(f"no rows in {seconds} s")


def test_a_single_replica_is_refused_until_it_is_back(sharded, fresh_rows):
    table = sharded(shards=2, replicas=1)
    new = fresh_rows(2)
    with served(table) as urls, TableAdmin(urls, "words", TOKENS, retries=0) as admin:
        admin.update([3, 69_999], new)
        client = nescio.Client(table.server.params, table.server.tops)
        query = client.query([69_999]).keys[0]
        table.kill(1, 0)
        assert_refused(post(urls[0], query))  # a process takes longer than this to start
        assert set(refusals(urls, [3, 69_999], new)) <= {(503, "no_resources")}
        assert httpx.get(f"{urls[0]}/healthz").json() == {"status": "ok"}


def test_changes_are_refused_while_a_shard_is_away(sharded, fresh_rows):
    table = sharded(shards=2, replicas=1)
    new = fresh_rows(1)
    with served(table) as urls, TableAdmin(urls, "words", TOKENS, retries=0) as admin:
        table.kill(0, 0)
        refused = []
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                admin.update([3], new, version="2")
                break
            except ServiceError as error:
                refused.append(error)
                time.sleep(0.1)
        assert refused
        assert {error.status for error in refused} == {503}
        assert set(refusals(urls, [3], new)) <= {(503, "no_resources")}


def test_a_version_that_nobody_can_tell_is_refused(sharded, ray_cluster):
    """The front asks the head about it, which is away; lookups of known versions go on."""
    table = sharded(shards=1, replicas=1)
    other = nescio.Table(np.zeros((70_000, 32), np.uint8))
    unknown = nescio.Client(other.params, other.tops).query([5]).keys[0]
    known = nescio.Client(table.server.params, table.server.tops).query([5]).keys[0]
    with served(table) as urls:
        assert post(urls[0], unknown).status_code == 409
        head = ray_cluster.get_actor(f"{table.name}/head")
        pid = ray_cluster.get(head.__ray_call__.remote(lambda _: os.getpid()))
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(0.2)
            begin = time.monotonic()
            assert_refused(post(urls[0], unknown))
            assert time.monotonic() - begin < 10
            assert post(urls[0], known).status_code == 200
        finally:
            os.kill(pid, signal.SIGCONT)
