"""Logs of models that learn: the report on drift, remedies, and their effect."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from audit.records import Run, moving, short_searches
from audit.test_drift import drifting
from nescio.audit import Log, Options, Thresholds, as_html, as_json, solve
from nescio.audit._attempt import attack_and_grade
from nescio.audit._audit_log import audit_log
from nescio.audit._certify.control import Control
from nescio.audit._log.remedies import Remedy
from nescio.cli import main


def audited(folder, log):
    """Audits a log with `nescio audit run`: exit code, JSON, page."""
    path = folder / "learns.npz"
    log.save(path)
    with short_searches():
        code = main(["audit", "run", str(path)])
    found = json.loads((folder / "learns.audit.json").read_text())
    return code, found, (folder / "learns.audit.html").read_text()


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A log whose last 40 of 90 rounds are of a model that hardly moves."""
    run, log = moving(10, 90, 40, seed=2)
    return run, log, *audited(tmp_path_factory.mktemp("learns"), log)


def best_of(found):
    """The most successful remedy, and its rounds."""
    best = max(found["drift"]["tried"][1:], key=lambda one: one["unique"])
    first, last = re.fullmatch(r"rounds (\d+) to (\d+) alone", best["remedy"]).groups()
    return best, int(first) - 1, int(last)


def test_drift_hides_users_and_a_slow_stretch_shows_them(learned):
    _, _, code, found, _ = learned
    assert code == found["verdict"]["exit_code"] == 2
    assert found["verdict"]["usable"] >= 8
    drift = found["drift"]
    assert drift["change"] > 0.2
    assert "drift as the model learns" in drift["words"]
    first, *rest = drift["tried"]
    assert (first["grade"], first["clear"]) == ("safe", 0)
    assert len(rest) == 4
    best, start, stop = best_of(found)
    assert start >= 50
    assert best["rounds"] == stop - start
    assert best["grade"] == "broken"
    assert best["remedy"] in drift["remedies"]
    assert any(best["remedy"] in reason for reason in found["verdict"]["reasons"])


def test_what_the_stretch_shows_is_true(learned):
    run, log, _, found, _ = learned
    _, start, stop = best_of(found)
    inside = [i for i, (a, b) in enumerate(log.windows) if start <= a and b <= stop]
    windows = [(log.windows[i][0] - start, log.windows[i][1] - start) for i in inside]
    part = Log(log.aggregates[start:stop], 10, windows, log.counts[:, inside])
    with short_searches():
        right = (solve(part).participation == run.participation[start:stop]).all(axis=0)
        whole = solve(log, method="reflect")
    assert right.sum() >= found["verdict"]["usable"]
    assert run.right(whole).mean() < 0.5


def test_the_page_has_every_attempt(learned):
    *_, found, page = learned
    tree = ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    table = next(node for node in tree.iter("table") if node.get("id") == "remedies")
    head, *rows = ["".join(row.itertext()) for row in table.iter("tr")]
    assert "probability" in head
    assert len(rows) == len(found["drift"]["tried"]) == 5
    best = [row for row in table.iter("tr") if row.get("class") == "best"]
    assert [row[0].text for row in best] == [best_of(found)[0]["remedy"]]
    said = "".join(tree.itertext())
    assert "4 remedies were tried" in said
    assert "all probabilities but the first are multiplied by 5" in said
    assert "drift as the model learns" in said


def test_probabilities_count_the_attempts():
    data = Run(10, 60, 100, noise=3.0, seed=1)
    log = Log(data.aggregates, 10, data.windows, data.counts, data.participants)
    options = Options(time_limit=5, method="reflect")
    one, five = (
        attack_and_grade(Remedy("a", log), options, Thresholds(), attempts=many).control.probability
        for many in (1, 5)
    )
    assert one > 1e-9
    assert five == min(1, 5 * one)


def test_a_search_that_failed_is_held_against_the_log_but_not_against_a_remedy():
    """Sums without noise are a risk by themselves; few rounds that show little noise are not."""
    data = Run(40, 60, 100, seed=1)
    log = Log(data.aggregates, 40, data.windows, data.counts, data.participants)
    options = Options(time_limit=1e-6, method="reflect")
    grades = [
        attack_and_grade(Remedy("a", log), options, Thresholds(), attempts=many).verdict.grade
        for many in (1, 5)
    ]
    assert grades == ["at risk", "safe"]


def test_a_column_is_clear_of_chance_only_if_both_attacks_found_it():
    near, far = np.zeros(3), np.ones(3)
    control = Control(near, far, 1e-9, np.array([True, False, True]))
    assert control.clear.tolist() == [True, False, True]


def test_without_counts_it_says_that_nothing_was_tried():
    _, log = drifting(0.4)
    findings = audit_log(Log(log.aggregates, log.users), time_limit=10)
    assert not findings.drift.small
    assert not findings.tried
    assert "without counts" in findings.remedies
    assert "without counts" in " ".join(findings.verdict.reasons)


def test_another_reading_of_the_rows_is_no_remedy(monkeypatch):
    monkeypatch.setattr("nescio.audit._log.rows.what_rows_are", lambda log: "unclear")
    with short_searches():
        findings = audit_log(moving(8, 40, 0, seed=0)[1])
    found = json.loads(as_json(findings))
    readings = [one["remedy"] for one in found["log"]["readings"]]
    assert readings == ["the log as it is", "averages times participants"]
    first, *rest = [one["remedy"] for one in found["drift"]["tried"]]
    assert first in readings
    assert len(rest) == 4
    assert not set(rest) & set(readings)
    assert "none of 4 remedies found more" in " ".join(findings.verdict.reasons)
    page = as_html(findings)
    assert 'id="readings"' in page
    assert "4 remedies were tried" in page
    assert (
        "the first probability is multiplied by 2, and all probabilities but the first are " in page
    )
    assert "multiplied by 6" in page


def test_where_nothing_helps_it_says_so(tmp_path, capsys):
    code, found, page = audited(tmp_path, moving(8, 40, 0, seed=0)[1])
    assert code == found["verdict"]["exit_code"] < 2
    assert found["drift"]["change"] > 0.05
    assert "none of 4 remedies found more" in found["verdict"]["reasons"][-1]
    assert "none found more" in found["drift"]["remedies"]
    assert "drift as the model learns" in page
    said = capsys.readouterr().out
    assert "none of 4 remedies found more" in said
    assert "proves nothing" in said
