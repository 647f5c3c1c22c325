"""Changes to rows on both servers."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from starlette.responses import Response

import nescio
from nescio.errors import (
    ArgumentError,
    IndexRangeError,
    MismatchError,
    ServerRefusedError,
    ServerUnreachableError,
)
from nescio.service import Quotas, RemoteTable, TableAdmin, create_app
from service.conftest import TOKENS, VALUES, make_app, running


def test_raw_exchanges_go_on_after_a_change(changing):
    urls, tables = changing
    for own in tables:
        own.keep_versions(1)
    with RemoteTable(urls, "words") as table:
        for row in (5, 6):
            client = table.client
            query = client.query([5])
            answers = [reply.body for reply in table.exchange(query)]
            assert np.array_equal(client.decode(query, *answers), tables[0][[5]])
            for own in tables:
                own.update([5], VALUES[[row]])
            with pytest.raises(MismatchError):
                table.exchange(query)


def test_an_operator_changes_both_servers(changing):
    urls, tables = changing
    for own in tables:
        own.keep_versions(1)  # a client that knows an older one would get its rows
    with TableAdmin(urls, "words", TOKENS) as admin, RemoteTable(urls, "words") as table:
        params = admin.update([5, 6], VALUES[[7, 8]])
        assert params.version == "2"
        assert np.array_equal(table.lookup([5, 6]), VALUES[[7, 8]])
        assert table.params == params
        admin.insert([0], VALUES[[9]])
        assert np.array_equal(table.lookup([0]), VALUES[[9]])
        assert admin.delete([0], version="done").version == "done"
        assert np.array_equal(table.lookup([0]), VALUES[[0]])


def test_nothing_changes_unless_both_servers_agree(changing):
    urls, tables = changing
    before = tables[0].params
    for tokens in ([TOKENS[0], "the wrong token for party 1"], ["a wrong token here", TOKENS[1]]):
        with TableAdmin(urls, "words", tokens) as admin:
            with pytest.raises(ServerRefusedError, match="not_admitted"):
                admin.insert([5], VALUES[[6]])
            assert [table.params for table in tables] == [before, before]
    tables[1]._versions.add("7")  # as if it had served that version
    with TableAdmin(urls, "words", TOKENS) as admin:
        with pytest.raises(ServerRefusedError, match="'7', which this table has had already"):
            admin.insert([5], VALUES[[6]], version="7")
        assert [table.params for table in tables] == [before, before]
        assert admin.insert([5], VALUES[[6]], version="8").version == "8"


def test_nothing_changes_over_the_limit_of_one_server():
    quotas = [Quotas(), Quotas(max_change_bytes=80)]
    apps = [make_app(p, quotas=quotas[p], token=TOKENS[p]) for p in (0, 1)]
    with running(apps[0]) as first, running(apps[1]) as second:
        with TableAdmin((first, second), "words", TOKENS) as admin:
            assert admin.update([5], VALUES[[6]]).version == "2"  # 69 bytes
            with pytest.raises(ServerRefusedError, match="has 89 bytes, this server reads at most"):
                admin.update([5, 6], VALUES[[6, 7]])
            assert admin.update([5], VALUES[[7]]).version == "3"


def test_nothing_changes_if_one_server_is_down(changing):
    (first, _), tables = changing
    before = tables[0].params
    with TableAdmin((first, "http://127.0.0.1:9"), "words", TOKENS, retries=0) as admin:
        with pytest.raises(ServerUnreachableError):
            admin.insert([5], VALUES[[6]])
    assert tables[0].params == before


class Failing:
    """An application that makes no change while `failing`, but would."""

    def __init__(self, app):
        self._app = app
        self.failing = True

    async def __call__(self, scope, receive, send):
        if self.failing and scope["type"] == "http" and scope["path"].endswith("/rows"):
            await Response(status_code=500)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def test_a_change_that_broke_off_is_finished_by_the_same_call():
    tables = [nescio.Table(VALUES) for _ in range(2)]
    first, second = (
        create_app({"words": nescio.Server(t, party=p)}, party=p, admin_token=TOKENS[p])
        for p, t in enumerate(tables)
    )
    failing = Failing(second)
    with running(first) as one, running(failing) as two:
        with TableAdmin((one, two), "words", TOKENS, retries=0) as admin:
            with pytest.raises(ServerRefusedError, match="500") as caught:
                admin.insert([5], VALUES[[6]])
        assert "repeat the same call to finish it" in caught.value.__notes__[0]
        assert [len(table) for table in tables] == [1001, 1000]
        failing.failing = False
        with TableAdmin((two, one), "words", TOKENS[::-1]) as admin:  # elsewhere, and later
            for change in (
                lambda: admin.insert([5], VALUES[[7]]),
                lambda: admin.insert([6], VALUES[[6]]),
                lambda: admin.insert([5], VALUES[[6]], version="3"),
                lambda: admin.delete([5]),
            ):
                with pytest.raises(MismatchError, match="the servers differ; if a change was"):
                    change()
            assert [len(table) for table in tables] == [1001, 1000]
            assert admin.insert([5], VALUES[[6]]).version == "2"
            assert tables[0].params == tables[1].params
            with pytest.raises(ArgumentError, match="to make it once more, pass a new version"):
                admin.insert([5], VALUES[[6]])
            assert admin.insert([5], VALUES[[6]], version="2").version == "2"  # done already
            assert [len(table) for table in tables] == [1001, 1001]
            assert admin.insert([5], VALUES[[6]], version="3").version == "3"  # a new one
            assert [len(table) for table in tables] == [1002, 1002]
            with pytest.raises(ArgumentError, match="have version '3' already"):
                admin.insert([5], VALUES[[7]], version="3")
            for _ in range(2):  # overwriting twice does no harm
                admin.update([5], VALUES[[7]])


def test_two_servers_of_one_party_are_not_changed():
    apps = [make_app(0, token=token) for token in TOKENS]
    with running(apps[0]) as first, running(apps[1]) as second:
        with TableAdmin((first, second), "words", TOKENS) as admin:
            with pytest.raises(ArgumentError, match="found two of party 0"):
                admin.delete([5])


def test_concurrent_changes_raise_a_mismatch_for_the_slower_operator(changing):
    urls, tables = changing

    def insert(i):
        with TableAdmin(urls, "words", TOKENS) as admin:
            try:
                admin.insert([5], VALUES[[i]])
            except MismatchError:
                return 0
            return 1

    with ThreadPoolExecutor(4) as pool:
        made = sum(pool.map(insert, range(12)))
    assert made >= 1
    assert [len(table) for table in tables] == [1000 + made] * 2
    assert tables[0].params == tables[1].params


class Forgetful:
    """An application whose first reply to a change is lost."""

    def __init__(self, app):
        self._app = app
        self.lost = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"].endswith("/rows") and not self.lost:
            self.lost += 1

            async def lose(_):
                pass

            await self._app(scope, receive, lose)
            await Response(status_code=503)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def test_a_change_whose_reply_was_lost_is_made_once():
    apps = [Forgetful(make_app(party, token=TOKENS[party])) for party in (0, 1)]
    with running(apps[0]) as first, running(apps[1]) as second:
        with TableAdmin((first, second), "words", TOKENS) as admin:
            assert admin.insert([5], VALUES[[6]]).version == "2"
        with RemoteTable((first, second), "words") as table:
            assert np.array_equal(table.lookup([5, 6]), VALUES[[6, 5]])
    assert [app.lost for app in apps] == [1, 1]


class Silent:
    """Makes the first change, and loses its reply; then fails."""

    def __init__(self, app):
        self._app, self.silent = app, True

    async def __call__(self, scope, receive, send):
        async def lose(message):
            pass

        if self.silent and scope["type"] == "http" and scope["path"].endswith("/rows"):
            await self._app(scope, receive, lose)
            await Response(status_code=500)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


@pytest.mark.parametrize("silent", [0, 1])
def test_a_lost_reply_does_not_make_a_change_twice(silent):
    tables = [nescio.Table(VALUES) for _ in range(2)]
    apps = [
        create_app({"words": nescio.Server(t, party=p)}, party=p, admin_token=TOKENS[p])
        for p, t in enumerate(tables)
    ]
    apps[silent] = losing = Silent(apps[silent])
    with running(apps[0]) as one, running(apps[1]) as two:
        with TableAdmin((one, two), "words", TOKENS, retries=0) as admin:
            with pytest.raises(ServerRefusedError, match="500"):
                admin.delete([5])
            losing.silent = False
            if silent:  # both servers have the change
                with pytest.raises(ArgumentError, match="if its reply was lost, it is done"):
                    admin.delete([5])
            else:  # the first one has it
                assert admin.delete([5]).version == "2"
    assert [len(table) for table in tables] == [999, 999]


def test_versions_out_of_order_and_invalid_ones(changing):
    urls, tables = changing
    with TableAdmin(urls, "words", TOKENS) as admin:
        for version in ("9", "8"):
            admin.update([5], VALUES[[6]], version=version)
        assert admin.update([5], VALUES[[7]]).version == "10"
        for version in (9, True, "", "x" * 129, "\ud800"):
            with pytest.raises(ArgumentError, match="version: found"):
                admin.update([5], VALUES[[6]], version=version)
            with pytest.raises(ArgumentError, match="version: found"):
                tables[0].update([5], VALUES[[6]], version=version)


def test_changes_that_do_not_fit_both_servers(changing):
    urls, tables = changing
    with TableAdmin(urls, "words", TOKENS) as admin:
        with pytest.raises(IndexRangeError):
            admin.update([1000], VALUES[[0]])
        with pytest.raises(ArgumentError, match="expected"):
            admin.update([0], VALUES[[0]].astype("f8"))
        tables[0].update([5], VALUES[[6]])
        with pytest.raises(MismatchError, match="differ"):
            admin.update([7], VALUES[[6]], version="other")
        assert np.array_equal(tables[0][[7]], VALUES[[7]])
    with TableAdmin(urls, "words", TOKENS[::-1]) as admin:
        with pytest.raises((ServerRefusedError, MismatchError)):
            admin.update([5], VALUES[[6]])
    with pytest.raises(ArgumentError, match="two tokens"):
        TableAdmin(urls, "words", TOKENS[:1])
