"""Older versions of a table over HTTP: in the description, for lookups, and when they are gone."""

import json

import httpx
import numpy as np
import pytest

import nescio
from nescio.pir import Bins
from nescio.pir._change import Change, last_change_of, make_change
from nescio.pir._tops import parse_tops
from nescio.service import RemoteTable, create_app
from pir.test_lookup import assert_same
from service.conftest import running

VALUES = np.arange(3000, dtype=np.float32).reshape(1000, 3)


@pytest.fixture
def table():
    return nescio.Table(VALUES)


@pytest.fixture
def url(table):
    servers = {"words": nescio.Server(table, party=0)}
    with running(create_app(servers, party=0)) as address:
        yield f"{address}/v1/tables/words"


def error_of(response):
    return response.status_code, response.json()["error"]["code"]


def test_the_description_lists_at_most_eight_versions(table, url):
    table.keep_versions(16, fraction=1)
    for row in range(1, 13):
        table.update([row], VALUES[[0]])
    described = httpx.get(url).json()
    assert described["versions"] == [params.to_dict() for params in table.versions[:8]]
    assert described["versions"][0] == described["params"]
    assert len(table.versions) > 8


def test_the_description_and_the_tops_follow_every_change(table, url):
    """They are encoded once for many clients, and anew after each change."""
    first = table.params
    for version in ("2", "3"):
        table.update([7], VALUES[[int(version)]], version=version)
        for _ in range(2):
            described = httpx.get(url).json()
            assert described["id"] == table.params.id.hex()
            assert described["versions"][0]["version"] == version
            assert described["next_version"] == str(int(version) + 1)
            for since in ("", first.id.hex(), "no id"):
                message = httpx.get(f"{url}/tops", params={"since": since}).content
                known = nescio.Table(VALUES).tops if since == first.id.hex() else None
                assert_same(parse_tops(table.params, message, known), table.tops)
    table.release(first.id)
    assert first.to_dict() not in httpx.get(url).json()["versions"]


def test_a_change_of_a_message_is_described_at_once(table, url):
    """The last change is known a moment after the new version."""
    change = Change("update", "2", np.array([1], np.uint64), np.zeros((1, 12), np.uint8))
    message = change.encode(table.params)
    httpx.get(url)
    make_change(table, message)
    described = httpx.get(url).json()
    assert described["last_change"] == last_change_of(message).content.hex()


def test_the_versions_of_a_table_in_many_bins_fit_a_description():
    table = nescio.Table(VALUES, bins=[(1, 1, 1 + i % 2) for i in range(1000)])
    table.keep_versions(16, fraction=1)
    for row in range(1, 6):
        table.update([row], VALUES[[0]])
    with running(create_app({"words": nescio.Server(table, party=0)}, party=0)) as address:
        response = httpx.get(f"{address}/v1/tables/words")
    assert 1 < len(response.json()["versions"]) < len(table.versions)
    assert len(response.content) < 64 << 10


def test_answers_of_older_versions_name_the_newer_one(table, url):
    client = nescio.Client(table.params, table.tops)
    first, second = client.query([5]), client.query([5])
    other = nescio.Server(nescio.Table(VALUES), party=1)
    response = httpx.post(f"{url}/answer", content=first.keys[0])
    assert "Nescio-Newer" not in response.headers
    table.update([5], VALUES[[6]])
    response = httpx.post(f"{url}/answer", content=second.keys[0])
    found = client.decode(second, response.content, other.answer(second.keys[1]))
    assert np.array_equal(found, VALUES[[5]])
    named = json.loads(response.headers["Nescio-Newer"])
    current = {"id": table.params.id.hex(), "params": table.params.to_dict()}
    assert named == {**current, "age": 1, "kept": len(table.versions)}
    third = client.query([5])
    table.update([7], VALUES[[8]])
    response = httpx.post(f"{url}/answer", content=third.keys[0])
    named = json.loads(response.headers["Nescio-Newer"])
    assert (named["id"], named["age"]) == (table.params.id.hex(), 2)


def test_the_header_is_left_out_if_it_is_long():
    table = nescio.Table(VALUES, bins=[(1, 1, 1 + i % 2) for i in range(1000)])
    query = nescio.Client(table.params, table.tops).query([[0] * table.params.slots])
    table.update([5], VALUES[[6]])
    with running(create_app({"words": nescio.Server(table, party=0)}, party=0)) as address:
        response = httpx.post(f"{address}/v1/tables/words/answer", content=query.keys[0])
    assert response.status_code == 200
    assert "Nescio-Newer" not in response.headers


def test_queries_of_other_shapes_before_a_rebuild(table, url):
    """The older version has other key lengths, by which the request is measured."""
    query = nescio.Client(table.params, table.tops).query([5] * 1000)
    table.delete(np.arange(990))
    assert httpx.post(f"{url}/answer", content=query.keys[0]).status_code == 200


def test_gone_versions(table, url):
    query = nescio.Client(table.params, table.tops).query([5]).keys[0]
    old = table.params.id.hex()
    table.update([5], VALUES[[6]])
    assert httpx.get(f"{url}/tops", params={"version": old}).status_code == 200
    table.keep_versions(1)
    response = httpx.post(f"{url}/answer", content=query)
    assert error_of(response) == (410, "version_gone")
    assert response.json()["error"]["found"] == old
    assert response.json()["error"]["expected"] == table.params.id.hex()
    for part in ("tops", "layout"):
        response = httpx.get(f"{url}/{part}", params={"version": old})
        assert error_of(response) == (410, "version_gone")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0" * 32, (409, "mismatch")),
        ("", (400, "malformed_message")),
        ("0" * 31, (400, "malformed_message")),
        ("G" * 32, (400, "malformed_message")),
        ("0" * 32 + "\n", (400, "malformed_message")),
    ],
)
@pytest.mark.parametrize("part", ["tops", "layout"])
def test_invalid_ids_of_versions(part, version, expected, url):
    assert error_of(httpx.get(f"{url}/{part}", params={"version": version})) == expected


def test_tops_and_layouts_of_older_versions():
    table = nescio.Table(VALUES, bins=[(10, 100)], layout=b"one")
    old, tops = table.params, table.tops.copy()
    table.update([5], VALUES[[6]])
    middle = table.params
    table.replace(VALUES[:500], bins=[Bins(5, 100)], layout=b"two")
    with running(create_app({"words": nescio.Server(table, party=0)}, party=0)) as address:
        url = f"{address}/v1/tables/words"
        assert httpx.get(f"{url}/tops", params={"version": old.id.hex()}).content[32:] == bytes(
            tops.data
        )
        layouts = [
            httpx.get(f"{url}/layout", params={"version": params.id.hex()}).content
            for params in (table.params, middle, old)
        ]
    assert layouts == [b"two", b"one", b"one"]


def test_a_client_follows_two_servers_that_change_one_after_the_other():
    """Nothing is refused in between; afterwards the client gets to the version of both."""
    tables = [nescio.Table(VALUES) for _ in range(2)]
    apps = [
        create_app({"words": nescio.Server(table, party=p)}, party=p)
        for p, table in enumerate(tables)
    ]
    with running(apps[0]) as first, running(apps[1]) as second:
        with RemoteTable([first, second], "words") as remote:
            for version in range(20):
                row = np.full((1, 3), version, np.float32)
                before = remote.lookup([5])
                tables[0].update([5], row)
                assert np.array_equal(remote.lookup([5]), before)
                tables[1].update([5], row)
                while not np.array_equal(found := remote.lookup([5]), row):
                    assert np.array_equal(found, before)
