"""Tests `nescio serve` and `nescio lookup` together."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here, serving, write_words
from nescio.commands import serve
from nescio.service import TableAdmin


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The URLs of two services, for tests that only look up."""
    table_file = write_words(tmp_path_factory.mktemp("pair"))
    with (
        serving(table_file, "--party", 0, "--port", 0) as (_, first, _),
        serving(table_file, "--party", 1, "--port", 0) as (_, second, _),
    ):
        yield first, second


def test_a_lookup(pair):
    found = nescio("lookup", "--servers", *pair, "--table", "words", 17, 42)
    assert found.stdout == "17 51.0 52.0 53.0\n42 126.0 127.0 128.0\n"
    assert found.returncode == 0
    found = nescio("lookup", "--servers", *pair, "--table", "words", 17, "--json")
    assert json.loads(found.stdout) == [[51.0, 52.0, 53.0]]


def test_a_lookup_over_tls(table_file, certificate):
    cert, key = certificate
    tls = ["--port", 0, "--tls-cert", cert, "--tls-key", key]
    with (
        serving(table_file, "--party", 0, *tls) as (_, first, _),
        serving(table_file, "--party", 1, *tls) as (_, second, _),
    ):
        assert first.startswith("https://")
        lookup = ["lookup", "--servers", first, second, "--table", "words", 17]
        assert nescio(*lookup, "--ca-cert", cert).stdout == "17 51.0 52.0 53.0\n"
        untrusted = nescio(*lookup)
        assert_one_sentence(untrusted)
        assert "its certificate is not trusted: self" in untrusted.stderr
        assert "(--ca-cert, or `tls`, names another authority)" in untrusted.stderr
        assert "running" not in untrusted.stderr
        plain = [url.replace("https", "http") for url in (first, second)]
        wrong = nescio("lookup", "--servers", *plain, "--table", "words", 17, "--retries", 0)
        assert_one_sentence(wrong)
        assert "did not reply with HTTP" in wrong.stderr


def test_a_lookup_over_tls_from_servers_without_it(pair):
    secure = [url.replace("http", "https") for url in pair]
    found = nescio("lookup", "--servers", *secure, "--table", "words", 17)
    assert_one_sentence(found)
    assert "found a server without TLS, expected TLS" in found.stderr


def test_a_lookup_of_a_row_that_does_not_exist(pair):
    found = nescio("lookup", "--servers", *pair, "--table", "words", 100)
    assert_one_sentence(found)
    assert "found 100, expected 0 to 99" in found.stderr


def test_a_lookup_in_a_table_that_does_not_exist(pair):
    found = nescio("lookup", "--servers", *pair, "--table", "wrods", 1)
    assert_one_sentence(found)
    assert "there is no table 'wrods' here; there are: words" in found.stderr


def test_a_lookup_on_a_wrong_port(pair):
    wrong = "http://127.0.0.1:9"
    found = nescio("lookup", "--servers", pair[0], wrong, "--table", "words", 1, "--retries", 0)
    assert_one_sentence(found)
    assert wrong in found.stderr
    assert "is the server running?" in found.stderr


def test_an_insecure_generator_is_named_as_such_by_both_sides(table_file):
    found = nescio("serve", table_file, "--party", 0, "--generator", "siphash")
    assert found.returncode == 2
    assert "or name it 'insecure_siphash'" in found.stderr
    unknown = nescio_here("serve", table_file, "--party", 0, "--generator", "rot13")
    assert "argument --generator: found 'rot13', expected one of aes128" in unknown.stderr
    options = ["--port", 0, "--generator", "insecure_siphash", "--party"]
    with (
        serving(table_file, *options, 0) as (_, a, _),
        serving(table_file, *options, 1) as (_, b, _),
    ):
        lookup = ["lookup", "--servers", a, b, "--table", "words", 17]
        refused = nescio(*lookup)
        assert_one_sentence(refused)
        assert "--insecure-generator" in refused.stderr
        assert nescio(*lookup, "--insecure-generator").stdout == "17 51.0 52.0 53.0\n"


def test_a_lookup_that_trusts_no_certificates(pair, tmp_path):
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    found = nescio("lookup", "--servers", *pair, "--table", "w", 1, "--ca-cert", empty)
    assert_one_sentence(found)


def test_the_service_says_what_it_serves_and_where(table_file):
    with serving(table_file, "--name", "embeddings", "--party", 1, "--port", 0) as (_, url, lines):
        assert lines[0].startswith("table embeddings: 100 rows of 3 float32")
        assert lines[2] == f"party 1 serves embeddings on {url}"
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_service_on_devices(table_file, tmp_path):
    rows = tmp_path / "many.npy"
    np.save(rows, np.arange(60_000, dtype="f4").reshape(20_000, 3))
    options = ["--name", "words", "--port", 0, "--party"]
    with (
        serving(rows, *options, 0, "--device", "emulated") as (_, a, lines),
        serving(rows, *options, 1, "--device", "emulated:0+emulated:1") as (_, b, _),
    ):
        assert lines[0] == "answers are made on emulated (emulated:0)"
        found = nescio("lookup", "--servers", a, b, "--table", "words", 999)
        assert found.stdout == "999 2997.0 2998.0 2999.0\n"


def test_invalid_devices_are_reported_before_the_table_is_read(tmp_path):
    no_table = tmp_path / "words.npy"
    no_table.write_text("read too early")
    options = ["serve", no_table, "--party", 0, "--cache", "--device"]
    found = nescio_here(*options, "gpu")
    assert found.returncode == 2
    assert "argument --device: found 'gpu', expected a GPU: 'cuda', 'cuda:1' and" in found.stderr
    absent = nescio_here(*options, "emulated:7")
    assert_one_sentence(absent)
    assert "emulated:7 does not exist: found 4" in absent.stderr


def test_several_tables_in_one_service(table_file, tmp_path):
    other = tmp_path / "other.npy"
    np.save(other, np.zeros((5, 2), "i2"))
    with serving(table_file, other, "--party", 0, "--port", 0) as (_, url, _):
        names = [t["name"] for t in httpx.get(f"{url}/v1/tables").json()["tables"]]
        assert names == ["words", "other"]


def test_options_reach_the_parameters_and_the_limits(table_file):
    options = ["--version", "v7", "--output", "u32", "--generator", "aes128", "--max-keys", 9]
    with serving(table_file, "--party", 0, "--port", 0, *options) as (_, url, _):
        table = httpx.get(f"{url}/v1/tables/words").json()
    assert table["limits"] == {"max_keys": 9, "max_body_bytes": 4 << 20}
    params = table["params"]
    assert (params["version"], params["output"], params["generator"]) == ("v7", "u32", "aes128")


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_service_cleanly(table_file, signal_number):
    with serving(table_file, "--party", 0, "--port", 0) as (process, _, _):
        process.send_signal(signal_number)
        _, errors = process.communicate(timeout=20)
        assert "Traceback" not in errors


def test_the_service_ends_with_its_input_if_asked_to(table_file):
    options = ["--party", 0, "--port", 0, "--exit-with-stdin"]
    with serving(table_file, *options) as (process, _, _):
        process.stdin.close()
        process.stdin = None
        assert process.wait(20) == 0


def test_a_taken_port(table_file):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = nescio("serve", table_file, "--party", 0, "--port", port)
    assert_one_sentence(found)
    assert f"cannot listen on http://127.0.0.1:{port}: Address already in use" in found.stderr


def test_output_that_nobody_reads(pair):
    rows = [str(i % 100) for i in range(500)]
    lookup = [sys.executable, "-m", "nescio", "lookup", "--servers", *pair, "--table", "words"]
    piped = ["bash", "-c", '"$@" | true', "-", *lookup, *rows]
    found = subprocess.run(piped, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"], ["ot", "estimate"]])
def test_short_outputs_that_nobody_reads(arguments, unbuffered):
    piped = ["bash", "-c", '"$@" | true', "-", sys.executable, "-m", "nescio", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    found = subprocess.run(piped, capture_output=True, text=True, timeout=60, env=environment)
    assert found.stderr == ""


def test_a_service_goes_on_without_a_reader_of_its_output(table_file):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "nescio", "serve", table_file, "--party", "0"]
    command += ["--port", str(port), "--exit-with-stdin"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()  # as `| head` does
    deadline = time.monotonic() + 30
    while True:
        try:
            assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).json()
            break
        except httpx.TransportError:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.1)
    process.stdout = None
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, b"")


def test_a_system_with_few_descriptors(table_file):
    command = ["bash", "-c", 'ulimit -n 300; exec "$@"', "-", sys.executable, "-m", "nescio"]
    command += ["serve", table_file, "--party", "0", "--port", "0", "--exit-with-stdin"]
    found = subprocess.run(command, input="", capture_output=True, text=True, timeout=60)
    assert "allows 300 open files: at most 44 connections instead of 1024" in found.stderr
    assert found.returncode == 0


def test_printed_text_has_no_control_characters(tmp_path):
    np.save(tmp_path / "words.npy", np.array(["sea\x1b[31m", "\u00fcber"]))
    options = [tmp_path / "words.npy", "--port", 0, "--party"]
    with serving(*options, 0) as (_, first, _), serving(*options, 1) as (_, second, _):
        found = nescio("lookup", "--servers", first, second, "--table", "words", 0, 1)
    assert found.stdout == '0 "sea\\u001b[31m"\n1 "\\u00fcber"\n'


def test_changes_with_a_token_from_a_file_or_the_environment(table_file, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("a token of the operator's\n")
    options = [table_file, "--port", 0, "--party"]
    with contextlib.ExitStack() as stack:
        from_file = ["--admin-token-file", tmp_path / "token"]
        _, first, _ = stack.enter_context(serving(*options, 0, *from_file))
        monkeypatch.setenv("NESCIO_ADMIN_TOKEN", "a token of the operator's")
        _, second, _ = stack.enter_context(serving(*options, 1))
        tokens = ["a token of the operator's"] * 2
        with TableAdmin((first, second), "words", tokens) as admin:
            admin.update([17], np.array([[1, 2, 3]], "f4"))
        found = nescio("lookup", "--servers", first, second, "--table", "words", 17)
        assert found.stdout == "17 1.0 2.0 3.0\n"


def test_an_unknown_tier(table_file):
    environment = {**os.environ, "NESCIO_CPU": "bogus"}
    found = nescio("serve", table_file, "--party", 0, "--port", 0, env=environment)
    assert_one_sentence(found)
    assert "bogus" in found.stderr


@pytest.mark.parametrize("timeout", ["nan", "0", "1e12"])
def test_a_lookup_without_an_end(pair, timeout):
    found = nescio("lookup", "--servers", *pair, "--table", "words", 1, "--timeout", timeout)
    assert_one_sentence(found)
    assert "timeout: found" in found.stderr


@pytest.mark.parametrize("option", [["--admin-token=SECRET"], ["--admin-token", "SECRET"]])
def test_a_token_on_the_command_line_is_refused_and_not_printed(table_file, option):
    found = nescio("serve", table_file, "--party", 0, "--port", 0, *option)
    assert found.returncode == 1
    assert "--admin-token-file" in found.stderr
    assert "SECRET" not in found.stderr + found.stdout


def test_a_token_file_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "token"
    path.write_text("0123456789abcdef\n", encoding="utf-8-sig")
    assert serve._token(path) == "0123456789abcdef"
