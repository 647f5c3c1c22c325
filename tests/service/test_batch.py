"""Batch tables over HTTP: rows, what leaves the device, changes, and bad input."""

import json
from itertools import combinations, product

import httpx
import numpy as np
import pytest

from nescio.errors import ArgumentError, MismatchError, ServerRefusedError
from nescio.pir import Table
from nescio.pir._change import Change, make_change
from nescio.pir.batch import (
    BatchClient,
    BatchServer,
    FullPart,
    HotPart,
    Layout,
    Together,
    build,
)
from nescio.pir.batch._positions import Positions
from nescio.service import RemoteTable, TableAdmin, create_app

from .conftest import running

ROWS = 600
VALUES = np.random.default_rng(2).random((ROWS, 5), np.float32)
TOKEN = "a token of the operator"
NEAR = Together(np.arange(100), np.arange(100)[:, None] + [1, 2])
PARTIAL = Layout(ROWS, FullPart(6, keys=2), HotPart(np.arange(60), 3), NEAR)
EXACT = Layout(ROWS, FullPart(5, hashes=4, seed=3), lookups=6)
LAYOUTS = {"partial": PARTIAL, "exact": EXACT}


class Recorded:
    """An application that notes what arrives: the order, the heads, and the bytes of each body."""

    def __init__(self, app):
        self._app = app
        self.state = app.state
        self.requests = []

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        parts = []

        async def noted():
            message = await receive()
            parts.append(message.get("body", b""))
            return message

        await self._app(scope, noted, send)
        heads = [pair for pair in scope["headers"] if pair[0] != b"host"]
        body = b"".join(parts)
        self.requests.append((scope["method"], scope["path"], heads, len(body), body[:16]))


class Pair:
    """Two services with one batch table, `items`."""

    def __init__(self, layout, values=VALUES):
        self.tables = [build(values, layout, threads=1) for _ in range(2)]
        self.apps = [
            Recorded(
                create_app(
                    {"items": BatchServer(table, party=party, threads=1)},
                    party=party,
                    admin_token=TOKEN,
                )
            )
            for party, table in enumerate(self.tables)
        ]

    def sent(self):
        """Returns what arrived since the last call."""
        sent = [app.requests for app in self.apps]
        for app in self.apps:
            app.requests = []
        return sent


@pytest.fixture(scope="module", params=LAYOUTS)
def pair(request):
    made = Pair(LAYOUTS[request.param])
    with running(made.apps[0]) as first, running(made.apps[1]) as second:
        made.urls = [first, second]
        yield made


def test_a_client_needs_only_the_servers(pair):
    with RemoteTable(pair.urls, "items") as remote:
        client = BatchClient(remote)
        assert client.layout == pair.tables[0].layout
        sets = [[5, 70, 5], [], [599]]
        result = client.lookup(sets)
        for own, rows, found in zip(sets, result.rows, result.found, strict=True):
            assert found.all()
            assert np.array_equal(rows, VALUES[np.array(own, int)])


# ---- What leaves the device ----------------------------------------------------------------------

# Two inferences each, in two calls: few rows, none, many, the same again and again, popular ones,
# rows that come with others, rows that are cached or carried from before.
NEEDS = {
    "one row": [[7], [300]],
    "no rows": [[], []],
    "repeats": [[9] * 50, [9] * 50],
    "as many as fit": [[100, 200, 300, 400, 500, 599], [101, 201, 301, 401, 501, 2]],
    "more than fit": [list(range(ROWS)), list(range(0, ROWS, 3))],
    "popular rows": [list(range(6)), list(range(50, 56))],
    "rows that arrive together": [[20, 21, 22], [23, 24, 25, 26]],
}


@pytest.mark.parametrize("options", [{}, {"cache_rows": 40}, {"carry": True, "cache_rows": 9}])
def test_what_is_sent_does_not_depend_on_the_rows(pair, options):
    seen = {}
    for need, sets in NEEDS.items():
        pair.sent()
        with RemoteTable(pair.urls, "items") as remote:
            client = BatchClient(remote, **options)
            for own in sets:
                client.lookup(own)
            client.lookup(sets)
        seen[need] = pair.sent()
    first = seen["one row"]
    for party in (0, 1):
        answers = [request for request in first[party] if request[0] == "POST"]
        assert len(answers) == 3  # one request for each call, and no other
        assert [path for _, path, *_ in answers] == ["/v1/tables/items/answer"] * 3
    for need, requests in seen.items():
        assert requests == first, need


def unplaceable(layout):
    """Returns rows that are not hot, one more than the slots of all bins that they may use."""
    rows = np.arange(102, ROWS, dtype=np.uint64)
    bins = Positions(layout).candidates(rows).bins[:, -layout.full.hashes :]
    first, *others = [np.unique(own) for own in bins.T]
    for pair in combinations(first, 2 if others else 1):
        for single in product(*others):
            inside = np.isin(bins[:, 0], pair) & (bins[:, 1:] == single).all(axis=1)
            wanted = (len(pair) + len(single)) * layout.full.keys + 1
            if inside.sum() >= wanted:
                return rows[inside][:wanted].tolist()
    raise AssertionError


def test_what_is_sent_does_not_depend_on_luck(pair):
    """An inference that cannot be placed sends what any other sends, and is not sent again."""
    layout = pair.tables[0].layout
    rows = unplaceable(layout)
    assert layout.mode == "partial" or len(rows) <= layout.lookups
    seen = []
    for own in ([1], rows):
        with RemoteTable(pair.urls, "items") as remote:
            client = BatchClient(remote, carry=True)
            pair.sent()
            result = client.lookup(own)
            seen.append(pair.sent())
            assert len(seen[-1][0]) == 1
    assert result.missing[0].tolist() == rows[-1:]
    assert seen[0] == seen[1]


def test_the_bytes_are_those_of_the_layout(pair):
    with RemoteTable(pair.urls, "items") as remote:
        client, params = BatchClient(remote), remote.params
        pair.sent()
        client.lookup([1, 2, 3])
        ((_, _, _, length, _),) = pair.sent()[0]
    assert params.slots == client.layout.slots
    assert length == 32 + params.verified_key_bytes


# ---- Changes -------------------------------------------------------------------------------------


@pytest.fixture(params=LAYOUTS)
def own_pair(request):
    made = Pair(LAYOUTS[request.param], VALUES.copy())
    for table in made.tables:
        table.table.keep_versions(1)
    with running(made.apps[0]) as first, running(made.apps[1]) as second:
        made.urls = [first, second]
        yield made


def test_an_update_changes_a_row_at_all_of_its_places(own_pair):
    values = VALUES.copy()
    values[[5, 6, 300]] = 7
    with RemoteTable(own_pair.urls, "items") as remote:
        client = BatchClient(remote, cache_rows=10)
        client.lookup([5, 6, 300])
        with TableAdmin(own_pair.urls, "items", [TOKEN] * 2) as admin:
            params = admin.update([300, 5, 6], values[[300, 5, 6]])
        assert params.version == "2"
        assert params == build(values, client.layout, version="2").params
        for rows in ([5], [6], [300], [4, 5, 6], [3]):
            result = client.lookup(rows)
            assert np.array_equal(result.rows[0], values[rows])


def test_an_update_that_only_one_server_has_is_finished(own_pair):
    own_pair.tables[0].update([1], VALUES[[2]], version="2")
    with TableAdmin(own_pair.urls, "items", [TOKEN] * 2) as admin:
        with pytest.raises(MismatchError, match="servers differ"):
            admin.update([1], VALUES[[2]])  # the change was not made by a message


def test_rows_of_another_number_or_shape(own_pair):
    with TableAdmin(own_pair.urls, "items", [TOKEN] * 2) as admin:
        with pytest.raises(ArgumentError, match="found 600, expected 0 to 599"):
            admin.update([ROWS], VALUES[:1])
        with pytest.raises(ArgumentError, match=r"expected \(1, 5\) and float32"):
            admin.update([1], VALUES[:1, None])
        for change in (
            lambda: admin.insert([1], VALUES[:1]),
            lambda: admin.delete([1]),
        ):
            with pytest.raises(ServerRefusedError, match="build the table again") as caught:
                change()
            assert caught.value.code == "impossible_change"
    assert own_pair.tables[0].params.version == "1"


def test_a_change_of_the_rows_in_the_bins_is_refused(own_pair):
    """A change made for another meaning of the rows does not have the right length."""
    params = own_pair.tables[0].params
    rows = np.zeros((1, params.row_bytes + 4), np.uint8)
    body = Change("update", "2", np.array([1], np.uint64), rows).encode(params)
    reply = httpx.post(
        f"{own_pair.urls[0]}/v1/tables/items/rows",
        content=body,
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "malformed_message"


def test_a_table_that_was_loaded_without_its_layout_is_not_changed(own_pair, tmp_path):
    """A change of a row in the bins would leave its other places as they were."""
    own_pair.tables[0].save(tmp_path / "items.nescio")
    table = Table.load(tmp_path / "items.nescio")
    row = np.zeros((1, table.params.row_bytes), np.uint8)
    change = Change("update", "2", np.zeros(1, np.uint64), row).encode(table.params)
    with pytest.raises(ArgumentError, match=r"serve nescio.pir.batch.BatchTable\(table\).table"):
        make_change(table, change)
    assert table.params.version == "1"


def test_the_description_names_the_rows_of_changes(own_pair):
    fields = json.loads(httpx.get(f"{own_pair.urls[0]}/v1/tables/items").content)
    assert fields["changes"] == {
        "rows": ROWS,
        "row_shape": [5],
        "dtype": "<f4",
        "words": 1,
    }
    assert fields["params"]["rows"] == own_pair.tables[0].layout.table_rows


# ---- Old and foreign layouts ---------------------------------------------------------------------


def test_a_client_with_an_old_layout(pair):
    layout = pair.tables[0].layout
    old = Layout(ROWS, FullPart(layout.full.bins, layout.full.keys, layout.full.hashes, 99))
    with RemoteTable(pair.urls, "items") as remote:
        assert BatchClient(remote, layout=layout).lookup([1]).found[0].all()
        with pytest.raises(MismatchError, match="fetch the layout again"):
            BatchClient(remote, layout=old)


def test_a_table_that_is_served_with_a_new_layout(own_pair):
    """The servers are started again with another layout, while a client has the old one."""
    layout = own_pair.tables[0].layout
    full = FullPart(layout.full.bins, layout.full.keys, layout.full.hashes, 99)
    other = Pair(Layout(ROWS, full, layout.hot, layout.together, layout.lookups))
    with RemoteTable(own_pair.urls, "items") as remote:
        client = BatchClient(remote)
        client.lookup([3])
        for app, new in zip(own_pair.apps, other.apps, strict=True):
            app._app = new._app
        with pytest.raises(MismatchError, match="fetch the layout again, with a new BatchClient"):
            client.lookup([3])
        again = BatchClient(remote)
        assert np.array_equal(again.lookup([3]).rows[0], VALUES[[3]])


def test_a_table_that_was_updated_keeps_its_layout(own_pair):
    with RemoteTable(own_pair.urls, "items") as remote:
        client = BatchClient(remote)
        for table in own_pair.tables:
            table.update([3], VALUES[[4]])
        assert np.array_equal(client.lookup([3]).rows[0], VALUES[[4]])
