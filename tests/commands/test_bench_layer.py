"""`nescio bench infer`: one private layer, its checks, its floors, other programs."""

import importlib.util
import json
import socket
import sys
from pathlib import Path

import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here
from nescio.bench.infer import run
from nescio.bench.infer.baselines import relu_gates
from nescio.bench.infer.cheetah import received_bytes
from nescio.mpc._plans.costs import table_messages

FIELDS = [
    *("layer", "elements", "table_bits", "online_bytes", "offline_bytes"),
    *("online_seconds", "offline_seconds", "cpu_seconds", "rounds", "exact"),
]
HEADER = 16
SMALL = ("--elements", 300, "--shape", "3-2x8,20-7", "--repeat", 1)


def test_every_layer(tmp_path):
    """A table takes 93.75 bytes: vectors 61.75, offsets 3.5, daBits 27.5, the client's place 1."""
    path = tmp_path / "cases.json"
    options = ["--elements", 4096, "--shape", "3-2x8,20-7", "--repeat", 1, "--json", path]
    found = nescio("bench", "infer", *options)
    assert found.returncode == 0, found.stderr
    cases = json.loads(path.read_text())
    assert all(list(case)[:10] == FIELDS for case in cases)
    relu, conv, *_ = own = [case for case in cases if case["program"] == "nescio"]
    assert [(c["layer"], c["elements"], c["table_bits"], c["rounds"]) for c in own] == [
        ("relu", 4096, 8, 1),
        ("conv", 2 * 8 * 8, None, 1),
        ("linear", 7, None, 1),
    ]
    assert relu["online_bytes"] == relu["online_bytes_floor"] + 2 * HEADER == 4096 * 7 + 2 * HEADER
    assert relu["offline_bytes_floor"] == 4096 * 93.75
    assert relu["offline_bytes"] < 4096 * 105
    assert relu["exact"] is True
    assert conv["online_bytes"] == 2 * HEADER + 4 * (3 * 64 + 2 * 64)
    for case in own:
        assert 0 < case["offline_bytes_floor"] <= case["offline_bytes"]
        assert min(case[f"{name}_seconds"] for name in ("online", "offline", "cpu")) > 0
        assert min(case[f"{name}_seconds_floor"] for name in ("online", "offline", "cpu")) > 0
        assert case["exact"] == (case["off_by_one"] == 0)
    computed = [case for case in cases if not case["measured"]]
    assert [(c["program"], c["table_bits"], c["offline_bytes"] // 4096) for c in computed] == [
        ("half gates, computed", 8, 45 * 32),
        ("half gates, computed", 32, 93 * 32),
        ("Tabula, published", 8, 15176),
    ]
    assert sum("half gates, computed" in line for line in found.stdout.splitlines()) == 2


def test_messages_of_tables_by_transfers_and_by_trees():
    """23 OTs and 93.75 bytes for 8 bits; with trees the bytes grow by a block and party a bit."""
    assert table_messages(8, 8) == (8 + 8 + 7, 8 * 93.75)
    (fewer, small), (more, large) = (table_messages(bits, 8) for bits in (11, 12))
    assert (more - fewer, large - small) == (3, 2 * 128 + 1 + 11 + 1)


def test_gates_are_those_that_a_program_counts():
    """A circuit of emp-sh2pc for shares of 8 and 32 bits reports 21 and 93 AND gates."""
    assert (relu_gates(8, 8), relu_gates(32)) == (21, 93)


@pytest.mark.parametrize(
    ("layer", "party", "words"),
    [
        ("relu", 0, "relu: results differ from the simulator's"),
        ("conv", 1, "conv: products differ by more than 1"),
        ("linear", 1, "linear: products differ by more than 1"),
    ],
)
def test_a_wrong_result_is_an_error(layer, party, words, monkeypatch, tmp_path):
    """One number of one party is 3 too large, in the first run after the cold one."""
    received = []

    def spoilt(pipe):
        found = report(pipe)
        received.append(found)
        if len(received) != 3 + party:
            return found
        wrong = found.numbers.copy()
        wrong[-1] += 3
        return found._replace(numbers=wrong)

    report = run.report
    monkeypatch.setattr(run, "report", spoilt)
    path = tmp_path / "cases.json"
    found = nescio_here("bench", "infer", "--layer", layer, *SMALL, "--json", path)
    assert_one_sentence(found)
    assert words in found.stderr
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--elements", 0], "elements: found 0, expected 1 to 16777216"),
        (["--table-bits", "8,3"], "table-bits: found 3, expected 4 to 12"),
        (["--repeat", 0], "repeat: found 0"),
        (["--threads", -1], "threads: found -1"),
        (["--link", "fast"], "link: found 'fast'"),
        (["--shape", "16x16"], "shape: found '16x16', expected CHANNELS-OUTPUTSxSIZE"),
        (["--shape", "0-16x8,1-1"], "found a size below 1"),
        (["--shape", "64-10"], "shape: found 64-10, expected one for conv too"),
        (["--peer", "emp"], "peer: found 'emp', expected NAME=COMMAND"),
        (["--peer", "emp='"], 'peer: found "emp=\'", expected NAME=COMMAND'),
        (["--json", "/no/such/folder/x"], "/no/such/folder"),
    ],
)
def test_what_cannot_be_measured(arguments, words):
    found = nescio_here("bench", "infer", *arguments)
    assert_one_sentence(found)
    assert words in found.stderr


@pytest.mark.parametrize("arguments", [["--layer", "pool"], ["--elements", "many"]])
def test_command_lines_that_make_no_sense(arguments):
    assert nescio_here("bench", "infer", *arguments).returncode == 2


# ---- Other programs ------------------------------------------------------------------------------

RELUS = ("bench", "infer", "--layer", "relu", "--elements", 50, "--repeat", 1)
ROW = {
    **dict.fromkeys(FIELDS, 1),
    "layer": "relu",
    "offline_seconds": 0.5,
    "exact": True,
    "gates": 7,
}


def program(folder, text):
    """Writes a program that keeps its arguments and prints a text; returns the option."""
    path = folder / "peer.py"
    path.write_text(
        "import json, pathlib, sys\n"
        f"pathlib.Path({str(folder / 'arguments')!r}).write_text(json.dumps(sys.argv[1:]))\n{text}"
    )
    return f"other={sys.executable} {path}"


def test_a_peer_is_a_row(tmp_path):
    path = tmp_path / "cases.json"
    peer = program(tmp_path, f"print(json.dumps({ROW!r}))")
    found = nescio_here(*RELUS, "--table-bits", 9, "--peer", peer, "--json", path)
    assert found.returncode == 0, found.stderr
    assert json.loads((tmp_path / "arguments").read_text()) == ["50", "9"]
    case = json.loads(path.read_text())[-1]
    assert list(case)[:10] == FIELDS
    assert {key: case[key] for key in ROW} == ROW
    assert (case["program"], case["measured"]) == ("other", True)
    assert any(line.split()[:2] == ["other", "relu"] for line in found.stdout.splitlines())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("print('[1]')", "peer other: found '[1]\\n', expected one JSON object"),
        ("print('{')", "expected one JSON object"),
        ("print('{}')", "peer other: field layer: found None, expected str"),
        (
            f"print(json.dumps({ROW | {'rounds': True}!r}))",
            "field rounds: found True, expected int",
        ),
        (f"print(json.dumps({ROW | {'elements': 0}!r}))", "field elements: found 0"),
        ("sys.exit('no network')", "peer other: found exit code 1, expected 0: no network"),
    ],
)
def test_a_peer_that_fails(text, words, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "_measured", lambda task: ROW)
    found = nescio_here(*RELUS, "--peer", program(tmp_path, text))
    assert_one_sentence(found)
    assert words in found.stderr


def test_a_peer_that_is_missing(monkeypatch):
    monkeypatch.setattr(run, "_measured", lambda task: ROW)
    found = nescio_here(*RELUS, "--peer", "emp=/no/such/program --fast")
    assert_one_sentence(found)
    assert "peer emp: /no/such/program --fast 50 8 did not run" in found.stderr


def test_spu_is_left_out_where_it_is_not_installed(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *own: None if name == "spu" else find(name, *own)
    )
    monkeypatch.setattr(run, "_measured", lambda task: ROW)
    found = nescio_here(*RELUS, "--peers")
    assert found.returncode == 0, found.stderr
    assert "SPU is not installed, so it is left out" in found.stdout


def test_spu(tmp_path):
    pytest.importorskip("spu")
    path = tmp_path / "cases.json"
    found = nescio(*RELUS, "--peers", "--json", path)
    assert found.returncode == 0, found.stderr
    cases = json.loads(path.read_text())[-2:]
    assert [c["program"] for c in cases] == ["SPU Cheetah FM32", "SPU Cheetah FM64"]
    assert all(c["exact"] and c["online_bytes"] > 50 * 40 for c in cases)


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="the count is Linux'")
def test_the_bytes_of_sockets_are_counted():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as sender, server.accept()[0] as other:
            before, opened = received_bytes(), open_files()
            sender.sendall(bytes(12345))
            while len(other.recv(1 << 16, socket.MSG_PEEK)) < 12345:
                pass
            assert received_bytes() - before == 12345
            assert open_files() == opened
