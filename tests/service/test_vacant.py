"""Vacant rows of tables on two servers, through their operator's client."""

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, MalformedMessageError, MismatchError, ServerRefusedError
from nescio.service import RemoteTable, TableAdmin, create_app
from nescio.service._operator.vacant import Vacant
from service.conftest import TOKENS, VALUES, running
from service.test_admin import Failing

SPARE = 200


def app_of(party, table):
    server = nescio.Server(table, party=party)
    return create_app({"words": server}, party=party, admin_token=TOKENS[party])


@pytest.fixture
def served():
    tables = [nescio.Table(VALUES, spare=SPARE) for _ in range(2)]
    first, second = (app_of(party, table) for party, table in enumerate(tables))
    with running(first) as one, running(second) as two:
        yield (one, two), tables


def vacant_of(tables):
    first, second = (table.vacant.tolist() for table in tables)
    assert first == second
    assert tables[0].params == tables[1].params
    return first


def test_rows_are_appended_and_cleared_at_both_servers(served):
    urls, tables = served
    for own in tables:
        own.keep_versions(1)  # a client that knows an older one would get its rows
    with TableAdmin(urls, "words", TOKENS) as admin, RemoteTable(urls, "words") as table:
        assert admin.append(VALUES[:2]).tolist() == [1000, 1001]
        assert np.array_equal(table.lookup([1000, 1001, 999]), VALUES[[0, 1, 999]])
        assert admin.clear([5, 1000]).version == "3"
        assert not table.lookup([5]).any()
        assert vacant_of(tables)[:3] == [5, 1000, 1002]
        assert admin.append(VALUES[7:10], version="more").tolist() == [5, 1000, 1002]
        assert tables[1].params.version == "more"
        assert admin.append(VALUES[7:10], version="more").tolist() == [5, 1000, 1002]  # repeated
        assert len(vacant_of(tables)) == SPARE - 3
        with pytest.raises(ArgumentError, match="to make it once more, pass a new version"):
            admin.append(VALUES[7:10])
        with pytest.raises(ServerRefusedError, match="row 1100, which is vacant already"):
            admin.clear([1100])
        with pytest.raises(ArgumentError, match="shape"):
            admin.append(VALUES[0])


def test_tables_grow_before_an_append_and_after_it(served):
    urls, tables = served
    with TableAdmin(urls, "words", TOKENS) as admin:
        assert admin.grow(1).rows == 1201
        assert len(vacant_of(tables)) == SPARE + 1
        where = admin.append(VALUES[:300])  # too few: an eighth of 1201 is 151
        assert where.tolist() == list(range(1000, 1300))
        admin._grower.wait()  # 52 of 1352 are vacant, fewer than a sixteenth
        assert len(tables[0]) == 1352 + 169
        assert vacant_of(tables) == list(range(1300, 1521))
        admin.append(VALUES[:1])
        admin._grower.wait()
        assert len(tables[0]) == 1521  # enough are vacant


@pytest.mark.parametrize("spare", [SPARE, 0], ids=["append", "growth"])
def test_an_append_that_broke_off_is_finished_by_the_same_call(spare):
    tables = [nescio.Table(VALUES, spare=spare) for _ in range(2)]
    failing = Failing(app_of(1, tables[1]))
    with running(app_of(0, tables[0])) as one, running(failing) as two:
        with TableAdmin((one, two), "words", TOKENS, retries=0) as admin:
            with pytest.raises(ServerRefusedError, match="500"):
                admin.append(VALUES[:3])
        assert tables[0].params != tables[1].params
        failing.failing = False
        with TableAdmin((two, one), "words", TOKENS[::-1]) as admin:
            with pytest.raises(MismatchError, match="the servers differ"):
                admin.clear([5])
            assert admin.append(VALUES[:3]).tolist() == [1000, 1001, 1002]
            admin._grower.wait()
            vacant_of(tables)
            assert np.array_equal(tables[1][[1000, 1002]], VALUES[[0, 2]])


def test_servers_with_other_vacant_rows_are_not_changed():
    rows = np.concatenate([VALUES, np.zeros_like(VALUES[:10])])
    tables = [nescio.Table(VALUES, spare=10), nescio.Table(rows)]
    assert tables[0].params == tables[1].params
    before = tables[0].params
    with running(app_of(0, tables[0])) as one, running(app_of(1, tables[1])) as two:
        with TableAdmin((one, two), "words", TOKENS) as admin:
            for change in (lambda: admin.append(VALUES[:1]), lambda: admin.clear([5])):
                with pytest.raises(MismatchError, match="10 and 0 vacant ones"):
                    change()
            assert [table.params for table in tables] == [before, before]
            admin.update([5], VALUES[[6]])  # needs no vacant row


def test_the_list_of_vacant_rows_needs_the_token(served):
    (url, _), _ = served
    path = f"{url}/v1/tables/words/rows/vacant"
    header = {"Authorization": f"Bearer {TOKENS[0]}"}
    assert httpx.get(path).status_code == 401
    found = httpx.get(path, params={"count": 3}, headers=header).json()
    assert (found["rows"], found["total"], found["appended"]) == ([[1000, 3]], SPARE, [])
    for count in ("-1", "x", str((1 << 20) + 1), "٣", "9" * 50):
        reply = httpx.get(path, params={"count": count}, headers=header)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "malformed")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"rows": [[0, 1]], "appended": [], "total": 0, "check": ""}',
        b'{"rows": [[0, 1e30]], "appended": [], "total": 9, "check": ""}',
        b'{"rows": [[0, 1099511627776]], "appended": [], "total": 9, "check": ""}',
        b'{"rows": [[-1, 2]], "appended": [], "total": 9, "check": ""}',
        b'{"rows": [3], "appended": [], "total": 9, "check": ""}',
        b'{"rows": [], "appended": [], "total": true, "check": ""}',
        b'{"rows": [], "appended": [], "total": 9, "check": 5}',
    ],
)
def test_lists_of_vacant_rows_that_are_refused(body):
    with pytest.raises(MalformedMessageError, match="vacant rows"):
        Vacant.parse("http://a", body)
