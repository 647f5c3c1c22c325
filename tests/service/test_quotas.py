"""The quotas and timeouts of a service."""

import select
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError
from nescio.service import Quotas
from service.conftest import VALUES, error_of, make_app, post, raw_request, running

pytestmark = pytest.mark.load


def test_too_many_keys(client):
    with running(make_app(0, quotas=Quotas(max_keys=3))) as url:
        assert post(url, client.query([1, 2, 3]).keys[0]).status_code == 200
        response = post(url, client.query([1, 2, 3, 4]).keys[0])
        assert response.status_code == 422
        assert error_of(response)["code"] == "too_many_keys"
        assert error_of(response)["expected"] == "at most 3"


def chunks(*parts):
    yield from parts


def test_a_body_over_the_limit(client):
    with running(make_app(0, quotas=Quotas(max_body_bytes=2000))) as url:
        for body in (
            bytes(2001),
            chunks(bytes(1500), bytes(1500)),
        ):  # with and without a declared length
            response = post(url, body)
            assert response.status_code == 413
            assert error_of(response)["code"] == "body_too_large"
            assert "2000" in error_of(response)["message"]
        assert post(url, client.query([5]).keys[0]).status_code == 200


def test_a_body_of_any_declared_length_over_the_limit():
    """However many keys it would have: to try it again later would be of no use."""
    with running(make_app(0)) as url:
        for length in (1 << 40, 10**18):
            head = f"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: {length}"
            answer = raw_request(url, f"{head}\r\n\r\nNQ".encode())
            assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_never_comes(client):
    with running(make_app(0, quotas=Quotas(read_seconds=0.2))) as url:
        begun = time.monotonic()
        answer = raw_request(
            url,
            b"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nNQ",
        )
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"body_too_slow" in answer
        assert time.monotonic() - begun < 5
        assert post(url, client.query([5]).keys[0]).status_code == 200


class SlowServer(nescio.Server):
    """Answers after a second, and counts the batches."""

    batches = 0

    def answer_batch(self, queries):
        type(self).batches += 1
        time.sleep(1)
        return super().answer_batch(queries)


def test_an_answer_that_takes_too_long(client):
    quotas = Quotas(answer_seconds=0.1)
    with running(make_app(0, quotas=quotas, server=SlowServer)) as url:
        response = post(url, client.query([5]).keys[0])
        assert response.status_code == 503
        assert error_of(response)["code"] == "answer_too_slow"
        assert response.headers["retry-after"] == "1"


def test_more_keys_than_may_wait(client):
    quotas = Quotas(max_waiting_keys=4, max_keys=4)
    with (
        running(make_app(0, quotas=quotas, server=SlowServer)) as url,
        ThreadPoolExecutor(8) as pool,
    ):
        bodies = [client.query([1, 2]).keys[0] for _ in range(8)]
        statuses = [r.status_code for r in pool.map(lambda body: post(url, body), bodies)]
    assert set(statuses) == {200, 429}


def test_requests_that_arrive_together_are_answered_together(client):
    SlowServer.batches = 0
    with running(make_app(0, server=SlowServer)) as url, ThreadPoolExecutor(10) as pool:
        queries = [client.query([i]) for i in range(10)]
        responses = list(pool.map(lambda query: post(url, query.keys[0]), queries))
    assert SlowServer.batches <= 3
    own = nescio.Server(nescio.Table(VALUES), party=0)
    for query, response in zip(queries, responses, strict=True):
        assert response.content == own.answer(query.keys[0])


@pytest.mark.parametrize("said", [b"", b"POST /v1/tables/words/answer HTTP/1.1\r\nHost"])
def test_a_connection_that_never_asks_is_closed(said):
    with running(make_app(0), head_seconds=0.3) as url:
        begun = time.monotonic()
        assert raw_request(url, said) == b""
        assert time.monotonic() - begun < 5
        # One that asks is not, and may ask again; then it too is closed.
        again = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        assert raw_request(url, again + again).count(b"HTTP/1.1 200") == 2


def test_the_answer_is_bounded_too():
    values = np.zeros((4, 1 << 16), "u1")
    quotas = Quotas(max_answer_bytes=300_000, max_held_bytes=400_000)
    with running(make_app(0, values, quotas=quotas)) as url:
        assert httpx.get(f"{url}/v1/tables/words").json()["limits"]["max_keys"] == 4
        client = nescio.Client(nescio.Table(values).params, verify=False)
        response = post(url, client.query([0] * 5).keys[0])
        assert response.status_code == 422
        assert error_of(response)["expected"] == "at most 4"
        for _ in range(3):  # the reserved bytes are released
            assert post(url, client.query([0] * 4).keys[0]).status_code == 200


def test_clients_that_do_not_take_their_answers_are_cut_off():
    values = np.zeros((2, 8 << 20), "u1")
    quotas = Quotas(max_held_bytes=70 << 20, write_seconds=1)
    with running(make_app(0, values, quotas=quotas)) as url:
        client = nescio.Client(nescio.Table(values).params, verify=False)
        body = client.query([0] * 7).keys[0]  # 56 MB of answer
        parts = urlsplit(url)
        head = f"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
        with socket.create_connection((parts.hostname, parts.port)) as lazy:
            lazy.sendall(head.encode() + b"\r\n\r\n" + body)
            assert lazy.recv(100).startswith(b"HTTP/1.1 200")
            refused = post(url, body)  # the budget allows only one such answer
            assert refused.status_code == 503
            assert error_of(refused)["code"] == "overloaded"
            deadline = time.monotonic() + 30
            while post(url, body).status_code != 200:
                assert time.monotonic() < deadline
                time.sleep(0.2)


@pytest.mark.parametrize(
    "quotas",
    [
        {"max_keys": 0},
        {"max_keys": 1.5},
        {"max_keys": float("nan")},
        {"answer_seconds": -1},
        {"answer_seconds": float("nan")},
        {"answer_seconds": float("inf")},
        {"batch_window": 2},
        {"max_body_bytes": 0},
        {"max_waiting_keys": 3},
        {"max_held_bytes": 3},
    ],
)
def test_invalid_quotas(quotas):
    with pytest.raises(ArgumentError, match=next(iter(quotas))):
        Quotas(**quotas)


def test_queries_that_do_not_end_do_not_fill_the_memory():
    quotas = Quotas(max_held_bytes=3 << 20, max_answer_bytes=1 << 20, max_body_bytes=1 << 20)
    with running(make_app(0, quotas=quotas)) as url:
        parts = urlsplit(url)
        head = "POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
        slow = [socket.create_connection((parts.hostname, parts.port)) for _ in range(4)]
        for connection in slow:
            connection.sendall(head.encode() + bytes(900_000))
        slow[3].settimeout(5)
        replies = [connection.recv(4000) for connection in slow if readable(connection)]
        assert any(b"503" in reply and b"overloaded" in reply for reply in replies)
        for connection in slow:
            connection.close()
        time.sleep(0.3)  # their reserved bytes are released
        query = nescio.Client(nescio.Table(VALUES).params, verify=False).query([5]).keys[0]
        assert post(url, query).status_code == 200


def readable(connection):
    return bool(select.select([connection], [], [], 2)[0])


def test_a_connection_that_is_closed_and_takes_nothing_is_aborted():
    values = np.zeros((2, 1 << 20), "u1")
    app = make_app(0, values, quotas=Quotas(write_seconds=0.5))
    with running(app, head_seconds=0.5, max_connections=1) as url:
        body = nescio.Client(nescio.Table(values).params, verify=False).query([0] * 20).keys[0]
        parts = urlsplit(url)
        head = f"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
        with socket.create_connection((parts.hostname, parts.port)) as lazy:
            lazy.sendall(head.encode() + b"\r\n\r\n" + body)
            assert lazy.recv(100).startswith(b"HTTP/1.1 200")
            deadline = time.monotonic() + 20
            while True:  # until the only connection is free again
                try:
                    assert httpx.get(f"{url}/healthz").status_code == 200
                    break
                except httpx.TransportError:
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
