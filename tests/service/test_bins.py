"""Tests the service with tables in bins: layouts, requests, limits."""

from dataclasses import replace

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import (
    ArgumentError,
    IndexRangeError,
    LayoutChangedError,
    MismatchError,
    ServerRefusedError,
)
from nescio.pir._wire import HEADER_BYTES
from nescio.service import Quotas, RemoteTable, TableAdmin, create_app

from .conftest import running

BINS = [(4, 530, 2), (3, 5, 1)]
VALUES = np.arange(2135 * 3, dtype="f4").reshape(2135, 3)
LAYOUT = b'{"kind": "test"}'
TOKEN = "a token of the operator"


def make_table(**options):
    return nescio.Table(VALUES, bins=BINS, **options)


def served(party, table, **options):
    server = nescio.Server(table, party=party, threads=1)
    return running(create_app({"words": server}, party=party, admin_token=TOKEN, **options))


@pytest.fixture
def tables():
    return [make_table(layout=LAYOUT) for _ in range(2)]


@pytest.fixture
def urls(tables):
    with served(0, tables[0]) as first, served(1, tables[1]) as second:
        yield [first, second]


def places(params, shape=()):
    noise = np.random.default_rng(3).integers(0, 1 << 62, (*shape, params.slots))
    return noise.astype(np.uint64) % params.slot_rows


def test_a_lookup_over_http(urls, tables):
    local = nescio.pir.LocalTable(tables[0])
    with RemoteTable(urls, "words") as remote:
        assert remote.layout == LAYOUT
        assert remote.params == tables[0].params
        for shape in ((), (1,), (2, 3)):
            wanted = places(remote.params, shape)
            found = remote.lookup(wanted)
            assert found.shape == (*shape, 11, 3)
            assert np.array_equal(found, local.lookup(wanted))
        with pytest.raises(ArgumentError, match="found shape"):
            remote.lookup([1, 2])


def test_an_update_over_http(urls, tables):
    for table in tables:
        table.keep_versions(1)
    with RemoteTable(urls, "words") as remote, TableAdmin(urls, "words", [TOKEN] * 2) as admin:
        wanted = np.zeros(11, np.uint64)
        before = remote.lookup(wanted)
        admin.update([0, 530], np.full((2, 3), 7, "f4"))
        found = remote.lookup(wanted)
        assert (found[:4] == 7).all()
        assert np.array_equal(found[4:], before[4:])
        with pytest.raises(ServerRefusedError, match="expected an update"):
            admin.delete([0])


def test_many_lookups_are_several_requests(tables):
    quotas = Quotas(max_keys=4)  # two keys for a bin: two lookups
    assert quotas.keys(tables[0].params) == 2
    with (
        served(0, tables[0], quotas=quotas) as first,
        served(1, tables[1], quotas=quotas) as second,
        RemoteTable([first, second], "words") as remote,
    ):
        wanted = places(remote.params, (5,))
        assert np.array_equal(
            remote.lookup(wanted), nescio.pir.LocalTable(tables[0]).lookup(wanted)
        )
        query = nescio.Client(remote.params, verify=False).query(wanted)
        reply = httpx.post(f"{first}/v1/tables/words/answer", content=query.keys[0])
        assert reply.status_code == 422
        assert len(query.keys[0]) == HEADER_BYTES + 5 * remote.params.key_bytes


def test_a_table_without_a_layout():
    table = make_table()
    with served(0, table) as first, served(1, table) as second:
        reply = httpx.get(f"{first}/v1/tables/words/layout")
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "no_layout")
        with RemoteTable([first, second], "words") as remote:
            assert remote.layout == b""


def test_a_layout_of_another_table_is_refused(tables, monkeypatch):
    with served(0, tables[0]) as first, served(1, tables[1]) as second:
        for table in tables:
            monkeypatch.setattr(table, "_state", replace(table._state, layout=b"another"))
        with pytest.raises(MismatchError, match="a layout of another table or version"):
            RemoteTable([first, second], "words", timeout=1)


class Counted:
    """An ASGI application that notes the lengths of the queries it gets, and calls back once."""

    def __init__(self, app, before_first):
        self.app, self.before_first, self.lengths = app, before_first, []
        self.state = app.state

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["method"] == "POST":
            if not self.lengths:
                self.before_first()
            self.lengths.append(int(dict(scope["headers"])[b"content-length"]))
        await self.app(scope, receive, send)


def requests_of(changes, lookup):
    """Returns what servers see of a lookup, if they both change right before its first query."""
    tables = [nescio.Table(VALUES, **changes[0]) for _ in range(2)]
    servers = [nescio.Server(table, party=party, threads=1) for party, table in enumerate(tables)]

    def change():
        new = nescio.Table(VALUES[: changes[1].pop("rows")], version="2", **changes[1])
        for table in tables:
            table._state = new._state

    apps = [create_app({"words": server}, party=party) for party, server in enumerate(servers)]
    counted = [Counted(apps[0], change), Counted(apps[1], lambda: None)]
    with (
        running(counted[0]) as first,
        running(counted[1]) as second,
        RemoteTable([first, second], "words", timeout=5) as remote,
    ):
        try:
            lookup(remote)
        except (IndexRangeError, LayoutChangedError) as error:
            return [app.lengths for app in counted], type(error)
    return [app.lengths for app in counted], None


@pytest.mark.parametrize("index", [0, 999, 1000, 2134])
def test_the_requests_after_a_deletion_do_not_depend_on_the_index(index):
    def seen(own):
        return requests_of(({}, {"rows": 1000}), lambda remote: remote.lookup(own))

    (lengths, error), (others, _) = seen([index]), seen([3])
    assert lengths == others
    assert [len(own) for own in lengths] == [2, 2]
    assert error is (IndexRangeError if index >= 1000 else None)


@pytest.mark.parametrize("place", [0, 299, 300, 1066])
def test_the_requests_after_a_change_of_the_layout_do_not_depend_on_the_places(place):
    before = {"bins": [(2, 1067), (1, 1)], "layout": b"before"}
    after = {"bins": [(2, 300), (1, 1)], "layout": b"after", "rows": 601}

    def look_up(remote):
        remote.lookup([place, 0, 0], layout=remote.params.layout)

    lengths, error = requests_of((before, after), look_up)
    assert [len(own) for own in lengths] == [1, 1]
    assert error is LayoutChangedError


def test_one_server_with_the_layout_is_enough(tables):
    with served(0, tables[0]) as first, served(1, tables[1]) as second:
        tables[0]._state = tables[0]._state.__class__(
            tables[0]._state.params, tables[0]._state.records, tables[0]._state.tree
        )
        assert httpx.get(f"{first}/v1/tables/words/layout").status_code == 404
        with RemoteTable([first, second], "words") as remote:
            assert remote.layout == LAYOUT
