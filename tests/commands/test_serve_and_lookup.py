"""`nescio serve` and `nescio lookup`, against each other."""

import json
import signal
import socket
import subprocess
import sys

import httpx
import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio, serving


@pytest.fixture
def pair(table_file):
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
        untrusted = nescio(*lookup, "--retries", 0)
        assert_one_sentence(untrusted)
        assert "certificate" in untrusted.stderr


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


def test_a_lookup_that_trusts_no_certificates(pair, tmp_path):
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    found = nescio("lookup", "--servers", *pair, "--table", "w", 1, "--ca-cert", empty)
    assert_one_sentence(found)


def test_the_service_says_what_it_serves_and_where(table_file):
    with serving(table_file, "--name", "embeddings", "--party", 1, "--port", 0) as (_, url, lines):
        assert lines[0].startswith("table embeddings: 100 rows of 3 float32")
        assert lines[1] == f"party 1 serves embeddings on {url}"
        assert httpx.get(f"{url}/healthz").status_code == 200


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file"),
        (b"", "is not a NumPy array file"),
        (b"1,2,3\n", "is not a NumPy array file"),
        (b"\x93NUMPY\x01\x00\x06\x00{'a':\n", "is not a NumPy array file"),
    ],
)
def test_a_table_file_that_is_none(tmp_path, content, message):
    path = tmp_path / "words.npy"
    if content is not None:
        path.write_bytes(content)
    found = nescio("serve", path, "--party", 0, "--port", 0)
    assert_one_sentence(found)
    assert message in found.stderr


def test_half_a_table_file(table_file):
    table_file.write_bytes(table_file.read_bytes()[:600])
    found = nescio("serve", table_file, "--party", 0, "--port", 0)
    assert_one_sentence(found)


def test_a_file_of_objects_or_of_several_arrays(tmp_path):
    objects, several = tmp_path / "objects.npy", tmp_path / "several.npz"
    np.save(objects, np.array([{}, 1], dtype=object), allow_pickle=True)
    np.savez(several, a=np.zeros(3), b=np.zeros(3))
    for path in (objects, several):
        assert_one_sentence(nescio("serve", path, "--party", 0, "--port", 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "expected 0 to 65535"),
        (["--tls-cert", "nowhere.pem"], "both a certificate and its key"),
        (["--tls-cert", "a.pem", "--tls-key", "b.pem"], "there is no file a.pem"),
        (["--name", "a", "--name", "b"], "found 2 names for 1 tables"),
        (["--threads", "-1"], "threads: found -1"),
        (["--max-keys", "0"], "max_keys: found 0"),
        (["--host", "no.such.host.invalid"], "cannot listen on"),
    ],
)
def test_options_that_make_no_sense(table_file, options, message):
    found = nescio("serve", table_file, "--party", 0, "--port", 0, *options)
    assert_one_sentence(found)
    assert message in found.stderr


def test_files_that_are_no_certificate(table_file, tmp_path):
    bad = tmp_path / "bad.pem"
    bad.write_text("not a certificate")
    tls = ["--tls-cert", bad, "--tls-key", bad]
    assert_one_sentence(nescio("serve", table_file, "--party", 0, "--port", 0, *tls))


@pytest.mark.parametrize("arguments", [[], ["serve"], ["serve", "x.npy"], ["no-such-command"]])
def test_a_command_line_that_is_none(arguments):
    found = nescio(*arguments)
    assert found.returncode == 2
    assert found.stderr.startswith("usage: nescio")


def test_output_that_nobody_reads(pair):
    rows = [str(i % 100) for i in range(500)]
    lookup = [sys.executable, "-m", "nescio", "lookup", "--servers", *pair, "--table", "words"]
    piped = ["bash", "-c", '"$@" | true', "-", *lookup, *rows]
    found = subprocess.run(piped, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in found.stderr
