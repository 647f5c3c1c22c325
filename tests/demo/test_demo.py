"""Tests `nescio demo` as a command."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here

WORDS = ["the", "river", "runs", "to", "sea", "ocean", "water", "doctor"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """The folder for temporary files of this test's demonstrations: others may run meanwhile."""
    folder = tmp_path / "demo"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def own_table(tmp_path, rng):
    """A small table and its words."""
    vectors = rng.standard_normal((len(WORDS), 4)).astype("f4")
    np.save(tmp_path / "table.npy", vectors)
    (tmp_path / "words.txt").write_text("\n".join(WORDS))
    return ["--table", tmp_path / "table.npy", "--words", tmp_path / "words.txt"]


def test_the_main_job_on_the_real_table():
    found = nescio("demo", "--json", "The river runs to the sea, xyzzyx!")
    assert found.returncode == 0, found.stderr
    result = json.loads(found.stdout)
    assert result["verified"] is True
    assert result["words"] == ["the", "river", "runs", "to", "the", "sea"]
    assert result["unknown_words"] == ["xyzzyx"]
    assert (result["rows"], result["row_bytes"], result["bytes_table"]) == (
        400_000,
        200,
        80_000_000,
    )
    assert {topic for topic, _ in result["topics"]} & {"river", "ocean", "water", "mountains"}
    assert result["bytes_up"] + result["bytes_down"] < 40_000
    assert {"key_generation", "server_0", "server_1", "network", "decoding", "total"} == set(
        result["milliseconds"]
    )
    assert all(value >= 0 for value in result["milliseconds"].values())


def test_the_keys_that_the_servers_see_all_differ(own_table):
    found = nescio("demo", "--json", "the the the", *own_table)
    result = json.loads(found.stdout)
    assert result["lookups"] == 8  # three words, padded to eight
    keys = result["keys"][0] + result["keys"][1]
    assert len(set(keys)) == len(keys) == 16
    assert len({key[32:64] for key in keys}) == 16  # all seeds differ


def test_for_people(own_table):
    found = nescio("demo", "the river runs", *own_table)
    assert found.returncode == 0, found.stderr
    for text in (
        "the river runs",
        "3 words of 8, padded to 8 lookups",
        "All that server 0 saw: 8 lookups",
        "All that server 1 saw: 8 lookups",
        "key generation",
        "Verified: every row was checked against the digest",
    ):
        assert text in found.stdout


def test_the_first_rows_only(own_table):
    result = json.loads(nescio("demo", "--json", "the river sea", *own_table, "--rows", 2).stdout)
    assert result["rows"] == 2
    assert (result["words"], result["unknown_words"]) == (["the", "river"], ["sea"])


def test_a_device_of_ones_choice(own_table):
    found = nescio("demo", "--json", "sea", *own_table, "--device", "emulated")
    assert json.loads(found.stdout)["verified"] is True
    absent = nescio("demo", "sea", *own_table, "--device", "emulated:7")
    assert_one_sentence(absent)
    assert "emulated:7 does not exist" in absent.stderr


def test_a_generator_of_ones_choice(own_table):
    result = json.loads(nescio("demo", "--json", "sea", *own_table, "--generator", "aes128").stdout)
    assert result["verified"] is True
    assert len(result["keys"][0][0]) // 2 == 96


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qwertz asdf"], "no word of 'qwertz asdf' is in the table"),
        (["sea", "--rows", "9"], "expected 1 to 8"),
        (["sea", "--rows", "0"], "expected 1 to 8"),
        (["sea", "--ports", "99999", "0"], "expected 0 to 65535"),
    ],
)
def test_invalid_arguments(own_table, arguments, message):
    found = nescio_here("demo", *arguments, *own_table)
    assert_one_sentence(found)
    assert message in found.stderr


def test_a_table_without_words_and_words_that_do_not_fit(own_table, tmp_path):
    assert_one_sentence(nescio_here("demo", "sea", *own_table[:2]))
    (tmp_path / "words.txt").write_text("one\ntwo\n")
    found = nescio_here("demo", "sea", *own_table)
    assert_one_sentence(found)
    assert "found 2 words, expected 8" in found.stderr


def test_a_taken_port(own_table, own_folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = nescio("demo", "sea", *own_table, "--ports", 0, port)
    assert_one_sentence(found)
    assert f"cannot listen on http://127.0.0.1:{port}" in found.stderr
    assert not children_of_demos(own_folder)


def children_of_demos(folder):
    """Lists server processes of demonstrations whose temporary files are in a folder."""
    listing = subprocess.run(
        ["ps", "-ww", "-eo", "pid,args"], capture_output=True, text=True
    ).stdout
    return [line for line in listing.splitlines() if f"{folder}/nescio-demo-" in line]


# A shell that starts the tests in the background makes them ignore SIGINT; the demo must not.
DEMO = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from nescio.cli import main
sys.exit(main(["demo", "sea"]))
"""


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interruption_leaves_no_process_behind(signal_number, own_folder):
    with subprocess.Popen(
        [sys.executable, "-c", DEMO],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            interrupt_and_look(process, signal_number, own_folder)
        finally:
            process.kill()


def interrupt_and_look(process, signal_number, folder):
    deadline = time.monotonic() + 60
    while len(children_of_demos(folder)) < 2 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if signal_number == signal.SIGINT:
        os.killpg(process.pid, signal_number)  # as a terminal does
    else:
        process.send_signal(signal_number)
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    while children_of_demos(folder):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    if signal_number == signal.SIGINT:
        assert process.returncode in (0, 130)


def test_more_words_than_one_query_carries(own_table):
    found = nescio("demo", "sea " * 1001, *own_table)
    assert_one_sentence(found)
    assert "found 1001 words, expected at most 1000" in found.stderr
