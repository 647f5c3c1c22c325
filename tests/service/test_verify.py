"""Clients that check rows, and servers that lie."""

from dataclasses import replace

import httpx
import numpy as np
import pytest
from starlette.responses import Response

import nescio
from nescio.errors import (
    ArgumentError,
    FileError,
    ForgedAnswerError,
    MalformedMessageError,
    MismatchError,
)
from nescio.pir import _tops as tops
from nescio.service import create_app
from service.conftest import QUOTAS, running

ROWS = np.arange(15_000, dtype="f4").reshape(5000, 3)


def app_of(table, party):
    servers = {"words": nescio.Server(table, threads=1, party=party)}
    return create_app(servers, party=party, quotas=QUOTAS)


def lying_app(party, rows=None, hashes=None):
    """Serves other rows, or other tops, under the parameters of ROWS."""
    table, honest = nescio.Table(ROWS if rows is None else rows), nescio.Table(ROWS)
    state = replace(table._state, params=honest.params)
    if rows is not None and hashes is None:
        hashes = honest.tops  # else the client asks the other server
    table._state = replace(state, tree=replace(state.tree, tops=hashes))
    return app_of(table, party)


class Counted:
    """Counts the requests of each path."""

    def __init__(self, app):
        self._app, self.paths = app, []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            self.paths.append(scope["path"].rsplit("/", 1)[1])
        await self._app(scope, receive, send)


@pytest.fixture(scope="module")
def urls():
    with (
        running(app_of(nescio.Table(ROWS), 0)) as first,
        running(app_of(nescio.Table(ROWS), 1)) as second,
    ):
        yield first, second


def test_a_lookup_is_checked(urls, remote):
    with remote(urls, "words") as table:
        assert np.array_equal(table.lookup([[5, 4999]]), ROWS[[[5, 4999]]])
        assert table.client.verifies
    with remote(urls, "words", verify=False) as table:
        assert np.array_equal(table.lookup([5, 4999]), ROWS[[5, 4999]])
        assert not table.client.verifies


@pytest.mark.parametrize("liar", [0, 1])
def test_a_server_with_other_rows_is_refused_once(remote, liar):
    rows = ROWS.copy()
    rows[:2500] += 1
    apps = [Counted(app_of(nescio.Table(ROWS), 0)), Counted(app_of(nescio.Table(ROWS), 1))]
    apps[liar] = Counted(lying_app(liar, rows))
    with running(apps[0]) as first, running(apps[1]) as second:
        with remote([first, second], "words") as table:
            for index in (5, 4999):  # a changed row, and one that is not
                with pytest.raises(ForgedAnswerError, match="one of the two servers") as caught:
                    table.lookup([index])
                assert first in str(caught.value)
                assert second in str(caught.value)
        assert apps[liar].paths.count("answer") == 2  # no lookup was repeated
        with remote([first, second], "words", verify=False) as table:
            table.lookup([5])


@pytest.mark.parametrize("liar", [0, 1])
def test_tops_of_either_server_are_enough(remote, liar):
    wrong = nescio.Table(ROWS).tops ^ np.uint8(1)
    apps = [app_of(nescio.Table(ROWS), 0), app_of(nescio.Table(ROWS), 1)]
    apps[liar] = lying_app(liar, hashes=wrong)
    with (
        running(apps[0]) as first,
        running(apps[1]) as second,
        remote([first, second], "words") as table,
    ):
        assert np.array_equal(table.lookup([5]), ROWS[[5]])


@pytest.mark.parametrize("status", [404, 500])
def test_a_server_without_tops_is_passed_over(remote, status):
    async def failing(scope, receive, send):
        path = scope.get("path", "")
        await (Response(status_code=status) if path.endswith("/tops") else app)(
            scope, receive, send
        )

    app = app_of(nescio.Table(ROWS), 0)
    with running(failing) as first, running(app_of(nescio.Table(ROWS), 1)) as second:
        with remote([first, second], "words", retries=0) as table:
            assert np.array_equal(table.lookup([5]), ROWS[[5]])


def test_wrong_tops_of_both_servers(remote):
    wrong = nescio.Table(ROWS).tops ^ np.uint8(1)
    with (
        running(lying_app(0, hashes=wrong)) as first,
        running(lying_app(1, hashes=wrong)) as second,
        pytest.raises(MismatchError, match="tops of another table"),
    ):
        remote([first, second], "words", timeout=0.5)


def test_a_client_follows_changes_with_a_difference(remote):
    tables = [nescio.Table(ROWS), nescio.Table(ROWS)]
    apps = [Counted(app_of(table, party)) for party, table in enumerate(tables)]
    with running(apps[0]) as first, running(apps[1]) as second:
        with remote([first, second], "words") as table:
            assert np.array_equal(table.lookup([7]), ROWS[[7]])
            before = tables[0].params.id.hex()
            for own in tables:
                own.keep_versions(1)
                own.update([7], ROWS[[8]])
            assert np.array_equal(table.lookup([7]), ROWS[[8]])
            assert table.client.params == tables[0].params
        assert sum(app.paths.count("tops") for app in apps) == 2
        found = httpx.get(f"{first}/v1/tables/words/tops", params={"since": before})
        assert len(found.content) == 32 + 36
        whole = httpx.get(f"{first}/v1/tables/words/tops", params={"since": "no id"})
        assert len(whole.content) == 32 + 32 * 313
        assert np.array_equal(tops.parse_tops(tables[0].params, whole.content), tables[0].tops)


def test_a_digest_that_is_given(urls, remote):
    digest = nescio.Table(ROWS).params.digest
    for given in (digest, digest.upper()):
        with remote(urls, "words", digest=given) as table:
            assert np.array_equal(table.lookup([5]), ROWS[[5]])
    with pytest.raises(MismatchError, match="which was given") as caught:
        remote(urls, "words", digest="0" * 64)
    assert (caught.value.found, caught.value.expected) == (digest, "0" * 64)


def test_the_first_digest_is_kept(urls, remote, tmp_path):
    known = tmp_path / "known"
    known.write_text("0" * 64 + " another table\n")
    for own in (urls, urls[::-1], urls):
        with remote(own, "words", known_tables=known):
            pass
    digest = nescio.Table(ROWS).params.digest
    first, second = sorted(urls)
    _, line = known.read_text().splitlines()
    assert line == f"{digest} words {first} {second}"
    known.write_text(known.read_text().replace(digest, "0" * 64))
    with pytest.raises(MismatchError, match="delete its line there"):
        remote(urls, "words", known_tables=known)


@pytest.mark.parametrize("content", ["[]", "abc words", "0" * 64, "\n", "\ud800"])
def test_a_file_of_known_tables_that_is_none(urls, remote, tmp_path, content):
    known = tmp_path / "known"
    known.write_text(content, errors="surrogatepass")
    with pytest.raises(FileError, match="not a file of known tables"):
        remote(urls, "words", known_tables=known)
    assert known.read_text(errors="surrogatepass") == content


def test_a_file_of_known_tables_elsewhere(urls, remote, tmp_path):
    (tmp_path / "file").touch()
    for path in ("no folder/known.json", "file/known.json", "k" * 300):
        with pytest.raises(FileError, match="cannot be (written|read)"):
            remote(urls, "words", known_tables=tmp_path / path)
    known = tmp_path / "known"
    known.write_text("0" * 64 + " words\n", encoding="utf-16")
    with pytest.raises(FileError, match="not a file of known tables"):
        remote(urls, "words", known_tables=known)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verify": 1}, "certificates are the argument tls"),
        ({"verify": "ca.pem"}, "certificates are the argument tls"),
        ({"verify": False, "digest": "0" * 64}, "expected True"),
        ({"digest": "0" * 63}, "64 hexadecimal digits"),
    ],
)
def test_options_that_do_not_fit(urls, remote, options, message):
    with pytest.raises(ArgumentError, match=message):
        remote(urls, "words", **options)


def test_a_client_of_format_1_is_told(urls):
    query = nescio.Client(nescio.Table(ROWS).params, verify=False).query([5]).keys[0]
    found = httpx.post(f"{urls[0]}/v1/tables/words/answer", content=query[:2] + b"\x01" + query[3:])
    assert found.status_code == 400
    assert "found format version 1, expected 2" in found.json()["error"]["message"]
    params = httpx.get(f"{urls[0]}/v1/tables/words").json()["params"]
    with pytest.raises(MalformedMessageError, match="found format 1, this release reads 3"):
        nescio.TableParams.from_dict(params | {"format": 1})
