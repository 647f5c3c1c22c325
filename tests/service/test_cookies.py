"""Clients keep no cookies: one server's cookie would go to the other party."""

import asyncio
import contextlib

import numpy as np
import pytest

import nescio
from nescio.service import TableAdmin, create_app
from nescio.service._observe._peer import Peer
from service.conftest import QUOTAS, TOKENS, VALUES, running


class SetsCookies:
    """Adds cookies to each reply of an application, and records the cookies of requests."""

    cookies = (b"host=client-1; Path=/", b"domain=client-2; Domain=127.0.0.1; Path=/; Max-Age=9999")

    def __init__(self, app):
        self._app, self.requests, self.seen = app, 0, []

    async def __call__(self, scope, receive, send):
        async def adding(message):
            if message["type"] == "http.response.start":
                added = [(b"set-cookie", cookie) for cookie in self.cookies]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if scope["type"] == "http":
            self.requests += 1
            self.seen += [value for name, value in scope["headers"] if name == b"cookie"]
        await self._app(scope, receive, adding)


@pytest.fixture
def parties():
    apps = [
        SetsCookies(
            create_app(
                {"words": nescio.Server(nescio.Table(VALUES), party=party)},
                party=party,
                quotas=QUOTAS,
                admin_token=TOKENS[party],
            )
        )
        for party in (0, 1)
    ]
    with running(apps[0]) as first, running(apps[1]) as second:
        yield apps, (first, second)
    for app in apps:
        assert app.seen == []


def test_lookups_send_no_cookies(parties, remote):
    apps, urls = parties
    with remote(urls, "words") as table:
        for _ in range(2):
            assert np.array_equal(table.lookup([5]), VALUES[[5]])
    assert min(app.requests for app in apps) >= 3


def test_changes_send_no_cookies(parties):
    apps, urls = parties
    with TableAdmin(urls, "words", TOKENS) as admin:
        admin.update([5], VALUES[[6]])
    assert min(app.requests for app in apps) >= 2


def test_a_server_sends_its_peer_no_cookies(parties):
    apps, urls = parties

    async def ask():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await Peer(urls[1], ["words"], {}, seconds=0.05).run()

    asyncio.run(ask())
    assert apps[1].requests >= 2
