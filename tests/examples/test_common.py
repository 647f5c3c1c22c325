"""The part that all applications share: qualities, files, servers, measured tables."""

import gzip
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from examples.common.arguments import build_parser, output_folder
from examples.common.files import find, missing, open_text
from examples.common.measured import MeasuredTable
from examples.common.quality import auc_interval, roc_auc
from examples.common.report import Report
from examples.common.servers import two_servers
from nescio.errors import FileError, ServiceError

# ---- qualities -----------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [3, 10**6], ids=["ties", "different"])
def test_the_auc_counts_pairs_in_order(rng, values):
    labels, scores = rng.random(80) < 0.3, rng.integers(0, values, 80).astype("f4")
    ones, zeros = scores[labels][:, None], scores[~labels]
    pairs = (ones > zeros).mean() + (ones == zeros).mean() / 2
    assert roc_auc(labels, scores) == pytest.approx(pairs)
    assert roc_auc(~labels, -scores) == pytest.approx(pairs)


def test_the_auc_of_one_kind_of_label_is_not_a_number():
    assert np.isnan(roc_auc(np.ones(3, bool), np.arange(3)))
    assert np.isnan(roc_auc(np.zeros(3, bool), np.arange(3)))


def test_the_interval_has_the_auc_and_shrinks_with_users(rng):
    def width(users):
        labels = rng.random(20 * users) < 0.5
        scores = labels + rng.normal(0, 2, len(labels))
        low, high = auc_interval(labels, scores, np.repeat(np.arange(users), 20))
        assert low < roc_auc(labels, scores) < high
        return high - low

    assert width(400) < width(25)


def test_the_interval_is_that_of_users_drawn_with_replacement(rng):
    labels, scores = rng.random(300) < 0.4, rng.integers(0, 40, 300)  # with ties
    users, random = rng.integers(0, 9, 300) * 7, np.random.default_rng(5)
    found = []
    for _ in range(30):
        draws = np.unique(users)[random.integers(0, 9, 9)]
        own = np.concatenate([np.flatnonzero(users == user) for user in draws])
        found.append(roc_auc(labels[own], scores[own]))
    expected = np.quantile(found, (0.025, 0.975))
    assert auc_interval(labels, scores, users, trials=30, seed=5) == pytest.approx(expected)


# ---- files and reports ---------------------------------------------------------------------------


def test_files_are_found_plain_or_gzipped(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt", encoding="utf-8") as file:
        file.write("é\n")
    assert find(tmp_path, ["b.csv", "a.csv"]) == tmp_path / "a.csv.gz"
    assert find(tmp_path, ["b.csv"]) is None
    with open_text(tmp_path / "a.csv.gz") as file:
        assert file.read() == "é\n"


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b"x" * 99)[:-9], gzip.compress(b"\xff")],
    ids=["no gzip", "cut", "no UTF-8"],
)
def test_damaged_files_are_named(tmp_path, content):
    (tmp_path / "a.gz").write_bytes(content)
    with pytest.raises(FileError, match=r"a\.gz: found a file that cannot be read as text"):
        with open_text(tmp_path / "a.gz") as file:
            file.read()


def test_the_error_for_missing_data_says_where_to_get_it(tmp_path):
    assert "no such folder, expected x.csv; get it there" in str(
        missing(tmp_path / "no", "x.csv", "get it there")
    )
    assert "no such files" in str(missing(tmp_path, "x.csv", "get it there"))
    (tmp_path / "x.csv").touch()
    assert "found a file, expected a folder with x.csv" in str(
        missing(tmp_path / "x.csv", "x.csv", "get it there")
    )


def test_an_output_folder_with_files_is_refused(tmp_path):
    with output_folder(tmp_path / "new") as folder:
        (folder / "kept").touch()
    with pytest.raises(FileError, match="--folder: .*new has files, expected a new or empty"):
        with output_folder(tmp_path / "new"):
            pass
    with output_folder(None) as folder:
        (folder / "lost").touch()
    assert (tmp_path / "new" / "kept").exists()
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_an_output_folder_that_cannot_be_written_to_is_refused(tmp_path):
    """At the start: it may be hours until there are results."""
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="--folder: .* cannot be used: Permission denied"):
        with output_folder(tmp_path):
            pass


@pytest.mark.parametrize("text", ["0", "-3", "two", "1.5", "", "1025", "9" * 5000])
def test_counts_of_the_command_line(text, capsys):
    parser = build_parser("some", "Does something.")
    with pytest.raises(SystemExit):
        parser.parse_args([f"--threads={text}"])
    said = f"--threads: found {text[:40]!r}, expected an integer from 1 to 1024"
    assert said in capsys.readouterr().err


def test_seeds_are_those_of_numpy_and_of_pytorch(capsys):
    parser = build_parser("some", "Does something.")
    assert parser.parse_args(["--seed=0"]).seed == 0
    largest = parser.parse_args([f"--seed={2**63 - 1}"]).seed
    np.random.default_rng(largest)
    torch.manual_seed(largest)
    with pytest.raises(SystemExit):
        parser.parse_args([f"--seed={2**64}"])
    assert "--seed: found '18446744073709551616', expected an integer" in capsys.readouterr().err


def test_reports_line_their_columns_up(tmp_path, capsys):
    report = Report()
    report.table(["exact", "relaxed"], {"AUC": [0.70531, None], "equal": [True, False]})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["exact", "relaxed"],
        ["AUC", "0.7053", "-"],
        ["equal", "yes", "no"],
    ]
    assert len({len(line) for line in lines}) == 1
    report.facts["auc"] = 0.5
    report.save(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text() == '{\n "auc": 0.5\n}\n'


# ---- servers -------------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path, rng):
    path = tmp_path / "rows.npy"
    np.save(path, rng.standard_normal((300, 8), dtype=np.float32))
    return path


def ended(servers):
    """Waits until servers end; returns false if they do not."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            MeasuredTable(servers, "rows").close()
        except ServiceError:
            return True
        time.sleep(0.1)
    return False


def test_requests_are_measured(rows):
    with two_servers([rows]) as servers:
        table = MeasuredTable(servers, "rows")
        found = [table.lookup([17]), table.lookup([[3, 4], [5, 6]])]
        table.close()
    assert (found[0] == np.load(rows)[[17]]).all()
    assert (found[1] == np.load(rows)[[[3, 4], [5, 6]]]).all()
    one, four = table.requests
    assert 3 * one.bytes_up < four.bytes_up < 4 * one.bytes_up  # a header, and the keys
    assert 3 * one.bytes_down < four.bytes_down < 4 * one.bytes_down
    assert all(seconds > 0 for request in table.requests for seconds in request[2:])
    assert table.seen[:2] == b"NQ"
    assert len(table.seen) == four.bytes_up
    with pytest.raises(ServiceError, match="cannot be reached"):
        MeasuredTable(servers, "rows")  # they ended with the block


def test_paths_begin_at_the_current_folder(rows, monkeypatch):
    """Its modules are not imported."""
    monkeypatch.chdir(rows.parent)
    (rows.parent / "nescio.py").write_text("raise SystemExit(9)")
    with two_servers([Path(rows.name)]) as servers:
        MeasuredTable(servers, "rows").close()


def test_a_server_that_does_not_start_says_why(tmp_path):
    with pytest.raises(ServiceError, match=r"ended with code 1: nescio: .*no\.npy does not exist"):
        with two_servers([tmp_path / "no.npy"]):
            pass


def test_servers_end_in_time(rows):
    """Even before they are ready, on a machine that is very busy."""

    def served():
        with two_servers([rows], seconds=4) as servers:
            return ended(servers)

    try:
        assert served()
    except ServiceError as error:
        assert "ended with code -9" in str(error)  # noqa: PT017


def test_servers_end_with_their_program(rows):
    """Their standard input closes, also where the program is killed."""
    code = f"""
import sys, os, signal
from pathlib import Path
from examples.common.servers import two_servers
with two_servers([Path({str(rows)!r})]) as servers:
    print(*servers, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    servers = run.stdout.split()
    assert len(servers) == 2
    assert all(re.fullmatch(r"http://127.0.0.1:\d+", server) for server in servers)
    assert ended(servers)
