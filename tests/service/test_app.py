"""The HTTP interface of the service."""

import asyncio
import json
import socket
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, DeviceFailedError, ResourceError
from nescio.service import Quotas, create_app
from service.conftest import VALUES, error_of, make_app, post, raw_request, running


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
def test_a_body_that_is_not_a_query(url, body):
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
    changed = nescio.Table(VALUES, version="2")
    other = nescio.Client(changed.params, changed.tops)
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


class BrokenServer(nescio.Server):
    def answer_batch(self, queries):
        raise RuntimeError("a secret of the operator's")


def test_a_server_that_fails_does_not_tell_how(client):
    with running(make_app(0, server=BrokenServer)) as url:
        response = post(url, client.query([5]).keys[0])
        assert response.status_code == 500
        assert error_of(response)["code"] == "internal_error"
        assert "secret" not in response.text
        assert httpx.get(f"{url}/healthz").status_code == 200


class ShortServer(nescio.Server):
    """Lacks memory for its first batch."""

    error = ResourceError("cuda:0 is out of memory: a secret of the operator's")

    def answer_batch(self, queries):
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return super().answer_batch(queries)


def test_a_server_without_memory_goes_on(client, caplog):
    with running(make_app(0, server=ShortServer)) as url:
        response = post(url, client.query([5]).keys[0])
        assert response.status_code == 503
        assert error_of(response)["code"] == "no_resources"
        assert response.headers["retry-after"] == "1"
        assert "secret" not in response.text
        assert "cuda:0 is out of memory" in caplog.text
        assert "Traceback" not in caplog.text
        assert post(url, client.query([5]).keys[0]).status_code == 200
        assert httpx.get(f"{url}/healthz").status_code == 200


class FailedServer(nescio.Server):
    def answer_batch(self, queries):
        raise DeviceFailedError("work on a GPU failed: an illegal memory access")


def test_a_server_whose_card_has_failed_says_so(client, caplog):
    with running(make_app(0, server=FailedServer)) as url:
        response = post(url, client.query([5]).keys[0])
        assert response.status_code == 503
        assert "until it is restarted" in error_of(response)["message"]
        assert httpx.get(f"{url}/healthz").status_code == 500
    assert "illegal memory access" in caplog.text


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


def test_invalid_arguments_of_an_application():
    table = nescio.Table(VALUES)
    with pytest.raises(ArgumentError, match="at least one table"):
        create_app({}, party=0)
    with pytest.raises(ArgumentError, match="its server is party 1, the service is party 0"):
        create_app({"words": nescio.Server(table, party=1)}, party=0)
    with pytest.raises(ArgumentError, match="party: found True, expected an integer"):
        create_app({"words": nescio.Server(table, party=1)}, party=True)
    server = nescio.Server(table, party=0)
    for name in ("", ".", "..", "a/b", "a b", "\xff", "a" * 129):
        with pytest.raises(ArgumentError, match="a table's name has"):
            create_app({name: server}, party=0)
    with pytest.raises(ArgumentError, match="no request fits 100 bytes"):
        create_app({"words": server}, party=0, quotas=Quotas(max_body_bytes=100))
    with pytest.raises(ArgumentError, match="at least 16 printable"):
        create_app({"words": server}, party=0, admin_token="short")
