"""The HTTP service as any client sees it."""

import asyncio
import json
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
from nescio.pir.change import Change
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
    assert table["limits"] == {"max_keys": 1024, "max_body_bytes": 4 << 20}
    assert table["id"] == nescio.Table(VALUES).params.id.hex()
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
    for path in ("/v2", "/v1/tables/", "/v1/tables/words/"):
        response = httpx.get(url + path)
        assert response.status_code == 404
        assert error_of(response)["code"] == "http_error"
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

    def answer_batch(self, queries):
        type(self).batches += 1
        time.sleep(1)
        return super().answer_batch(queries)


class BrokenServer(nescio.Server):
    def answer_batch(self, queries):
        raise RuntimeError("a secret of the operator's")


def test_an_answer_that_takes_too_long(client):
    limits = Limits(answer_seconds=0.1)
    with running(make_app(0, limits=limits, server=SlowServer)) as url:
        response = post(url, client.query([5]).keys[0])
        assert response.status_code == 503
        assert error_of(response)["code"] == "answer_too_slow"
        assert response.headers["retry-after"] == "1"


def test_more_keys_than_may_wait(client):
    limits = Limits(max_waiting_keys=4, max_keys=4)
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
    limits = Limits(max_answer_bytes=300_000, max_held_bytes=400_000)
    with running(make_app(0, values, limits=limits)) as url:
        assert httpx.get(f"{url}/v1/tables/words").json()["limits"]["max_keys"] == 4
        client = nescio.Client(nescio.Table(values).params)
        response = post(url, client.query([0] * 5).keys[0])
        assert response.status_code == 422
        assert error_of(response)["expected"] == "at most 4"
        for _ in range(3):  # what is held is given back
            assert post(url, client.query([0] * 4).keys[0]).status_code == 200


def test_clients_that_do_not_take_their_answers_are_cut_off():
    values = np.zeros((2, 8 << 20), "u1")
    limits = Limits(max_held_bytes=70 << 20, write_seconds=1)
    with running(make_app(0, values, limits=limits)) as url:
        client = nescio.Client(nescio.Table(values).params)
        body = client.query([0] * 7).keys[0]  # 56 MB of answer
        parts = urlsplit(url)
        head = f"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
        with socket.create_connection((parts.hostname, parts.port)) as lazy:
            lazy.sendall(head.encode() + b"\r\n\r\n" + body)
            assert lazy.recv(100).startswith(b"HTTP/1.1 200")
            refused = post(url, body)  # there is room for one such answer only
            assert refused.status_code == 503
            assert error_of(refused)["code"] == "overloaded"
            deadline = time.monotonic() + 30
            while post(url, body).status_code != 200:
                assert time.monotonic() < deadline
                time.sleep(0.2)


TOKEN = "a token of the operator's"


def change(url, body, token=TOKEN):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{url}/v1/tables/words/rows", content=body, headers=headers)


def update_of(params, value=7.0, version="2", index=5):
    rows = np.full((1, 3), value, "f4").view(np.uint8)
    return Change("update", version, np.array([index], np.uint64), rows).encode(params)


def test_rows_change_for_who_has_the_token():
    with running(make_app(0, token=TOKEN)) as url:
        params = nescio.Table(VALUES).params
        for token in (None, "wrong", TOKEN[:-1], TOKEN + "x"):
            response = change(url, update_of(params), token)
            assert response.status_code == 401
            assert error_of(response)["code"] == "not_admitted"
            assert response.headers["www-authenticate"] == "Bearer"
        body = update_of(params)
        response = change(url, body)
        assert response.status_code == 200
        changed = VALUES.copy()
        changed[5] = 7
        assert response.json()["params"] == nescio.Table(changed, version="2").params.to_dict()
        assert httpx.get(f"{url}/v1/tables/words").json() == response.json()
        # The same change again is made already; another one is for a version that has gone.
        assert change(url, body).json() == response.json()
        assert error_of(change(url, update_of(params)))["code"] == "mismatch"


def test_changes_that_cannot_be_made():
    with running(make_app(0, token=TOKEN)) as url:
        params = nescio.Table(VALUES).params
        assert error_of(change(url, b"NC"))["code"] == "malformed_message"
        response = change(url, update_of(params, index=1000))
        assert response.status_code == 422
        assert "expected 0 to 999" in error_of(response)["message"]
        assert httpx.get(f"{url}/v1/tables/words").json()["params"] == params.to_dict()


def test_a_server_without_a_token_takes_no_changes(url):
    response = change(url, update_of(nescio.Table(VALUES).params))
    assert response.status_code == 403
    assert error_of(response)["code"] == "no_changes"


def test_an_application_needs_no_lifespan_and_may_be_started_again(client):
    app = make_app(0)

    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            body = client.query([5]).keys[0]
            answer = await http.post("/v1/tables/words/answer", content=body)
            return answer.status_code, (await http.get("/healthz")).status_code

    for _ in range(2):
        assert asyncio.run(ask()) == (200, 200)


def test_an_application_that_makes_no_sense():
    table = nescio.Table(VALUES)
    with pytest.raises(ArgumentError, match="at least one table"):
        create_app({}, party=0)
    with pytest.raises(ArgumentError, match="its server is for party 1, the service for 0"):
        create_app({"words": nescio.Server(table, party=1)}, party=0)
    server = nescio.Server(table, party=0)
    for name in ("", ".", "..", "a/b", "a b", "\xff", "a" * 129):
        with pytest.raises(ArgumentError, match="a table's name has"):
            create_app({name: server}, party=0)
    with pytest.raises(ArgumentError, match="no request fits 100 bytes"):
        create_app({"words": server}, party=0, limits=Limits(max_body_bytes=100))
    with pytest.raises(ArgumentError, match="at least 16 printable"):
        create_app({"words": server}, party=0, admin_token="short")


@pytest.mark.parametrize(
    "limits",
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
def test_limits_that_make_no_sense(limits):
    with pytest.raises(ArgumentError, match=next(iter(limits))):
        Limits(**limits)


def test_a_change_that_is_sent_many_times_at_once_is_made_once():
    values = np.zeros((100_000, 3), "f4")
    app = make_app(0, values, token=TOKEN)
    rows = np.ones((1, 3), "f4").view(np.uint8)
    insert = Change("insert", "2", np.array([5], np.uint64), rows)
    with running(app) as url:
        body = insert.encode(nescio.Table(values).params)
        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(lambda _: change(url, body), range(8)))
        assert [response.status_code for response in responses] == [200] * 8
        assert responses[0].json()["params"]["rows"] == 100_001
        assert len({response.text for response in responses}) == 1


def test_of_changes_to_one_version_only_one_is_made():
    with running(make_app(0, token=TOKEN)) as url:
        params = nescio.Table(VALUES).params
        bodies = [update_of(params, value=v) for v in range(8)]
        with ThreadPoolExecutor(8) as pool:
            codes = [r.status_code for r in pool.map(lambda body: change(url, body), bodies)]
    assert sorted(codes) == [200] + [409] * 7


def test_connections_beyond_the_limit_are_closed_and_the_others_served():
    with running(make_app(0), most_connections=3) as url:
        parts = urlsplit(url)
        idle = [socket.create_connection((parts.hostname, parts.port)) for _ in range(2)]
        assert httpx.get(f"{url}/healthz").status_code == 200
        idle += [socket.create_connection((parts.hostname, parts.port)) for _ in range(3)]
        time.sleep(0.3)
        for connection in idle:
            connection.setblocking(False)
        ended = []
        for connection in idle:
            try:
                ended.append(connection.recv(1) == b"")
            except BlockingIOError:
                ended.append(False)
            except ConnectionResetError:
                ended.append(True)
        assert ended == [False, False, False, True, True]
        for connection in idle:
            connection.close()


def test_queries_that_do_not_end_do_not_fill_the_memory():
    limits = Limits(max_held_bytes=3 << 20, max_answer_bytes=1 << 20, max_body_bytes=1 << 20)
    with running(make_app(0, limits=limits)) as url:
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
        time.sleep(0.3)  # what they held is given back
        query = nescio.Client(nescio.Table(VALUES).params).query([5]).keys[0]
        assert post(url, query).status_code == 200


def readable(connection):
    return bool(select.select([connection], [], [], 2)[0])


@pytest.mark.parametrize(
    "token", ["p\u00e4ssword of the operator", "short", "a token \x1b[31m of red"]
)
def test_tokens_that_no_request_can_carry(token):
    with pytest.raises(ArgumentError, match="printable ASCII"):
        make_app(0, token=token)
