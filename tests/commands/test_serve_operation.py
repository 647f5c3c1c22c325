"""`nescio serve` as an operator runs it: logs, metrics, the other party, the end."""

import contextlib
import json
import logging
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime

import httpx
import numpy as np
import pytest

import nescio as nescio_package
from commands.conftest import nescio_here, serving
from nescio.service import TableAdmin
from nescio.service._observe._logs import JsonFormatter, TextFormatter


def record(**extra):
    return logging.getLogger("nescio.test").makeRecord(
        "nescio.test", logging.WARNING, "", 0, "found %d", (3,), None, extra=extra
    )


def test_a_line_of_json_has_the_time_and_the_fields():
    entry = json.loads(JsonFormatter().format(record(table="words", rows=2)))
    assert datetime.fromisoformat(entry.pop("time")).tzinfo is not None
    assert entry == {
        "level": "warning",
        "logger": "nescio.test",
        "message": "found 3",
        "fields": {"table": "words", "rows": 2},
    }


def test_a_line_of_text_has_the_time_and_the_fields():
    line = TextFormatter().format(record(table="words"))
    time_form = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(rf"{time_form} WARNING nescio.test: found 3 table=words", line)


@pytest.mark.parametrize("form", [JsonFormatter(), TextFormatter()])
def test_an_exception_is_in_the_log(form):
    try:
        raise RuntimeError("broken\nin two lines")
    except RuntimeError:
        one = record()
        one.exc_info = sys.exc_info()
    text = form.format(one)
    assert "RuntimeError" in text
    if isinstance(form, JsonFormatter):
        assert len(text.splitlines()) == 1


@contextlib.contextmanager
def logging_json(*arguments):
    """Runs `nescio serve --log json`; gives its process, its URL and the first entries."""
    command = [sys.executable, "-m", "nescio", "serve", *map(str, arguments), "--log", "json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.PIPE
    )
    entries = []
    try:
        for line in process.stderr:
            entries.append(json.loads(line))
            if " on http" in entries[-1]["message"]:
                break
        else:
            raise AssertionError(entries)
        yield process, entries[-1]["message"].split()[-1], entries
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def test_every_line_of_a_json_log_is_an_object(table_file):
    options = ["--party", 0, "--port", 0, "--peer", "http://127.0.0.1:9"]
    with logging_json(table_file, *options) as (process, url, entries):
        assert entries[0]["message"].startswith("table words: 100 rows of 3 float32")
        assert {entry["level"] for entry in entries} == {"info"}
        warning = json.loads(process.stderr.readline())
        assert warning["level"] == "warning"
        assert warning["logger"] == "nescio.service._observe._peer"
        assert "http://127.0.0.1:9" in warning["message"]
        lookup = httpx.post(f"{url}/v1/tables/words/answer", content=b"no query")
        assert lookup.status_code == 400
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=20)
    assert output == ""
    assert all(json.loads(line) for line in errors.splitlines())


def test_metrics_and_the_machines_figure(table_file):
    with serving(table_file, "--party", 0, "--port", 0, "--metrics") as (_, url, _):
        found = httpx.get(f"{url}/metrics").text
    assert re.search(r"^nescio_machine_read_bytes_per_second [0-9.e+]+$", found, re.MULTILINE)
    version = nescio_package.__version__
    assert 'nescio_service_info{party="0",tier="' in found
    assert f'version="{version}"' in found


def test_the_other_party_is_asked(table_file):
    with serving(table_file, "--party", 1, "--port", 0) as (_, other, _):
        options = ["--party", 0, "--port", 0, "--peer", other]
        with serving(table_file, *options) as (_, url, _):
            for _ in range(1000):
                check = httpx.get(f"{url}/readyz").json()["checks"]["peer"]
                if "asked" in check["detail"]:
                    break
                time.sleep(0.05)
            assert check["ok"]
            assert check["detail"].startswith("asked ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--peer", "b.example"], "--peer: found 'b.example', expected the other party's URL"),
        (["--peer", "http://b:99999"], "--peer: found 'http://b:99999', expected"),
        (["--version", ""], "version: found '', expected a text"),
        (["--peer-ca-cert", "x.pem"], "--peer-ca-cert: found no --peer"),
        (["--peer", "https://b", "--peer-ca-cert", "x.pem"], "x.pem"),
        (["--drain-seconds", "-1"], "--drain-seconds: found -1.0, expected 0 to 86400"),
        (["--drain-seconds", "nan"], "--drain-seconds: found nan, expected 0 to 86400"),
    ],
)
def test_options_that_are_refused_before_the_table_is_read(tmp_path, options, message):
    path = tmp_path / "words.npy"
    path.write_text("read too early")
    found = nescio_here("serve", path, "--party", 0, *options)
    assert found.returncode == 1
    assert message in found.stderr


def test_a_request_that_has_begun_is_answered_after_sigterm(table_file):
    """A body that arrives slowly is read, and its answer sent, within the time to drain."""
    with serving(table_file, "--party", 0, "--port", 0, "--drain-seconds", 10) as (process, url, _):
        table = nescio_package.Table(np.load(table_file))
        query = nescio_package.Client(table.params, table.tops).query([17]).keys[0]
        address = (httpx.URL(url).host, httpx.URL(url).port)
        with socket.create_connection(address, 10) as slow:
            head = "POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: "
            slow.sendall(f"{head}{len(query)}\r\n\r\n".encode() + query[:10])
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"{url}/healthz")
            assert process.poll() is None
            slow.sendall(query[10:])
            assert slow.recv(100).startswith(b"HTTP/1.1 200 ")
        assert process.wait(10) == -signal.SIGTERM


def test_a_request_that_does_not_end_is_cut_off_after_the_time_to_drain(table_file):
    with serving(table_file, "--party", 0, "--port", 0, "--drain-seconds", 1) as (process, url, _):
        address = (httpx.URL(url).host, httpx.URL(url).port)
        with socket.create_connection(address, 10) as slow:
            slow.sendall(b"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\n")
            slow.sendall(b"Content-Length: 100\r\n\r\n")
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            process.wait(8)


def test_a_journal_is_in_the_metrics_and_the_checks(table_file, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    options = ["--port", 0, "--metrics", "--admin-token-file", token, "--data"]
    with (
        serving(table_file, "--party", 0, *options, tmp_path / "a") as (_, a, _),
        serving(table_file, "--party", 1, *options, tmp_path / "b") as (_, b, _),
    ):
        with TableAdmin([a, b], "words", [token.read_text()] * 2) as admin:
            admin.update([17], np.ones((1, 3), "f4"))
        found = httpx.get(f"{a}/metrics").text
        ready = httpx.get(f"{a}/readyz")
    assert 'nescio_journal_records_total{table="words"} 1.0' in found
    assert 'nescio_journal_fsync_seconds_count{table="words"} 1.0' in found
    assert ready.status_code == 200
    assert ready.json()["checks"]["journal of words"] == {"ok": True}
