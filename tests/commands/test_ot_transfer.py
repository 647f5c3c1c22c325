"""`nescio ot send`, `nescio ot receive` and `nescio bench ot`, as a user runs them."""

import contextlib
import json
import stat
import subprocess
import sys

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here

FIELDS = {
    *("family", "parameters", "bits", "n", "threads", "device", "sender_ms", "receiver_ms"),
    *("ots_per_second", "sender_bytes", "receiver_bytes", "rounds", "verified"),
    *("base_ms", "trees_ms", "check_ms", "lpn_ms", "hash_ms", "limit_ms"),
}


@contextlib.contextmanager
def sending(*arguments):
    """Runs `nescio ot send` on a free port during the block; yields its process and port."""
    command = [sys.executable, "-m", "nescio", "ot", "send", "--port", "0", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("waiting for a receiver on "), process.stderr.read()
        yield process, line.strip().rpartition(":")[2]
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize("options", [["--family", "dual"], ["--malicious", "--set", "b10"]])
def test_two_processes(options, tmp_path):
    options = ["--n", "2^14", "--timeout", 30, *options]
    mine, yours = tmp_path / "sender.npz", tmp_path / "receiver.npz"
    with sending(*options, "--out", mine) as (process, port):
        yours.write_bytes(b"an older file, which others can read")
        yours.chmod(0o644)
        found = nescio("ot", "receive", "--port", port, *options, "--out", yours)
        printed, errors = process.communicate(timeout=30)
    assert {stat.S_IMODE(file.stat().st_mode) for file in (mine, yours)} == {0o600}
    assert found.returncode == process.returncode == 0, found.stderr + errors
    for text in (found.stdout, printed):
        assert "16,384 correlated OTs" in text
        assert "million per second" in text
    sent, received = np.load(mine), np.load(yours)
    choices = received["choices"].astype(np.uint64)
    assert np.array_equal(received["t"], sent["r"] ^ choices[:, None] * sent["delta"])


def test_json_and_tls(tmp_path, certificate):
    cert, key = certificate
    options = ["--n", 1000, "--family", "dual"]
    with sending(*options, "--tls-cert", cert, "--tls-key", key) as (_, port):
        found = nescio("ot", "receive", "--port", port, *options, "--tls-ca", cert, "--json")
    facts = json.loads(found.stdout)
    assert (facts["n"], facts["family"], facts["parameters"]) == (1000, "dual", "ec")
    assert facts["received_bytes"] > 20_000
    assert facts["rounds"] >= 1


def test_parties_that_want_different_things():
    with sending("--family", "dual") as (process, port):
        found = nescio("ot", "receive", "--port", port, "--family", "primal")
        assert_one_sentence(found)
        process.wait(30)
        for text in (found.stderr, process.stderr.read()):
            assert "have different parameters" in text
            assert '"family":"dual"' in text
            assert '"family":"primal"' in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["receive", "--port", "9", "--timeout", "0.3"], "127.0.0.1 port 9"),
        (["receive", "--set", "b9"], "'b9'"),
        (["receive", "--set", "cuot"], "insecure_cuot"),
        (["send", "--family", "dual", "--set", "b10"], "'b10'"),
        (["send", "--out", "no/such/folder/x.npz"], "its folder does not exist"),
        (["send", "--out", "."], "'.' cannot be written: Is a directory"),
        (["send", "--rtt", "soon"], "rtt"),
        (["send", "--threads", "-1"], "threads"),
        (["send", "--n", "0"], "n: found 0"),
    ],
)
def test_what_cannot_be(arguments, words):
    found = nescio_here("ot", *arguments)
    assert_one_sentence(found)
    assert words in found.stderr


def test_a_number_that_is_none():
    found = nescio_here("ot", "send", "--n", "many")
    assert found.returncode == 2
    assert "expected a number such as 1048576 or 2^20" in found.stderr


def test_the_bench(tmp_path):
    file = tmp_path / "cases.json"
    found = nescio(
        *("bench", "ot", "--n", "2^14", "--family", "primal,dual", "--set", "b10,ec"),
        *("--output", "cot,rot", "--malicious", "both", "--repeat", 1, "--json", file),
    )
    assert found.returncode == 0, found.stderr
    cases = json.loads(file.read_text())
    kinds = {(c["parameters"], c["output"], c["malicious"]) for c in cases}
    assert len(kinds) == len(cases) == 2 * 2 * 2
    for case in cases:
        assert set(case) >= FIELDS
        assert case["verified"] is True
        assert case["bits"] >= 128
        slower = max(case["sender_ms"], case["receiver_ms"])
        assert case["ots_per_second"] == pytest.approx(case["n"] / slower * 1e3, rel=0.3)
        assert (case["hash_ms"] > 0) == (case["output"] == "rot")
        assert case["limit_ms"] > 0
        for party in ("sender", "receiver"):
            took = case[f"{party}_steps_ms"]
            assert (took["trees"] > 0) == (
                case["family"] == "dual"
            )  # primal: left over from the first call
        by_kind = case["cold_sender_bytes_by_kind"], case["cold_receiver_bytes_by_kind"]
        assert sum(sum(kinds.values()) for kinds in by_kind) == case["cold_bytes"]
    assert len(found.stdout.splitlines()) == 1 + len(cases) + 3


def test_the_bench_on_a_slow_link(tmp_path):
    file = tmp_path / "cases.json"
    found = nescio(
        *("bench", "ot", "--n", "2^14", "--family", "dual", "--link", "local,10mbit/200ms"),
        *("--repeat", 1, "--json", file),
    )
    assert found.returncode == 0, found.stderr
    near, far = json.loads(file.read_text())
    assert near["cold_bytes"] == far["cold_bytes"]
    # 100 ms of delay and 10 bits per microsecond; a receiver may start its clock late, under load.
    assert far["receiver_ms"] > 50 + far["sender_bytes"] * 8e-4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--n", 0], "n: found 0"),
        (["--link", "dialup"], "link: found 'dialup'"),
        (["--set", "silver", "--family", "primal"], "silver"),
        (["--repeat", 0], "repeat: found 0"),
        (["--json", "no/such/folder/x"], "cannot be written"),
    ],
)
def test_what_cannot_be_measured(arguments, words):
    found = nescio_here("bench", "ot", *arguments)
    assert_one_sentence(found)
    assert words in found.stderr
