"""Tests changes of keyed tables over HTTP: by keys, with the same result at both servers."""

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, MismatchError, ServerRefusedError
from nescio.pir import KeyedClient, KeyedTable
from nescio.pir._change import Change, make_change
from nescio.service import RemoteTable, TableAdmin, create_app

from .conftest import QUOTAS, TOKENS, running
from .test_admin import Failing, Silent

WORDS = [f"word {i}" for i in range(270)]  # a load of 0.9
VALUES = np.arange(810, dtype="f4").reshape(270, 3)


class Pair:
    """Both servers of a keyed table."""

    def __init__(self, keys=WORDS):
        self.tables = [KeyedTable(keys, VALUES[: len(keys)]) for _ in range(2)]
        self.apps = [
            create_app(
                {"words": nescio.Server(keyed.table, party=party)},
                party=party,
                quotas=QUOTAS,
                admin_token=TOKENS[party],
            )
            for party, keyed in enumerate(self.tables)
        ]
        self.urls = []

    def admin(self, **options):
        return TableAdmin(self.urls, "words", TOKENS, **options)

    def post(self, body):
        authorization = {"Authorization": f"Bearer {TOKENS[0]}"}
        url = f"{self.urls[0]}/v1/tables/words/rows"
        return httpx.post(url, content=body, headers=authorization)

    @property
    def params(self):
        first, second = (keyed.params for keyed in self.tables)
        assert first == second
        return first


@pytest.fixture
def pair():
    own = Pair()
    with running(own.apps[0]) as first, running(own.apps[1]) as second:
        own.urls = [first, second]
        yield own


def test_an_operator_changes_keys(pair):
    with pair.admin() as admin, RemoteTable(pair.urls, "words") as remote:
        client = KeyedClient(remote)
        assert admin.delete(["word 3", "word 4"]).version == "2"
        assert admin.insert(["new", "word 5"], VALUES[:2]).version == "3"
        assert admin.update("word 6", VALUES[2], version="may").version == "may"
        found = client.lookup(["word 3", "new", "word 5", "word 6", "word 7"])
        assert found.found.tolist() == [False, True, True, True, True]
        assert np.array_equal(found.values[1:], VALUES[[0, 1, 2, 7]])
    twin = KeyedTable(WORDS, VALUES)
    twin.delete(["word 3", "word 4"])
    twin.insert(["new", "word 5"], VALUES[:2])
    twin.update("word 6", VALUES[2], version="may")
    assert pair.params == twin.params


def test_a_table_grows(pair):
    rows = pair.tables[0].layout.rows
    for table in pair.tables:
        table.table.keep_versions(1)
    more = [f"more {i}" for i in range(100)]
    with pair.admin() as admin, RemoteTable(pair.urls, "words") as remote:
        client = KeyedClient(remote)
        assert client.lookup("word 1").found
        assert admin.insert(more, VALUES[:100]).version == "2"
        assert pair.tables[0].layout == pair.tables[1].layout
        assert pair.tables[0].layout.rows > rows
        found = client.lookup([*WORDS, *more, "no"])
        assert np.array_equal(found.found, np.arange(371) < 370)
        assert np.array_equal(found.values[:370], np.concatenate([VALUES, VALUES[:100]]))
        assert admin.delete(more).version == "3"
        assert admin.insert("more 1", VALUES[7]).version == "4"
        assert np.array_equal(client.lookup("more 1").values, VALUES[7])


@pytest.mark.parametrize("keys", [[2**63, -5, 7], [b"a\0", b"a", b"\xff"]])
def test_keys_of_other_types(keys):
    pair = Pair(keys)
    with running(pair.apps[0]) as first, running(pair.apps[1]) as second:
        pair.urls = [first, second]
        with pair.admin() as admin, RemoteTable(pair.urls, "words") as remote:
            admin.delete(keys[0])
            admin.update(keys[1:2], VALUES[9:10])
            found = KeyedClient(remote).lookup(keys)
            assert found.found.tolist() == [False, True, True]
            assert np.array_equal(found.values[1:], VALUES[[9, 2]])


def refused_calls():
    """Yields calls that raise, the error, and a part of its message."""
    two = VALUES[:2]
    yield lambda a: a.update(["no", "word 1"], two), ServerRefusedError, "such as key 0 of the chan"
    yield lambda a: a.delete(["word 1", "no"]), ServerRefusedError, "such as key 1 of the change"
    yield lambda a: a.insert(["x", "x"], two), ServerRefusedError, "found key 1 of the change twice"
    yield lambda a: a.insert(["x"], two), ArgumentError, r"the rows have shape \(2, 3\)"
    yield lambda a: a.insert("x", two), ArgumentError, r"the rows have shape \(1, 2, 3\)"
    yield lambda a: a.insert(["x"], two[:1].astype("f8")), ArgumentError, "dtype float64"
    yield lambda a: a.insert([5], two[:1]), ArgumentError, "found integers, expected text"
    yield lambda a: a.delete([b"word 1"]), ArgumentError, "found bytes, expected text"
    yield lambda a: a.delete([""]), ArgumentError, "found 0 bytes"
    yield lambda a: a.delete(["a", 1]), ArgumentError, "found integer and text keys"
    yield lambda a: a.insert(["x"], two[:1], version="1"), ArgumentError, "have version '1' already"


@pytest.mark.parametrize("number", range(len(list(refused_calls()))))
def test_refused_changes_change_nothing(pair, number):
    call, error, message = list(refused_calls())[number]
    before = pair.params
    with pair.admin() as admin:
        with pytest.raises(error, match=message):
            call(admin)
        assert pair.params == before
        assert admin.insert("x", VALUES[0]).version == "2"


@pytest.mark.parametrize("count", [1, 100], ids=["in place", "with growth"])
def test_a_change_that_broke_off_is_finished_by_the_same_call(count):
    pair = Pair(WORDS[:265])
    more = [f"more {i}" for i in range(count)]
    failing = Failing(pair.apps[1])
    with running(pair.apps[0]) as one, running(failing) as two:
        pair.urls = [one, two]
        with pair.admin(retries=0) as admin:
            with pytest.raises(ServerRefusedError, match="500") as caught:
                admin.insert(more, VALUES[:count])
        assert "repeat the same call to finish it" in caught.value.__notes__[0]
        assert [len(keyed) for keyed in pair.tables] == [265 + count, 265]
        failing.failing = False
        with TableAdmin((two, one), "words", TOKENS[::-1]) as admin:  # elsewhere, and later
            for call in (
                lambda: admin.insert(more, VALUES[1 : count + 1]),
                lambda: admin.insert("other", VALUES[0]),
                lambda: admin.delete(more),
            ):
                with pytest.raises(MismatchError, match="the servers differ; if a change was"):
                    call()
            assert admin.insert(more, VALUES[:count]).version == "2"
            assert pair.params.version == "2"
            with pytest.raises(ArgumentError, match="to make it once more, pass a new version"):
                admin.insert(more, VALUES[:count])
            assert admin.insert(more, VALUES[:count], version="2").version == "2"  # done already
            assert admin.insert(more, VALUES[:count], version="3").version == "3"
    assert pair.params.version == "3"


@pytest.mark.parametrize("silent", [0, 1])
def test_a_lost_reply_does_not_make_a_change_twice(silent):
    pair = Pair()
    pair.apps[silent] = losing = Silent(pair.apps[silent])
    with running(pair.apps[0]) as one, running(pair.apps[1]) as two:
        pair.urls = [one, two]
        with pair.admin(retries=0) as admin:
            with pytest.raises(ServerRefusedError, match="500"):
                admin.delete("word 5")
            losing.silent = False
            if silent:
                with pytest.raises(ArgumentError, match="if its reply was lost, it is done"):
                    admin.delete("word 5")
            else:
                assert admin.delete("word 5").version == "2"
    assert [len(keyed) for keyed in pair.tables] == [269, 269]


WORDS_OF_A_KEY = np.array([[1, 2, 3, 4]], np.uint64)


@pytest.mark.parametrize(
    ("indices", "row_bytes", "code", "message"),
    [
        (WORDS_OF_A_KEY, 20, 400, "found 101 bytes, expected 93"),
        (WORDS_OF_A_KEY[:, :3], 12, 400, "found 85 bytes, expected 93"),
        (np.array([5], np.uint64), 20, 400, "found 77 bytes, expected 93"),
        (WORDS_OF_A_KEY * np.uint64(0), 12, 422, "the fingerprint 0, which no key has"),
        (WORDS_OF_A_KEY.repeat(2, 0), 12, 422, "found key 1 of the change twice"),
    ],
)
def test_malformed_changes(pair, indices, row_bytes, code, message):
    """Changes of physical rows among them."""
    rows = np.zeros((len(indices), row_bytes), np.uint8)
    before = pair.params
    reply = pair.post(Change("insert", "2", indices, rows).encode(before))
    assert (reply.status_code, pair.params) == (code, before)
    assert message in reply.json()["error"]["message"]


def test_the_description_names_keys(pair):
    fields = httpx.get(f"{pair.urls[0]}/v1/tables/words").json()
    rows = pair.params.rows
    assert fields["changes"] == {"rows": rows, "row_shape": [3], "dtype": "<f4", "words": 4}
    ordinary = nescio.Table(VALUES)
    app = create_app({"plain": nescio.Server(ordinary, party=0)}, party=0)
    with running(app) as url:
        assert httpx.get(f"{url}/v1/tables/plain").json()["changes"]["words"] == 1


def test_a_stored_table_is_looked_up_and_does_not_change(pair, tmp_path):
    """It lacks the hashes of its keys."""
    pair.tables[0].table.save(tmp_path / "words.nescio")
    loaded = [nescio.Table.load(tmp_path / "words.nescio") for _ in range(2)]
    apps = [
        create_app(
            {"words": nescio.Server(table, party=party)}, party=party, admin_token=TOKENS[party]
        )
        for party, table in enumerate(loaded)
    ]
    with running(apps[0]) as one, running(apps[1]) as two:
        with RemoteTable([one, two], "words") as remote:
            assert KeyedClient(remote).lookup(["word 1", "no"]).found.tolist() == [True, False]
        with TableAdmin([one, two], "words", TOKENS) as admin:
            with pytest.raises(ArgumentError, match="an index must be integers"):
                admin.delete(["word 1"])
            row = np.zeros((1, *loaded[0].params.row_shape), np.uint8)
            with pytest.raises(ServerRefusedError, match="lacks the hashes of its keys"):
                admin.update([0], row)
    change = Change("update", "2", np.zeros(1, np.uint64), row).encode(loaded[0].params)
    with pytest.raises(ArgumentError, match="lacks the hashes of its keys"):
        make_change(loaded[0], change)
    assert loaded[0].params.version == pair.params.version
