"""Keys and budgets of clients, and the log of what operators do."""

import base64
import hashlib
import logging

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, FileError, ServerRefusedError
from nescio.service import RemoteTable, TableAdmin, create_app
from nescio.service._access import Access, ClientKeys, new_client_key
from nescio.service._access._budgets import Budgets
from nescio.service._quotas import RefusedError
from service.conftest import QUOTAS, TOKENS, VALUES, error_of, post, running


def app_with(access, party=0, token=None):
    server = nescio.Server(nescio.Table(VALUES), party=party, threads=1)
    return create_app(
        {"words": server}, party=party, quotas=QUOTAS, access=access, admin_token=token
    )


@pytest.fixture
def keys_file(tmp_path):
    """A file with the key of one client, and the key."""
    key, line = new_client_key("alice")
    path = tmp_path / "clients"
    path.write_text(f"# clients\n\n{line}  # since May\n")
    return path, key


def bearer(key):
    return {"headers": {"Authorization": f"Bearer {key}"}}


def test_only_clients_with_a_key_are_answered(keys_file, client):
    path, key = keys_file
    body = client.query([5]).keys[0]
    with running(app_with(Access(ClientKeys(path)))) as url:
        assert post(url, body, **bearer(key)).status_code == 200
        for wrong in ({}, bearer(key + "x"), bearer("."), {"headers": {"Authorization": key}}):
            refused = post(url, body, **wrong)
            assert refused.status_code == 401
            assert error_of(refused)["code"] == "not_a_client"
            assert refused.headers["www-authenticate"] == "Bearer"
        assert httpx.get(f"{url}/v1/tables/words").status_code == 200  # what is public stays so


def test_clients_without_a_key_are_answered_where_they_may_be(keys_file, client):
    path, key = keys_file
    body = client.query([5]).keys[0]
    with running(app_with(Access(ClientKeys(path), anonymous=True))) as url:
        assert post(url, body).status_code == 200
        assert post(url, body, **bearer(key)).status_code == 200
        assert post(url, body, **bearer("another")).status_code == 401


def test_a_key_that_nobody_asked_for_is_ignored(client):
    with running(app_with(Access())) as url:
        assert post(url, client.query([5]).keys[0], **bearer("anything")).status_code == 200


def test_keys_change_while_the_service_runs(keys_file, client, caplog):
    path, key = keys_file
    keys = ClientKeys(path)
    body = client.query([5]).keys[0]
    with running(app_with(Access(keys))) as url:
        new, line = new_client_key("alice")
        path.write_text("this is not a line of such a file at all")
        with pytest.raises(FileError, match="line 1: found"):
            keys.reload()
        assert post(url, body, **bearer(key)).status_code == 200  # as before
        path.write_text(line)
        assert keys.reload()
        assert not keys.reload()
        assert post(url, body, **bearer(key)).status_code == 401
        assert post(url, body, **bearer(new)).status_code == 200


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("alice", "found 1 words"),
        ("alice 00", "alice: expected a SHA-256"),
        ("alice " + "A" * 64, "alice: expected a SHA-256"),
        ("a/b " + "0" * 64, "found the name 'a/b'"),
        ("alice " + "0" * 64 + " nan", "alice: expected keys a second"),
        ("alice " + "0" * 64 + " 0", "alice: expected keys a second"),
    ],
)
def test_a_file_with_an_invalid_line(tmp_path, line, words):
    path = tmp_path / "clients"
    path.write_text(f"bob {'1' * 64}\n{line}\n")
    with pytest.raises(FileError, match=f"line 2: {words}"):
        ClientKeys(path)


def test_a_file_of_keys_that_does_not_exist(tmp_path):
    with pytest.raises(FileError, match="clients' keys"):
        ClientKeys(tmp_path / "none")


def test_the_line_of_a_new_key():
    key, line = new_client_key("bob", 250)
    assert len(key) >= 43
    assert line == f"bob {hashlib.sha256(key.encode()).hexdigest()} 250"
    with pytest.raises(FileError, match="found the name"):
        new_client_key("a/b")


def test_a_budget_is_a_rate_with_a_second_in_reserve():
    now = [0.0]
    budgets = Budgets(lambda: now[0])
    budgets.spend("a", 10, 8)
    budgets.spend("a", 10, 22)  # may exceed what is left
    with pytest.raises(RefusedError) as refused:
        budgets.spend("a", 10, 1)
    assert (refused.value.status, refused.value.code) == (429, "over_budget")
    assert refused.value.retry_after == 2
    budgets.spend("b", 10, 1)
    now[0] = 2.1
    budgets.spend("a", 10, 1)
    total, end = 0, 100.0
    while now[0] < end:
        now[0] += 0.05
        try:
            budgets.spend("a", 10, 4)
            total += 4
        except RefusedError:
            pass
    assert total == pytest.approx(10 * (end - 2.1), abs=15)


def test_a_client_that_has_spent_its_budget_is_refused(tmp_path, client):
    (rich, first), (poor, second) = new_client_key("rich"), new_client_key("poor", 0.5)
    path = tmp_path / "clients"
    path.write_text(f"{first}\n{second}\n")
    body = client.query([1, 2]).keys[0]
    with running(app_with(Access(ClientKeys(path), anonymous=True, budget=1000))) as url:
        assert post(url, body, **bearer(poor)).status_code == 200
        refused = post(url, body, **bearer(poor))
        assert refused.status_code == 429
        assert error_of(refused)["code"] == "over_budget"
        assert int(refused.headers["retry-after"]) >= 2
        assert post(url, body, **bearer(rich)).status_code == 200
        assert post(url, body).status_code == 200


@pytest.mark.parametrize("budget", [0, -1, float("nan")])
def test_an_invalid_budget(budget):
    with pytest.raises(ArgumentError, match="budget"):
        Access(budget=budget)


def test_each_server_gets_its_own_key(tmp_path):
    made = [new_client_key(f"client-{party}") for party in range(2)]
    paths = [tmp_path / f"clients-{party}" for party in range(2)]
    for path, (_, line) in zip(paths, made, strict=True):
        path.write_text(line)
    apps = [app_with(Access(ClientKeys(path)), party) for party, path in enumerate(paths)]
    keys = [key for key, _ in made]
    with running(apps[0]) as first, running(apps[1]) as second:
        servers = [first, second]
        with RemoteTable(servers, "words", client_key=keys) as table:
            assert np.array_equal(table.lookup([17]), VALUES[[17]])
        with (
            RemoteTable(servers, "words", client_key=keys[::-1], retries=0) as table,
            pytest.raises(ServerRefusedError, match="not_a_client"),
        ):
            table.lookup([17])
        for wrong in ("two words", "", ["one"], ["a", "b", "c"]):
            with pytest.raises(ArgumentError, match="client_key"):
                RemoteTable(servers, "words", client_key=wrong)


def test_no_log_links_a_client_to_a_row(keys_file, caplog):
    """Everything is logged, and nothing of a key, its hash, a client's name, or a query."""
    caplog.set_level(logging.DEBUG)
    path, key = keys_file
    rows = [31337, 27182]
    table = nescio.Table(np.arange(40000, dtype="u4").reshape(-1, 1))
    server = nescio.Server(table, party=0, threads=1)
    client = nescio.Client(table.params, table.tops)
    bodies = [client.query([row]).keys[0] for row in rows]
    app = create_app(
        {"words": server}, party=0, quotas=QUOTAS, access=Access(ClientKeys(path)), metrics=True
    )
    with running(app) as url:
        for body in bodies:
            assert post(url, body, **bearer(key)).status_code == 200
            assert post(url, body, **bearer(key + "x")).status_code == 401
            assert post(url, body[:-1], **bearer(key)).status_code == 400
        text = httpx.get(f"{url}/metrics").text
    text += "\n".join(f"{r.getMessage()} {r.args} {vars(r)}" for r in caplog.records)
    assert len(text) > 1000
    secrets = [key, hashlib.sha256(key.encode()).hexdigest(), "alice", *map(str, rows)]
    for body in bodies:
        for first in range(0, len(body) - 24, 24):  # the header's id and party are public
            part = body[32 + first : 32 + first + 12]
            secrets += [part.hex(), base64.b64encode(part).decode()] if len(part) == 12 else []
    assert [secret for secret in secrets if secret in text] == []


def test_operators_actions_are_in_the_log(caplog):
    caplog.set_level(logging.INFO, "nescio.audit")
    apps = [app_with(None, party, TOKENS[party]) for party in range(2)]
    rows = np.full((2, 3), 123456.0, "f4")
    with running(apps[0]) as first, running(apps[1]) as second:
        with TableAdmin([first, second], "words", TOKENS) as admin:
            admin.update([3, 4], rows, version="two")
        for name in ("words", "words", "other"):  # anyone could fill the log
            url = f"{first}/v1/tables/{name}/rows"
            httpx.post(url, content=b"NC", **bearer("a wrong token!!!!"))
        httpx.post(f"{first}/v1/tables/words/rows", content=b"NC", **bearer(TOKENS[0]))
    found = [
        {name: vars(r).get(name) for name in ("action", "table", "version", "rows", "result")}
        for r in caplog.records
        if r.name == "nescio.audit"
    ]
    done = {"table": "words", "version": "two", "rows": 2, "result": "done"}
    assert found.count({"action": "change", **done}) == 2
    assert found.count({"action": "check", **done}) == 2
    unknown = {"action": "change", "table": "words", "version": None, "rows": None}
    assert not [line for line in found if line["result"] == "not_admitted"]
    assert {**unknown, "result": "malformed_message"} in found
    lines = str([vars(record) for record in caplog.records])
    assert "without the operator's token" in lines
    assert "'address': '127.0.0.1'" in lines
    assert "a wrong token" not in lines
    assert not any(token in lines for token in TOKENS)
    assert rows.tobytes().hex()[:24] not in lines
