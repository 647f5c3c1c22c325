"""Two parties of a table that fail and restart, and what their operator does."""

import contextlib

import numpy as np

import nescio
from nescio.service import RemoteTable, TableAdmin, create_app
from service.conftest import QUOTAS, TOKENS, VALUES, running


class Party:
    """A party that can be restarted from any table; it counts the changes that it is sent."""

    def __init__(self, party, table):
        self.party = party
        self.url = None
        self.fails = False
        self.start(table)

    def start(self, table):
        self.table, self.changes = table, 0
        server = nescio.Server(table, party=self.party, threads=1)
        self.app = create_app(
            {"words": server},
            party=self.party,
            quotas=QUOTAS,
            admin_token=TOKENS[self.party],
        )

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"].endswith("/rows"):
            if self.fails:
                raise ConnectionError("the party fails before it makes a change")
            self.changes += 1
        await self.app(scope, receive, send)


@contextlib.contextmanager
def two_parties(make):
    both = [Party(0, make()), Party(1, make())]
    with running(both[0]) as first, running(both[1]) as second:
        both[0].url, both[1].url = first, second
        yield both


def urls_of(parties):
    return [party.url for party in parties]


def opened(parties, journal=None, tokens=TOKENS):
    return TableAdmin(urls_of(parties), "words", tokens, retries=0, journal=journal)


def change(admin, count, first=0):
    for i in range(first, first + count):
        admin.update([i, 99], VALUES[[i + 1, i]])


def state(parties, journal=None):
    with opened(parties, journal, None) as admin:
        return admin.status()


def assert_mended(parties, journal, version):
    """Both parties have one table, the journal knows it, and lookups are answered."""
    status = state(parties, journal)
    assert (status.state, status.agree, status.advice) == ("equal", True, "")
    assert [party.version for party in status.parties] == [version, version]
    assert [party.behind for party in status.parties] == [0, 0]
    with RemoteTable(urls_of(parties), "words") as table:
        assert np.array_equal(table.lookup([0, 99]), parties[0].table[[0, 99]])


@contextlib.contextmanager
def failing(party):
    party.fails = True
    yield
    party.fails = False
