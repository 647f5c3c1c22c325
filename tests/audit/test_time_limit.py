"""A time limit ends every part of an audit, and what had no time is said."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from audit.records import Run, moving, short_searches
from nescio.audit import Log, as_html, as_json, audit_log, solve
from nescio.audit import _attempt as attempt_module
from nescio.audit._attack.basis import select_basis
from nescio.audit._attack.estimate import column_space
from nescio.audit._attack.local_search import LocalSearch
from nescio.audit._attack.sets import AffineSet
from nescio.audit._certify.estimable import estimable
from nescio.audit._certify.reasons import Candidates
from nescio.audit._certify.uniqueness import margins
from nescio.audit._log import drift
from nescio.audit._log.undetermined import free_rounds
from nescio.audit._log.windows import batches

PAST, NEVER = 0.0, float("inf")


def record(run, **changes):
    named = {"windows": run.windows, "counts": run.counts, "participants": run.participants}
    return Log(run.aggregates, run.users, **{**named, **changes})


@pytest.fixture
def attacked(monkeypatch):
    """The logs that are attacked, without their controls."""
    logs = []

    def noted(log, *args, **named):
        logs.append(log)
        return solve(log, *args, **named)

    monkeypatch.setattr(attempt_module, "solve", noted)
    return logs


def test_after_the_limit_nothing_starts(attacked):
    """Drift would require remedies, and a log that is not broken a control."""
    found = audit_log(moving(8, 40, 0, seed=0)[1], time_limit=1e-6, rows="sums")
    assert len(attacked) == 1
    assert found.control is None
    assert found.tried == ()
    assert found.timed_out
    assert found.verdict.grade == "at risk"
    assert "no time to distinguish drift from noise" in as_html(found)
    report = json.loads(as_json(found))
    assert report["drift"]["change"] is None
    assert report["timed_out"] is True


def test_an_attempt_that_ran_out_of_time_is_not_called_safe(monkeypatch):
    """The clock of every attack jumps past its limit; that of the audit does not."""
    log = moving(8, 40, 0, seed=0)[1]
    with short_searches():
        found = audit_log(log, rows="sums", time_limit=1e5)
        assert "safe" in {one.grade for one in found.tried}
        late = lambda self: True  # noqa: E731
        monkeypatch.setattr("nescio.audit._attack.driver.Clock.over", property(late))
        found = audit_log(log, rows="sums", time_limit=1e5)
    assert len(found.tried) == 5
    assert "safe" not in {one["grade"] for one in json.loads(as_json(found))["drift"]["tried"]}
    page = ET.fromstring(as_html(found).removeprefix("<!DOCTYPE html>\n"))
    table = next(node for node in page.iter("table") if node.get("id") == "remedies")
    cells = [cell.text for cell in table.iter("td")]
    assert "not decided in time" in cells
    assert "safe" not in cells


def test_remedies_without_time_are_counted(monkeypatch):
    """Time passes only while a remedy is attacked: there is enough for the first two."""
    whole, spent = attempt_module.attack_and_grade, [0.0]
    log = moving(8, 40, 0, seed=0)[1]
    monkeypatch.setattr(attempt_module.time, "monotonic", lambda: 1e3 + spent[0])

    def slow(*args, **named):
        found = whole(*args, **named)
        spent[0] += 40
        return found

    monkeypatch.setattr(attempt_module, "attack_and_grade", slow)
    with short_searches():
        found = audit_log(log, rows="sums", time_limit=100)
    assert found.timed_out
    assert [len(found.tried) - 1, found.tries.left_out] == [2, 2]
    assert "there was no time for 2 more" in found.remedies
    assert "multiplied by 5" in as_html(found)


def test_without_counts_the_first_attack_has_all_the_time(monkeypatch):
    limits = []

    def noted(log, options, **named):
        limits.append(options.time_limit)
        return solve(log, options, **named)

    monkeypatch.setattr(attempt_module, "solve", noted)
    run = Run(6, 60, 100)
    audit_log(Log(run.aggregates, 6), time_limit=600)
    audit_log(record(run), time_limit=600)
    assert [round(limit / 100) for limit in limits] == [6, 1]


def test_proofs_end_at_the_deadline():
    run = Run(20, 60, 200)
    log, columns = record(run), run.participation.T.copy()
    (batch,) = batches(log.windows, log.counts, 0, np.arange(20))
    affine = AffineSet.of(np.linalg.qr(run.participation.astype(float))[0], batch)
    free = free_rounds(batch, log.empty)
    assert margins(affine, columns, free, NEVER)[free.any(axis=1)].any()
    assert not margins(affine, columns, free, PAST)[free.any(axis=1)].any()
    sure = [Candidates(columns[:0])] * 20
    assert estimable(columns, sure, NEVER).users.all()
    assert not estimable(columns, sure, PAST).users.any()


def test_a_result_without_time_for_proofs_says_so(monkeypatch):
    log = record(Run(20, 60, 200))
    assert solve(log, time_limit=600).determined.all()
    clock = "nescio.audit._attack.driver.Clock.__init__"

    def late(self, limit):
        self.deadline, self.end, self.seconds = NEVER, PAST, {}

    monkeypatch.setattr(clock, late)
    result = solve(log, time_limit=600)
    assert result.timed_out
    assert not result.unique.all()
    assert not result.determined.all()


def test_searches_end_at_the_deadline():
    run = Run(12, 48, 600, rate=0.2, noise=0.6)
    log, columns = record(run), run.participation.T.copy()
    space = column_space(log, 12, None, 0)
    (batch,) = batches(log.windows, log.counts, 0, np.arange(12))
    shaken = np.roll(columns, 1, axis=1)
    assert (LocalSearch(space, batch, log.empty, NEVER)(shaken) != shaken).any()
    assert (LocalSearch(space, batch, log.empty, PAST)(shaken) == shaken).all()
    run = Run(10, 60, 200, rate=0.3)
    wrong = run.participation.T.copy()
    wrong[0] = np.clip(wrong[0] + wrong[1], 0, 1)
    pool = np.concatenate((wrong, run.participation.T))
    assert (select_basis(record(run), wrong, pool, NEVER) != wrong).any()
    assert (select_basis(record(run), wrong, pool, PAST) == wrong).all()


def test_drift_ends_at_the_deadline():
    log = moving(8, 40, 0, seed=0)[1]
    assert drift.measure(log).complete
    late = drift.measure(log, deadline=PAST)
    assert not late.complete
    assert late.small
    assert np.isnan(late.change)
