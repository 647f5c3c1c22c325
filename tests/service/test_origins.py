"""Web pages of other origins, and the operator's port."""

import httpx
import pytest

import nescio
from nescio.errors import ArgumentError
from nescio.service import create_app
from service.conftest import QUOTAS, TOKENS, VALUES, error_of, post, running

ORIGIN = "https://app.example.org"


def app_with(**options):
    server = nescio.Server(nescio.Table(VALUES), party=0, threads=1)
    return create_app({"words": server}, party=0, quotas=QUOTAS, **options)


def preflight(url, origin, path="/v1/tables/words/answer"):
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    return httpx.options(url + path, headers=headers)


def test_a_web_page_of_an_origin_may_ask_and_read_the_headers(client):
    with running(app_with(origins=[ORIGIN, "http://localhost:3000"])) as url:
        allowed = preflight(url, ORIGIN)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == ORIGIN
        assert "POST" in allowed.headers["access-control-allow-methods"]
        assert "Authorization" in allowed.headers["access-control-allow-headers"]
        good, bad = client.query([5]).keys[0], b"not a query"
        for body, status in ((good, 200), (bad, 400)):
            answer = post(url, body, headers={"Origin": ORIGIN})
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == ORIGIN
            exposed = answer.headers["access-control-expose-headers"]
            assert {"Retry-After", "Server-Timing", "Nescio-Newer"} <= {*exposed.split(", ")}
        table = httpx.get(f"{url}/v1/tables/words", headers={"Origin": "http://localhost:3000"})
        assert table.headers["access-control-allow-origin"] == "http://localhost:3000"


def test_other_origins_may_not(client):
    body = client.query([5]).keys[0]
    with running(app_with(origins=[ORIGIN])) as url, running(app_with()) as closed:
        for origin in ("https://app.example.org.evil.org", "https://evil.org", "null"):
            assert preflight(url, origin).status_code == 400
            answer = post(url, body, headers={"Origin": origin})
            assert "access-control-allow-origin" not in answer.headers
        answer = post(closed, body, headers={"Origin": ORIGIN})
        assert "access-control-allow-origin" not in answer.headers
        assert preflight(closed, ORIGIN).status_code == 405


@pytest.mark.parametrize("origin", ["*", "app.example.org", ORIGIN + "/", "https://A.org", "null"])
def test_an_origin_that_no_browser_sends(origin):
    with pytest.raises(ArgumentError, match="--cors: found"):
        app_with(origins=[origin])


def test_operators_have_a_port_of_their_own(client):
    app = app_with(admin_token=TOKENS[0], admin_apart=True)
    own = {"headers": {"Authorization": f"Bearer {TOKENS[0]}"}}
    query = client.query([5]).keys[0]
    with running(app) as url, running(app.state.admin) as admin:
        assert post(url, query).status_code == 200
        for path in ("rows", "rows/check", "rows/vacant"):
            refused = httpx.post(f"{url}/v1/tables/words/{path}", content=b"", **own)
            assert refused.status_code == 404
            assert error_of(refused)["code"] == "other_port"
        assert httpx.get(f"{url}/metrics").status_code == 404
        change = httpx.post(f"{admin}/v1/tables/words/rows", content=b"", **own)
        assert error_of(change)["code"] == "malformed_message"  # the token was right
        assert post(admin, query).status_code == 404
        assert httpx.get(f"{admin}/healthz").json() == {"status": "ok"}
        described = httpx.get(f"{admin}/v1/tables/words").json()
        assert described == httpx.get(f"{url}/v1/tables/words").json()
        assert "nescio_requests_total" in httpx.get(f"{admin}/metrics").text
