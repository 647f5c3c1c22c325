"""`python -m benchmarks.audit figures` at tiny sizes: its cases, checks and errors."""

import argparse
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.audit import figures, trial, without_counts
from benchmarks.audit import run as audit
from benchmarks.audit.__main__ import main
from benchmarks.audit.figures import FIGURES, Curve, Figure
from benchmarks.audit.trial import Options, Trial
from commands.conftest import assert_one_sentence, benchmark
from nescio.audit import Setting, simulate
from nescio.bench.timing import WrongResultError

FIELDS = {
    *("figure", "curve", "users", "rounds", "participation", "granularity", "noise", "dimensions"),
    *("method", "trials", "asked", "exact", "right", "unique", "wrong", "verified"),
    *("seconds", "least_seconds", "most_seconds", "milliseconds_per_column"),
}


def tiny(*rounds, **options):
    """A figure of twelve users."""
    curve = Curve("12 users", tuple(Setting(12, n) for n in rounds))
    series = options.pop("series", "users")
    return Figure("tiny", "Tiny", (curve,), (curve,), "rounds", series, **options)


@pytest.fixture
def only(monkeypatch):
    """Measures this figure and no other; gives its cases and what is printed."""

    def measure(figure, path, *arguments):
        monkeypatch.setattr(audit, "FIGURES", (figure,))
        words = ("figures", "--only", figure.name, "--json", path / "cases.json")
        assert main([*map(str, words), *map(str, arguments)]) == 0
        return json.loads((path / "cases.json").read_text())

    return measure


def test_a_scan_ends_with_what_fails(only, tmp_path, capsys):
    cases = only(tiny(120, 96, 13, 12 * 4), tmp_path, "--trials", 2, "--plot", tmp_path / "plots")
    assert [case["rounds"] for case in cases] == [120, 96, 13]
    assert [case["exact"] for case in cases][:2] == [2, 2]
    assert cases[2]["exact"] < cases[2]["asked"] == 2
    assert all(set(case) >= FIELDS for case in cases)
    assert cases[0]["unique"] is None  # nobody asked for certificates
    shown = capsys.readouterr().out
    assert shown.splitlines()[-5].split()[:6] == ["12", "0.10", "10", "0.00", "96", "13"]
    assert (tmp_path / "plots/tiny.svg").read_text().lstrip().startswith("<?xml")


def test_success_is_measured_everywhere(only, tmp_path):
    cases = only(tiny(13, 120, scan=False), tmp_path, "--trials", 3, "--certify", "--time-limit", 5)
    assert [(case["rounds"], case["trials"]) for case in cases] == [(13, 3), (120, 3)]
    assert cases[1]["right"] == 1
    assert cases[1]["unique"] > 0.9
    assert cases[1]["wrong"] == 0
    assert cases[1]["peak_bytes"] is None or cases[1]["peak_bytes"] < 1 << 30
    assert {"space", "reflect", "certificates"} <= set(cases[1]["steps"])
    for case in cases:
        assert case["least_seconds"] <= case["seconds"] <= case["most_seconds"]
        assert case["milliseconds_per_column"] == pytest.approx(case["seconds"] * 1e3 / 12)


def test_columns_are_held_against_the_planted_ones(monkeypatch):
    run = simulate(Setting(12, 120), 1)
    right = trial.attack(run, Options(1), 1)
    assert right.exact
    spoilt = run.participation.copy()
    spoilt[np.flatnonzero(spoilt[:, 3])[0], 3] = 0
    object.__setattr__(run, "participation", spoilt)
    assert trial.attack(run, Options(1), 1).right == pytest.approx(11 / 12)
    with pytest.raises(WrongResultError, match="user 3: wrong participation is called unique"):
        trial.attack(run, Options(1, certify=True), 1)


def test_a_scan_stops_its_trials_too(monkeypatch):
    outcomes = iter([1.0, 0.9, 1.0])
    monkeypatch.setattr(trial, "attack", lambda *_: Trial(next(outcomes), 1.0))
    setting = Setting(12, 120)
    assert len(trial.trials(setting, Options(3), all_of_them=False)) == 2
    outcomes = iter([1.0, 0.9, 1.0])
    made = trial.trials(setting, Options(3))
    case = trial.as_case(setting, Options(3), made)
    assert (case["exact"], case["trials"]) == (2, 3)
    assert case["right"] == pytest.approx(2.9 / 3)


def test_how_often_users_are_in_a_window(only, tmp_path):
    """Figure 6.5b: as a binomial distribution has it."""
    figure = tiny(600, series="granularity")
    (case,) = only(figure, tmp_path, "--trials", 1, "--plot", tmp_path)
    expected = [0.9**10, 0.9**9, 45 * 0.01 * 0.9**8]
    assert case["in_windows"][:3] == pytest.approx(expected, abs=0.06)
    assert sum(case["in_windows"]) == pytest.approx(1)


def test_a_plot_of_nothing_but_failures(only, tmp_path):
    (case,) = only(tiny(13), tmp_path, "--trials", 1, "--plot", tmp_path)
    assert case["exact"] == 0
    assert (tmp_path / "tiny.svg").exists()


def test_what_is_needed():
    setting = {"users": 5, "participation": 0.1, "granularity": 10, "noise": 0.0, "seconds": 1.0}
    curve = [
        {**setting, "rounds": rounds, "asked": 3, "exact": exact}
        for rounds, exact in ((20, 3), (15, 3), (10, 2))
    ]
    found = audit.needed(curve, "rounds")
    assert (found["needed"], found["failed"]) == (15, 10)
    assert audit.needed(curve[2:], "rounds")["needed"] is None
    assert audit.needed(curve[:2], "rounds")["failed"] is None


def test_the_chapters_figures_are_whole():
    """Section 6.4.1: what it scans, and how often."""
    by_name = {figure.name: figure for figure in FIGURES}
    users = {c.settings[0].users for c in by_name["figure-6.2a"].full}
    assert users == {16, 32, 64, 128, 256, 512, 1024}
    rates = {c.settings[0].participation for c in by_name["figure-6.4"].full}
    assert rates == {0.1, 0.2, 0.3, 0.4, 0.5}
    lengths = {c.settings[0].granularity for c in by_name["figure-6.5"].full}
    assert lengths == {10, 20, 30, 40, 50}
    assert [figure.trials[1] for figure in FIGURES[1:]] == [30] * 5
    targets = [(s.users, s.rounds) for c in by_name["targets"].small for s in c.settings]
    assert targets == [(256, 512), (1024, 2048)]
    for figure in FIGURES:
        for curve in figure.full + figure.small:
            assert all(s.rounds > s.users for s in curve.settings)
            hard = [getattr(s, figure.x) for s in curve.settings]
            assert hard == sorted(hard, reverse=True)  # from easy to hard


def test_without_counts_each_method_is_measured(monkeypatch, tmp_path, capsys):
    pytest.importorskip("flint")
    small = tiny(30, 120).small
    monkeypatch.setattr(without_counts, "BLIND", replace(without_counts.BLIND, small=small))
    words = (
        "--only",
        "blind",
        "--trials",
        2,
        "--plot",
        tmp_path,
        "--json",
        tmp_path / "cases.json",
    )
    assert main(["figures", *map(str, words)]) == 0
    cases = json.loads((tmp_path / "cases.json").read_text())
    assert [(case["method"], case["rounds"]) for case in cases] == [
        *(("lattice", 30), ("skewness", 30), ("lattice", 120), ("skewness", 120))
    ]
    assert cases[0]["right"] >= cases[1]["right"]
    assert [case["exact"] for case in cases[2:]] == [2, 2]
    assert all(case["least_seconds"] <= case["seconds"] for case in cases)
    assert (tmp_path / "blind.svg").exists()
    assert "exact" in capsys.readouterr().out


def test_without_the_library_skewness_alone_is_measured(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "flint", None)
    small = tiny(120).small
    monkeypatch.setattr(without_counts, "BLIND", replace(without_counts.BLIND, small=small))
    (case,) = without_counts.blind_cases(Options(1), full=False)
    assert case["method"] == "skewness"
    assert "pip install 'nescio[audit-lattice]'" in capsys.readouterr().out


def test_other_names_of_figures():
    assert audit.names(["figure-6.3", "figure-6.2"]) == ["figure-6.2b", "figure-6.2a"]
    assert audit.names(["figure-6.6"]) == ["figure-6.6a", "table-6.1"]
    assert len(audit.names(None)) == len(FIGURES) + 1 + len(audit.LEARNED)
    known = audit.names(None)
    assert all(name in known for names in figures.ALIASES.values() for name in names)


def test_pictures_that_are_missing_are_no_failure_unless_they_are_named(tmp_path, capsys):
    arguments = argparse.Namespace(data=str(tmp_path))
    learned = audit._Learned(arguments, required=False)
    learned.check(["table-6.2"])
    assert list(learned.cases("table-6.2")) == []
    assert "left out: " in capsys.readouterr().out
    found = benchmark("audit", "figures", "--only", "table-6.2", "--data", tmp_path)
    assert_one_sentence(found)
    assert "table-6.2: " in found.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "figure-7"], "figure: found 'figure-7', expected one of targets"),
        (["--time-limit", 0], "--time-limit: found 0"),
        (["--trials", -1], "trials: found -1"),
        (["--seed", -1], "seed: found -1"),
        (["--json", "/no/such/folder/x"], "/no/such/folder"),
        (["--plot", "/dev/null/x"], "/dev/null/x"),
    ],
)
def test_what_cannot_be_measured(arguments, words):
    found = benchmark("audit", "figures", *arguments)
    assert_one_sentence(found)
    assert words in found.stderr
