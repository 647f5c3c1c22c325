"""`nescio tune`: from a log to a layout file."""

import json
from pathlib import Path

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here
from nescio.cli import build_parser
from nescio.pir.batch import AccessLog, Layout, _build
from pir.batch.logs import ROWS, sessions

QUICK = ("--layouts", 12, "--seconds", 0.002, "--threads", 1, "--min-count", 2)
SIZES = ("--rows", ROWS, "--row-bytes", 16)


@pytest.fixture
def log(tmp_path, rng, monkeypatch):
    """A log with users and times as CSV, in the current folder."""
    monkeypatch.chdir(tmp_path)
    made = sessions(rng)
    lines = ["user,row,inference,time"]
    for number, rows in enumerate(made):
        lines += [f"u{made.users[number]},{row},{number},{made.times[number]}" for row in rows]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    return tmp_path / "log.csv"


def test_a_layout_is_found_and_written(log):
    files = ("--out", "items.layout", "--json", "all.json", "--plot", "plot.svg", "--state", "kept")
    run = nescio("tune", log, *SIZES, *QUICK, *files)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    layout = Layout.load("items.layout")
    lines = run.stdout.splitlines()
    assert lines[0].split()[:4] == ["kind", "retrieved", "complete", "inferences/s"]
    assert lines[-2] == f"layout: {layout.describe()}"
    assert lines[-1] == "written: items.layout, for nescio serve --layout and every client"
    cases = json.loads(Path("all.json").read_text())
    assert len(cases) == 12
    assert f"of {len(cases)} layouts" in run.stdout
    chosen = next(line for line in lines if line.startswith("chosen: "))
    assert any(f"{case['bytes']:,} bytes" in chosen for case in cases if case["pareto"])
    again = nescio_here("tune", log, *SIZES, *QUICK, "--state", "kept")
    assert again.returncode == 0


def test_sizes_come_from_a_table(log, table_file):
    np.save("items.npy", np.zeros((ROWS, 4), "f4"))
    run = nescio_here("tune", log, "--table", "items.npy", *QUICK, "--json", "all.json")
    assert run.returncode == 0, run.stderr
    cases = json.loads(Path("all.json").read_text())
    assert {(case["rows"], case["row_bytes"]) for case in cases} == {(ROWS, 16)}


@pytest.mark.parametrize("name", ["mine.py:rate", "mine:rate"])
def test_a_quality_function_of_a_file_or_module(log, name):
    code = "def rate(sets, got):\n    return sum(map(sum, got)) / 1000\n"
    (log.parent / "mine.py").write_text(code)
    run = nescio("tune", log, *SIZES, *QUICK, "--quality", name)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[0].split()[:2] == ["kind", "quality"]


def test_a_cache_and_a_log_to_score_on(log):
    AccessLog.load(log).select(np.arange(50)).save("other.npz")
    run = nescio_here("tune", log, *SIZES, *QUICK, "--cache-rows", 20, "--held-out", "other.npz")
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected either --table, or both --rows and --row-bytes"),
        (("--rows", ROWS), "expected either --table, or both --rows and --row-bytes"),
        ((*SIZES, "--table", "x.npy"), "expected either --table, or both --rows and --row-bytes"),
        (("--table", "x.npy"), "x.npy does not exist"),
        (("--rows", 5, "--row-bytes", 16), "log.csv, line 3: found row 44, expected 0 to 4"),
        ((*SIZES, "--quality", "rate"), "found 'rate', expected module:function or path.py"),
        ((*SIZES, "--quality", "none.py:rate"), "found no file none.py"),
        ((*SIZES, "--quality", "bad.py:rate"), "bad.py:rate raised ZeroDivisionError"),
        ((*SIZES, "--quality", "fails.py:rate"), "fails.py:rate raised KeyError"),
        ((*SIZES, "--quality", "fails.py:nan"), "quality: found nan for the layout"),
        ((*SIZES, "--out", "no/folder"), "'no/folder' cannot be written"),
        ((*SIZES, "--max-ms", "nan"), "max_ms: found nan"),
        ((*SIZES, "--max-bytes", "10"), "no layout meets the budgets: max_bytes: found"),
        ((*SIZES, "--state", "notes.txt"), "notes.txt, line 1: found"),
        ((*SIZES, "--quality", "fails.py:inf"), "quality: found inf for the layout"),
        ((*SIZES, "--seconds", "inf"), "seconds: found inf, expected a finite number"),
        ((*SIZES, "--seconds", "nan"), "seconds: found nan, expected a finite number"),
        ((*SIZES, "--held-out", "none.npz"), "none.npz cannot be read"),
    ],
)
def test_refusals_are_one_sentence(log, arguments, words):
    (log.parent / "bad.py").write_text("1 / 0")
    (log.parent / "fails.py").write_text(
        "def rate(sets, got):\n    raise KeyError('x')\ndef nan(*_):\n    return float('nan')\n"
        "def inf(*_):\n    return float('inf')\n"
    )
    (log.parent / "notes.txt").write_text("notes\n")
    run = nescio_here("tune", log, *QUICK, *arguments)
    assert_one_sentence(run)
    assert words in run.stderr


@pytest.mark.parametrize("option", ["--out", "--json", "--plot", "--state"])
@pytest.mark.parametrize("path", ["log.csv", "./log.csv", "other.npz", "link.csv"])
def test_a_file_that_is_read_is_not_written(log, option, path):
    Path("link.csv").symlink_to(log)
    AccessLog([[1], [2]]).save("other.npz")
    before = Path(path).read_bytes()
    run = nescio_here(
        "tune", log, *SIZES, *QUICK, "--layouts", 1, "--held-out", "other.npz", option, path
    )
    assert_one_sentence(run)
    assert f"{option}: found {Path(path)}, which is also" in run.stderr
    assert Path(path).read_bytes() == before


def test_a_file_is_written_once(log):
    run = nescio_here("tune", log, *SIZES, *QUICK, "--out", "all", "--json", "./all")
    assert_one_sentence(run)
    assert "--json: found all, which is also --out, expected another file" in run.stderr
    assert not Path("all").exists()


def test_a_log_is_not_scored_on_itself(log):
    Path("copy.csv").write_bytes(log.read_bytes())
    for path in (log, "copy.csv"):
        run = nescio_here("tune", log, *SIZES, *QUICK, "--held-out", path)
        assert_one_sentence(run)
        assert "the same log as LOG, expected one of other inferences" in run.stderr


def test_a_cache_needs_users_and_times(tmp_path):
    AccessLog([[1], [2]]).save(tmp_path / "log.npz")
    run = nescio_here("tune", tmp_path / "log.npz", *SIZES, "--cache-rows", 5)
    assert_one_sentence(run)
    assert "found a log without users and times" in run.stderr


def test_the_default_of_min_count_is_that_of_a_layout():
    arguments = build_parser().parse_args(["tune", "log.csv"])
    assert arguments.min_count == _build.MIN_COUNT
