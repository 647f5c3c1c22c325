"""The HTTP service as any client sees it."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError
from nescio.service import Limits, create_app
from service.conftest import VALUES, make_app, running


@pytest.fixture(scope="module")
def url(pair):
    return pair[0]


def post(url, body, table="words", **options):
    return httpx.post(f"{url}/v1/tables/{table}/answer", content=body, **options)


def error_of(response):
    assert response.headers["content-type"] == "application/json"
    return response.json()["error"]


def test_health(url):
    assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}


def test_the_list_of_tables_and_a_table(url):
    listed = httpx.get(f"{url}/v1/tables").json()
    assert [t["name"] for t in listed["tables"]] == ["words"]
    table = httpx.get(f"{url}/v1/tables/words").json()
    assert table == listed["tables"][0]
    assert table["party"] == 0
    assert table["limits"] == {"max_keys": 1024}
    params = nescio.TableParams.from_json(json.dumps(table["params"]))
    assert params == nescio.Table(VALUES).params


def test_a_lookup_with_nothing_but_http(pair, client):
    query = client.query([5, 999])
    responses = [post(u, key) for u, key in zip(pair, query.keys, strict=True)]
    assert {r.headers["content-type"] for r in responses} == {"application/octet-stream"}
    assert all(r.headers["server-timing"].startswith("answer;dur=") for r in responses)
    rows = client.decode(query, *(r.content for r in responses))
    assert np.array_equal(rows, VALUES[[5, 999]])


def test_an_unknown_table(url):
    for response in (httpx.get(f"{url}/v1/tables/wrods"), post(url, b"", "wrods")):
        assert response.status_code == 404
        assert error_of(response) == {
            "code": "unknown_table",
            "message": "there is no table 'wrods' here; there are: words",
        }


def test_paths_and_methods_that_do_not_exist(url):
    assert error_of(httpx.get(f"{url}/v2"))["code"] == "http_error"
    response = httpx.get(f"{url}/v1/tables/words/answer")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("body", [b"", b"NQ", b"<html>", bytes(1000)])
def test_a_body_that_is_no_query(url, body):
    response = post(url, body)
    assert response.status_code == 400
    assert error_of(response)["code"] == "malformed_message"


def test_a_damaged_key(url, client):
    query = bytearray(client.query([5]).keys[0])
    query[32] = 0
    response = post(url, bytes(query))
    assert response.status_code == 400
    assert error_of(response)["code"] == "malformed_key"


def test_a_query_to_another_version_says_what_was_found_and_expected(url, client):
    other = nescio.Client(nescio.Table(VALUES, version="2").params)
    response = post(url, other.query([5]).keys[0])
    assert response.status_code == 409
    error = error_of(response)
    assert error["code"] == "mismatch"
    assert error["found"] == other.params.id.hex()
    assert error["expected"] == client.params.id.hex()


def test_the_other_partys_key_is_refused(url, client):
    response = post(url, client.query([5]).keys[1])
    assert response.status_code == 409
    assert "one server must never get both keys" in error_of(response)["message"]


def test_too_many_keys(client):
    with running(make_app(0, limits=Limits(max_keys=3))) as url:
        assert post(url, client.query([1, 2, 3]).keys[0]).status_code == 200
        response = post(url, client.query([1, 2, 3, 4]).keys[0])
        assert response.status_code == 422
        assert error_of(response)["code"] == "too_many_keys"
        assert error_of(response)["expected"] == "at most 3"


def chunks(*parts):
    yield from parts


def test_a_body_over_the_limit(client):
    with running(make_app(0, limits=Limits(max_body_bytes=2000))) as url:
        for body in (bytes(2001), chunks(bytes(1500), bytes(1500))):  # declared, and not
            response = post(url, body)
            assert response.status_code == 413
            assert error_of(response)["code"] == "body_too_large"
            assert "2000" in error_of(response)["message"]
        assert post(url, client.query([5]).keys[0]).status_code == 200


def raw_request(url, data, seconds=10):
    """All that comes back for bytes on a socket before the server closes it."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), seconds) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_body_that_never_comes(client):
    with running(make_app(0, limits=Limits(read_seconds=0.2))) as url:
        begun = time.monotonic()
        answer = raw_request(
            url,
            b"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nNQ",
        )
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"body_too_slow" in answer
        assert time.monotonic() - begun < 5
        assert post(url, client.query([5]).keys[0]).status_code == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",  # a TLS hello
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 9e9\r\n\r\n",
    ],
)
def test_garbage_instead_of_http(url, data):
    assert raw_request(url, data).startswith((b"HTTP/1.1 4", b""))
    assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_client_that_leaves_in_the_middle(url):
    parts = urlsplit(url)
    for _ in range(5):
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            connection.sendall(
                b"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nNQ"
            )
    assert httpx.get(f"{url}/healthz").status_code == 200


class SlowServer(nescio.Server):
    """Answers after a second, and counts its batches."""

    batches = 0

    def answer_checked(self, queries):
        type(self).batches += 1
        time.sleep(1)
        return super().answer_checked(queries)


class BrokenServer(nescio.Server):
    def answer_checked(self, queries):
        raise RuntimeError("a secret of the operator's")


def test_an_answer_that_takes_too_long(client):
    limits = Limits(answer_seconds=0.1)
    with running(make_app(0, limits=limits, server=SlowServer)) as url:
        response = post(url, client.query([5]).keys[0])
        assert response.status_code == 503
        assert error_of(response)["code"] == "answer_too_slow"
        assert response.headers["retry-after"] == "1"


def test_more_keys_than_may_wait(client):
    limits = Limits(max_waiting_keys=4)
    with (
        running(make_app(0, limits=limits, server=SlowServer)) as url,
        ThreadPoolExecutor(8) as pool,
    ):
        bodies = [client.query([1, 2]).keys[0] for _ in range(8)]
        statuses = [r.status_code for r in pool.map(lambda body: post(url, body), bodies)]
    assert set(statuses) == {200, 503}


def test_requests_that_arrive_together_are_answered_together(client):
    SlowServer.batches = 0
    with running(make_app(0, server=SlowServer)) as url, ThreadPoolExecutor(10) as pool:
        queries = [client.query([i]) for i in range(10)]
        responses = list(pool.map(lambda query: post(url, query.keys[0]), queries))
    assert SlowServer.batches <= 3
    own = nescio.Server(nescio.Table(VALUES), party=0)
    for query, response in zip(queries, responses, strict=True):
        assert response.content == own.answer(query.keys[0])


def test_a_server_that_fails_does_not_tell_how(client):
    with running(make_app(0, server=BrokenServer)) as url:
        response = post(url, client.query([5]).keys[0])
        assert response.status_code == 500
        assert error_of(response)["code"] == "internal_error"
        assert "secret" not in response.text
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_an_application_that_makes_no_sense():
    table = nescio.Table(VALUES)
    with pytest.raises(ArgumentError, match="at least one table"):
        create_app({}, party=0)
    with pytest.raises(ArgumentError, match="its server is for party 1, the service for 0"):
        create_app({"words": nescio.Server(table, party=1)}, party=0)


@pytest.mark.parametrize(
    "limits",
    [{"max_keys": 0}, {"answer_seconds": -1}, {"batch_window": 2}, {"max_body_bytes": 0}],
)
def test_limits_that_make_no_sense(limits):
    with pytest.raises(ArgumentError, match=next(iter(limits))):
        Limits(**limits)
