"""Changes to rows over HTTP, on one server."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError
from nescio.pir._change import Change, content_of
from nescio.service import Quotas
from service.conftest import VALUES, error_of, make_app, running

TOKEN = "a token of the operator's"


def change(url, body, token=TOKEN):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{url}/v1/tables/words/rows", content=body, headers=headers)


def update_of(params, value=7.0, version="2", index=5):
    rows = np.full((1, 3), value, "f4").view(np.uint8)
    return Change("update", version, np.array([index], np.uint64), rows).encode(params)


def test_a_change_needs_the_token():
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
        # A repetition of the change has no effect; another change is for an old version.
        assert change(url, body).json() == response.json()
        assert error_of(change(url, update_of(params)))["code"] == "mismatch"


def test_invalid_changes():
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


@pytest.mark.parametrize(
    "token", ["p\u00e4ssword of the operator", "short", "a token \x1b[31m of red"]
)
def test_tokens_that_no_request_can_carry(token):
    with pytest.raises(ArgumentError, match="printable ASCII"):
        make_app(0, token=token)


def check(url, body, token=TOKEN):
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{url}/v1/tables/words/rows/check", content=body, headers=headers)


def test_the_check_of_a_change_changes_nothing():
    with running(make_app(0, token=TOKEN)) as url:
        params = nescio.Table(VALUES).params
        body = update_of(params)
        before = httpx.get(f"{url}/v1/tables/words").json()
        assert before["last_change"] is None
        assert check(url, body[:49]).json() == before
        assert check(url, body[:49], "a wrong token, and long").status_code == 401
        assert error_of(check(url, body[:40]))["code"] == "malformed_message"
        assert error_of(check(url, body))["code"] == "malformed_message"
        used = check(url, update_of(params, version="1")[:49])
        assert error_of(used)["message"].startswith("version: found '1', which this table has had")
        assert error_of(check(url, update_of(params, version="\n")[:49]))["code"] == (
            "impossible_change"
        )
        assert change(url, body).json()["last_change"] == content_of(body).hex()
        assert error_of(check(url, body[:49]))["code"] == "mismatch"


def test_a_version_that_was_used_before_is_refused():
    with running(make_app(0, token=TOKEN)) as url:
        params = nescio.Table(VALUES).params
        for version in ("2", "3"):
            changed = change(url, update_of(params, version=version)).json()
            params = nescio.TableParams.from_dict(changed["params"])
        response = change(url, update_of(params, version="2"))
        assert response.status_code == 422
        assert "found '2', which this table has had already" in error_of(response)["message"]


def test_wrong_tokens_are_slow_and_logged(caplog):
    quotas = Quotas(wrong_token_seconds=0.4)
    with running(make_app(0, quotas=quotas, token=TOKEN)) as url:
        body = update_of(nescio.Table(VALUES).params)
        begun = time.monotonic()
        assert [change(url, body, "wrong").status_code for _ in range(2)] == [401, 401]
        assert time.monotonic() - begun >= 0.8
        assert change(url, body).status_code == 200
    (record,) = (r for r in caplog.records if "operator's token" in r.getMessage())
    assert "the latest from 127.0.0.1 for words" in record.getMessage()
    assert TOKEN not in caplog.text
    assert "wrong" not in record.getMessage()
