"""Readiness: the version that a service should serve, the other party, the end."""

import asyncio
import contextlib
import threading
import time

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError
from nescio.service import RemoteTable, create_app
from nescio.service._observe import Check
from nescio.service._observe._peer import Peer
from nescio.service._reloaded import ReloadedServer
from service.conftest import QUOTAS, VALUES, running


def test_a_service_is_ready(url):
    response = httpx.get(f"{url}/readyz")
    assert response.status_code == 200
    found = response.json()
    assert found["status"] == "ready"
    assert set(found["checks"]) == {"tables", "answering", "draining"}
    own = nescio.Table(VALUES).params.id.hex()
    assert found["checks"]["tables"] == {"ok": True, "detail": f"words: version 1, id {own}"}


def app_of(party):
    servers = {"words": nescio.Server(nescio.Table(VALUES), threads=1, party=party)}
    return create_app(servers, party=party, quotas=QUOTAS), servers


def test_a_check_that_fails_is_named():
    app, _ = app_of(0)
    app.state.readiness.add("journal", lambda: Check(ok=False, detail="no space left"))
    with running(app) as url:
        response = httpx.get(f"{url}/readyz")
        assert httpx.get(f"{url}/healthz").status_code == 200
    assert response.status_code == 503
    assert response.json()["status"] == "not_ready"
    assert response.json()["checks"]["journal"] == {"ok": False, "detail": "no space left"}


def test_a_service_that_ends_is_not_ready():
    app, _ = app_of(0)
    with running(app) as url:
        app.state.readiness.drain()
        response = httpx.get(f"{url}/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["draining"] == {"ok": False, "detail": "ending"}


@contextlib.contextmanager
def watching(app, servers, peer_url):
    """Lets a service ask another every 0.05 s, in a thread."""
    peer = Peer(peer_url, list(servers), servers, seconds=0.05)
    peer.observe(app.state.metrics, app.state.readiness)
    loop = asyncio.new_event_loop()
    task = loop.create_task(peer.run())

    def run():
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def wait_for(url, holds, seconds=10):
    """Asks until the check `peer` is as expected; returns it."""
    end = time.monotonic() + seconds
    while True:
        response = httpx.get(f"{url}/readyz")
        check = response.json()["checks"]["peer"]
        if holds(check) or time.monotonic() > end:
            assert response.status_code == (200 if check["ok"] else 503)
            return check
        time.sleep(0.05)


def test_parties_with_and_without_a_common_version():
    (app, servers), (other, others) = app_of(0), app_of(1)
    with running(app) as url, running(other) as peer_url, watching(app, servers, peer_url):
        assert wait_for(url, lambda check: "asked" in check.get("detail", ""))["ok"]
        for _ in range(40):  # more than the versions that are kept
            servers["words"].table.update([1], VALUES[[2]])
        found = wait_for(url, lambda check: not check["ok"])
        assert found["detail"] == f"no version in common with {peer_url}: words"
        for _ in range(40):
            others["words"].table.update([1], VALUES[[2]])
        assert wait_for(url, lambda check: check["ok"])["ok"]


def test_a_reload_at_one_party_first_keeps_both_ready_and_takes_new_clients():
    """The old table is answered for a minute, and named to the other party and to clients."""
    old, new = nescio.Table(VALUES), nescio.Table(VALUES[::-1].copy(), version="2")
    servers = [
        {"words": ReloadedServer(nescio.Server(old, threads=1, party=p), kept_seconds=3)}
        for p in (0, 1)
    ]
    apps = [create_app(own, party=p, quotas=QUOTAS) for p, own in enumerate(servers)]
    with (
        running(apps[0]) as a,
        running(apps[1]) as b,
        watching(apps[0], servers[0], b),
        watching(apps[1], servers[1], a),
    ):
        servers[0]["words"].replace(nescio.Server(new, threads=1, party=0))
        with RemoteTable([a, b], "words", retries=0) as table:
            assert np.array_equal(table.lookup([5]), VALUES[[5]])
        listed = httpx.get(f"{a}/v1/tables/words").json()
        assert [params["version"] for params in listed["versions"]] == ["2", "1"]
        time.sleep(0.3)  # both have asked since
        for url in (a, b):
            check = wait_for(url, lambda check: "asked" in check.get("detail", ""))
            assert check["ok"]
        found = wait_for(b, lambda check: not check["ok"])  # party 1 did not follow in time
        assert found["detail"] == f"no version in common with {a}: words"
        listed = httpx.get(f"{a}/v1/tables/words").json()
        assert [params["version"] for params in listed["versions"]] == ["2"]
        gone = httpx.get(f"{a}/v1/tables/words/tops?version={old.params.id.hex()}")
        assert gone.status_code in (409, 410)


def test_a_peer_that_ends_when_it_had_no_common_version():
    """What it said last is not what it says after a repair: the service is ready."""
    (app, servers), (other, _) = app_of(0), app_of(1)
    with running(app) as url, contextlib.ExitStack() as stack:
        with running(other) as peer_url:
            stack.enter_context(watching(app, servers, peer_url))
            assert wait_for(url, lambda check: "asked" in check.get("detail", ""))["ok"]
            for _ in range(40):
                servers["words"].table.update([1], VALUES[[2]])
            assert not wait_for(url, lambda check: not check["ok"])["ok"]
        assert wait_for(url, lambda check: check["ok"])["detail"].startswith("unknown: ")


def test_a_peer_that_cannot_be_reached_does_not_fail_the_check():
    app, servers = app_of(0)
    with running(app) as url, watching(app, servers, "http://127.0.0.1:9"):
        found = wait_for(url, lambda check: "cannot be reached" in check.get("detail", ""))
    assert found["ok"]
    assert found["detail"].startswith("unknown: http://127.0.0.1:9")


@pytest.mark.parametrize(
    "sent", [b"[]", b"{}", b"null", b'{"id": "xyz"}', b"<html>", b"[" * 9999, b'{"versions": 1}']
)
def test_a_peer_that_sends_something_else(sent):
    async def other(scope, receive, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": sent})

    app, servers = app_of(0)
    with running(app) as url, running(other) as peer_url, watching(app, servers, peer_url):
        found = wait_for(url, lambda check: "sends another" in check.get("detail", ""))
    assert found["detail"] == f"unknown: {peer_url} sends another description than a table's"


def test_a_peer_without_a_url():
    with pytest.raises(ArgumentError, match=r"--peer: found 'b.example.org', expected"):
        Peer("b.example.org", [], {})
