"""`nescio audit` as a user runs it: exit codes, files, messages."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

from audit.records import Run
from commands.conftest import assert_one_sentence, nescio
from nescio.audit import Log
from nescio.cli import main


def write(path, run, **changes):
    named = {"windows": run.windows, "counts": run.counts, "participants": run.participants}
    Log(run.aggregates, run.users, **{**named, **changes}).save(path)
    return path


@pytest.fixture
def broken(tmp_path):
    return write(tmp_path / "run.npz", Run(12, 40, 60))


@pytest.fixture
def called(capsys, monkeypatch):
    """Calls the command in this process, which saves the start of another one."""

    def call(*arguments, cwd):
        monkeypatch.chdir(cwd)
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=said.out, stderr=said.err)

    return call


def test_a_broken_log_ends_with_2(broken):
    found = nescio("audit", "run", broken)
    assert found.returncode == 2, found.stderr
    assert found.stdout.startswith("broken: ")
    report = json.loads((broken.parent / "run.audit.json").read_text())
    assert report["verdict"]["exit_code"] == 2
    page = (broken.parent / "run.audit.html").read_text()
    ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def test_a_log_at_risk_ends_with_1(broken, tmp_path):
    options = ["--usable", "1e-30", "--html", tmp_path / "a.html", "--json", tmp_path / "a.json"]
    found = nescio("audit", "run", broken, *options)
    assert found.returncode == 1, found.stderr
    assert found.stdout.startswith("at risk: ")
    assert (tmp_path / "a.html").exists()
    assert json.loads((tmp_path / "a.json").read_text())["thresholds"]["usable"] == 1e-30
    assert not (tmp_path / "run.audit.html").exists()


def test_a_safe_log_ends_with_0_and_a_caution(tmp_path):
    path = write(tmp_path / "run.npz", Run(5, 24, 40, noise=1000.0, seed=1))
    found = nescio("audit", "run", path, "--rows", "sums")
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("safe: ")
    assert "proves nothing" in found.stdout
    found = nescio("audit", "run", path)  # so noisy that the rows could be averages as well
    assert found.returncode == 1, found.stderr
    assert "does not show if it has sums or averages, so it is never called safe" in found.stdout


def test_a_log_whose_search_ran_out_of_time_is_not_safe(tmp_path, called):
    path = write(tmp_path / "run.npz", Run(12, 40, 60, noise=1000.0))
    found = called("audit", "run", path, "--time-limit", 0.01, cwd=tmp_path)
    assert found.returncode == 1, found.stderr
    assert found.stdout.startswith("at risk: ")
    assert "the time limit ended a search or a proof" in found.stdout
    report = json.loads((tmp_path / "run.audit.json").read_text())
    assert report["verdict"]["exit_code"] == 1
    assert report["timed_out"] is True


def test_the_time_is_limited_by_default_and_shown_on_a_terminal(broken, called, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    found = called("audit", "run", broken, cwd=broken.parent)
    assert found.returncode == 2
    assert "nescio: 0 s of at most 600 s: attack on the log as it is\n" in found.stderr
    assert "default: 600" in called("audit", "run", "--help", cwd=broken.parent).stdout


def test_the_limit_of_programs_has_its_old_name_too(broken, called):
    for name in ("--program-limit", "--column-limit"):
        assert called("audit", "run", broken, name, 5, cwd=broken.parent).returncode == 2
        found = called("audit", "run", broken, name, -1, cwd=broken.parent)
        assert_one_sentence(found, code=3)
    said = called("audit", "run", "--help", cwd=broken.parent).stdout
    assert "--program-limit" in said
    assert not re.search(r"\b(columns?|span|evened)\b", said)


@pytest.mark.parametrize("size", [2.0**996, 2.0**-996])
def test_sums_of_any_size_are_audited(size, tmp_path, called):
    run = Run(8, 40, 40, rate=0.2)
    run.aggregates *= size
    found = called("audit", "run", write(tmp_path / "run.npz", run), cwd=tmp_path)
    assert found.returncode == 2, found.stderr
    assert "8 of 8 users were recovered" in found.stdout


@pytest.mark.parametrize(("size", "dtype"), [(1e-320, float), (1e-42, np.float32)])
def test_sums_that_have_lost_digits_are_refused(size, dtype, tmp_path, called):
    run = Run(8, 40, 40, rate=0.2)
    run.aggregates = (run.aggregates * size).astype(dtype)
    found = called("audit", "run", write(tmp_path / "run.npz", run), cwd=tmp_path)
    assert_one_sentence(found, code=3)
    assert "fewer digits; multiply updates by a constant" in found.stderr


def test_a_round_far_larger_than_the_others_is_named(tmp_path, called):
    run = Run(5, 24, 40, noise=1000.0, seed=1)
    path = write(tmp_path / "run.npz", run)
    assert called("audit", "run", path, "--rows", "sums", cwd=tmp_path).returncode == 0
    busiest = int(run.participants.argmax())
    run.aggregates[busiest] *= 1e5
    path = write(tmp_path / "run.npz", run)
    found = called("audit", "run", path, "--rows", "sums", cwd=tmp_path)
    assert found.returncode == 1, found.stderr
    named = re.search(r"round (\d+) \((\S+) times\), counted from 0; leave out", found.stdout)
    assert int(named[1]) == busiest
    assert 5e4 < float(named[2]) < 5e5
    report = json.loads((tmp_path / "run.audit.json").read_text())
    assert [one["round"] for one in report["log"]["large_rounds"]] == [busiest]
    assert f"round {busiest} (" in (tmp_path / "run.audit.html").read_text()


def test_rounds_of_very_different_size_are_refused(tmp_path, called):
    run = Run(8, 30, 40)
    run.aggregates[run.participants.argmax()] *= 1e300
    found = called("audit", "run", write(tmp_path / "run.npz", run), cwd=tmp_path)
    assert_one_sentence(found, code=3)
    assert "leave out rounds that failed" in found.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["--bogus"], ["--broken", "x"], ["--method", "guess"]),
        *(["--broken", "2"], ["--usable", "nan"], ["--seed", "-1"], ["--time-limit", "0"]),
        *(["--noise", "-1"], ["--json", "/"], ["--html", "same", "--json", "same"]),
    ],
    ids=" ".join,
)
def test_without_a_verdict_it_ends_with_3(arguments, broken, called):
    log = [broken] if arguments else []
    found = called("audit", "run", *log, *arguments, cwd=broken.parent)
    assert found.returncode == 3
    assert "Traceback" not in found.stderr
    assert found.stdout == ""
    assert not (broken.parent / "run.audit.json").exists()


def test_logs_that_are_none_end_with_3(tmp_path, called):
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name in ("missing.npz", "text.npz", "other.npz"):
        assert_one_sentence(called("audit", "run", tmp_path / name, cwd=tmp_path), code=3)


def test_a_log_is_not_written_over(broken, called):
    before = broken.read_bytes()
    found = called("audit", "run", broken, "--html", broken, cwd=broken.parent)
    assert_one_sentence(found, code=3)
    assert broken.read_bytes() == before


def test_a_sweep(tmp_path):
    options = ["--users", "8,12", "--rounds", "16,64", "--defence", "none,batched:4"]
    options += ["--trials", "1", "--dimensions", "100", "--time-limit", "1"]
    files = ["--json", tmp_path / "s.json", "--plot", tmp_path / "s.svg"]
    found = nescio("audit", "simulate", *options, *files)
    assert found.returncode == 0, found.stderr
    assert "proves nothing" in found.stdout
    report = json.loads((tmp_path / "s.json").read_text())
    curves = {curve["name"]: curve for curve in report["rounds_to_break"]}
    assert curves["none"]["x"] == [8, 12]
    assert curves["none"]["y"] == [64, 64]
    assert curves["batched:4"]["y"] == [None, None]
    assert all(case["wrong"] in (0, None) for case in report["cases"])
    assert ET.parse(tmp_path / "s.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_a_sweep_over_noise(tmp_path):
    options = ["--users", "8", "--rounds", "64", "--noise", "0,0.1,100", "--trials", "1"]
    options += ["--time-limit", "1", "--plot-noise", tmp_path / "n.svg"]
    found = nescio("audit", "simulate", *options)
    assert found.returncode == 0, found.stderr
    assert "noise to break, none, by rounds: 64: 0.1" in found.stdout
    ET.parse(tmp_path / "n.svg")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        *((["--users", "1"], 1), (["--defence", "magic"], 1), (["--noise", "nan"], 1)),
        *((["--plot-noise", "x.svg"], 1), (["--json", "/"], 1), (["--trials", "0"], 1)),
        (["--noise-directions", "-1"], 1),
    ],
    ids=str,
)
def test_sweeps_that_cannot_be(arguments, code, tmp_path, called):
    assert_one_sentence(called("audit", "simulate", *arguments, cwd=tmp_path), code)


def test_a_sweep_ends_with_2_for_a_command_line_that_makes_no_sense():
    assert nescio("audit", "simulate", "--bogus").returncode == 2
    assert nescio("audit", "simulate", "--users", "x").returncode == 2


WITHOUT = """
import sys
sys.modules["matplotlib"] = None
from nescio.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without_matplotlib(*arguments):
    command = [sys.executable, "-c", WITHOUT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_without_matplotlib_there_is_the_json_alone(broken):
    found = without_matplotlib("audit", "run", broken)
    assert found.returncode == 2, found.stderr
    assert found.stderr == (
        "nescio: no HTML, only JSON: plots need matplotlib: pip install 'nescio[audit]'\n"
    )
    assert "audit.html" not in found.stdout
    assert not (broken.parent / "run.audit.html").exists()
    assert json.loads((broken.parent / "run.audit.json").read_text())["verdict"]["exit_code"] == 2


def test_plots_that_are_asked_for_need_matplotlib(broken):
    page, plot = broken.parent / "a.html", broken.parent / "a.svg"
    for arguments, code in [
        (["run", broken, "--html", page], 3),
        (["simulate", "--plot", plot], 1),
    ]:
        found = without_matplotlib("audit", *arguments)
        assert found.returncode == code
        assert found.stderr == "nescio: plots need matplotlib: pip install 'nescio[audit]'\n"
        assert not list(broken.parent.glob("*.audit.*"))
