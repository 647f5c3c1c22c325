"""`nescio serve --admin-port` and `--cors`."""

import signal
import ssl

import httpx
import pytest

from commands.conftest import assert_one_sentence, nescio_here, serving

PARTY = ["--party", 0, "--port", 0]


@pytest.mark.parametrize("tls", [False, True])
def test_the_operators_port(tmp_path, table_file, certificate, tls):
    token = tmp_path / "token"
    token.write_text("the token of party 0")
    options = ["--admin-port", 0, "--admin-token-file", token]
    if tls:
        options += ["--tls-cert", certificate[0], "--tls-key", certificate[1]]
    verify = ssl.create_default_context(cafile=certificate[0])
    with serving(table_file, *PARTY, *options) as (process, url, lines):
        (admin,) = (line.split()[-1] for line in lines if line.startswith("operators use "))
        assert admin.startswith("https://" if tls else "http://")
        with httpx.Client(verify=verify) as client:
            own = {"Authorization": "Bearer the token of party 0"}
            changed = client.post(f"{admin}/v1/tables/words/rows", content=b"NC", headers=own)
            assert changed.status_code == 400
            refused = client.post(f"{url}/v1/tables/words/rows", content=b"NC", headers=own)
            assert refused.status_code == 404
            assert "operators use the port of --admin-port" in refused.text
            assert client.get(f"{admin}/metrics").status_code == 200
            process.send_signal(signal.SIGTERM)  # ends both ports
        _, errors = process.communicate(timeout=20)
        assert process.returncode == -signal.SIGTERM  # after an orderly end
        assert "Traceback" not in errors


OPERATORS = ["", "/", "/check", "/vacant", "/vacant?count=1", "/any/other"]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]


def test_the_public_port_has_no_routes_of_operators_in_any_method(tmp_path, table_file):
    token = tmp_path / "token"
    token.write_text("the token of party 0")
    options = [*PARTY, "--admin-port", 0, "--admin-token-file", token]
    paths = [f"/v1/tables/{name}/rows{end}" for name in ("words", "none") for end in OPERATORS]
    with serving(table_file, *options) as (_, url, _), httpx.Client() as client:
        for method in METHODS:
            for path in [*paths, "/metrics"]:
                for headers in ({}, {"Authorization": "Bearer the token of party 0"}):
                    found = client.request(method, f"{url}{path}", headers=headers)
                    assert (method, path, found.status_code) == (method, path, 404)


def test_a_port_in_use(table_file):
    with serving(table_file, *PARTY) as (_, url, _):
        found = nescio_here("serve", table_file, *PARTY, "--admin-port", url.split(":")[-1])
    assert_one_sentence(found)
    assert "cannot listen on" in found.stderr


def test_an_origin_without_a_scheme(table_file):
    found = nescio_here("serve", table_file, *PARTY, "--cors", "example.org")
    assert_one_sentence(found)
    assert "--cors: found 'example.org'" in found.stderr


def test_the_machine_is_measured_for_the_metrics_of_the_admin_port(table_file):
    options = ["--party", 0, "--port", 0, "--admin-port", 0]
    with serving(table_file, *options) as (_, url, lines):
        admin = next(word for line in lines[:-1] for word in line.split() if "http" in word)
        assert "nescio_machine_read_bytes_per_second " in httpx.get(f"{admin}/metrics").text
        assert httpx.get(f"{url}/metrics").status_code == 404
        assert httpx.get(f"{admin}/readyz").status_code == 200
