"""Logs of averages: recognized, attacked as the sums that they stand for, and named."""

import json
from dataclasses import replace

import numpy as np
import pytest

from audit.records import Run, moving, short_searches
from nescio.audit import Log, as_json, audit_log
from nescio.audit._log.rows import what_rows_are
from nescio.cli import main
from nescio.errors import ArgumentError


def record(run, **changes):
    named = {"windows": run.windows, "counts": run.counts, "participants": run.participants}
    return Log(run.aggregates, run.users, **{**named, **changes})


def averaged(log):
    many = np.maximum(log.participants, 1)[:, None]
    return replace(log, aggregates=log.aggregates / many)


SUMS = {"sums", "probably sums", "unclear"}
AVERAGES = {"averages", "unclear"}


@pytest.mark.parametrize("noise", [0, 0.2, 1, 100])
@pytest.mark.parametrize(("users", "rounds"), [(16, 64), (18, 22)])
def test_averages_are_told_from_sums(users, rounds, noise):
    for seed in range(4):
        log = record(Run(users, rounds, 200, rate=0.15, noise=noise, seed=seed))
        own, other = SUMS, AVERAGES
        if not noise and rounds > 2 * users:
            own, other = {"sums"}, {"averages"}
        assert what_rows_are(log) in own
        assert what_rows_are(averaged(log)) in other
        for changed, possible in ((log, SUMS), (averaged(log), AVERAGES)):
            assert what_rows_are(replace(changed, participants=None)) in possible


def test_averages_are_told_from_sums_as_a_model_learns():
    _, log = moving(12, 60, 0, seed=0)
    assert what_rows_are(log) in SUMS
    assert what_rows_are(averaged(log)) in AVERAGES


def test_few_rounds_do_not_tell():
    """As many rounds with participants as users: every vector is in the span."""
    columns = np.concatenate((np.zeros((2, 6)), np.eye(6)))
    columns[7, 0] = 1
    sums = columns @ np.random.default_rng(0).standard_normal((6, 30))
    assert what_rows_are(Log(sums, 6)) == "unclear"


def test_equal_numbers_of_participants_make_no_difference():
    run = Run(6, 40, 60, seed=0)
    run.participation = np.zeros((40, 6), np.uint8)
    rng = np.random.default_rng(0)
    for row in run.participation:
        row[rng.choice(6, 2, replace=False)] = 1
    log = Log(run.participation @ run.updates, 6, participants=np.full(40, 2))
    assert what_rows_are(log) == what_rows_are(averaged(log)) == "probably sums"
    with short_searches():
        verdicts = [audit_log(each).verdict for each in (log, averaged(log))]
    assert verdicts[0] == verdicts[1]


def test_averages_give_users_away_as_sums_do(tmp_path, capsys):
    run = Run(16, 64, 60)
    path = tmp_path / "run.npz"
    averaged(record(run)).save(path)
    assert main(["audit", "run", str(path)]) == 2
    assert "16 of 16 users were recovered" in (said := capsys.readouterr().out)
    assert "the log has averages, not sums" in said
    found = json.loads((tmp_path / "run.audit.json").read_text())
    assert found["log"]["rows"] == "averages"
    assert "averages" in (tmp_path / "run.audit.html").read_text()


def test_single_rounds_tell_the_participants():
    run = Run(8, 40, 60, window=1)
    log = averaged(record(run))
    found = audit_log(replace(log, participants=None))
    assert (found.rows, found.verdict.grade) == ("averages", "broken")


def test_averages_without_participants_are_not_safe():
    run = Run(8, 40, 60)
    log = replace(averaged(record(run)), participants=None)
    with short_searches():
        found = audit_log(log)
    assert found.rows == "averages without participants"
    assert found.verdict.code > 0
    assert "log participants" in " ".join(found.verdict.reasons)
    with pytest.raises(ArgumentError, match="averages without participants"):
        audit_log(log, rows="averages")


def test_a_log_that_cannot_be_told_is_never_safe():
    run = Run(5, 14, 40, noise=1000.0)
    log = record(run, participants=None)
    with short_searches():
        found = audit_log(log)
        assert (found.rows, found.verdict.grade) == ("unclear", "at risk")
        assert "--rows sums" in " ".join(found.verdict.reasons)
        assert json.loads(as_json(found))["verdict"]["exit_code"] == 1
        assert audit_log(log, rows="sums").verdict.grade == "safe"


def test_other_rows_are_refused():
    with pytest.raises(ArgumentError, match="expected auto, sums or averages"):
        audit_log(record(Run(8, 40, 60)), rows="means")


def test_a_user_in_every_round_does_not_make_averages_of_sums():
    """Its update alone makes the energy of rows nearly independent of the participants."""
    users, rounds, dimensions = 8, 60, 100
    rng = np.random.default_rng(1)
    taken = (rng.random((rounds, users)) < 0.25).astype(np.uint8)
    taken[:, 0] = 1
    updates = rng.standard_normal((users, dimensions))
    updates[0] *= 4
    many = taken.sum(axis=1).astype(int)
    noise = 0.2 * np.sqrt(many)[:, None] * rng.standard_normal((rounds, dimensions))
    windows = [(start, start + 10) for start in range(0, rounds, 10)]
    counts = np.stack([taken[a:b].sum(axis=0) for a, b in windows], axis=1).astype(int)
    log = Log(taken @ updates + noise, users, windows, counts, many)
    assert what_rows_are(log) == "unclear"
    with short_searches():
        found = audit_log(log)
    assert not found.quality.certain.any()
    assert "users were recovered" not in " ".join(found.verdict.reasons)


def weighted(rounds, *, equal, noise=0.3, seed=0):
    """A log of sums weighted by numbers of examples, and one of averages with these weights."""
    rng, users, dimensions = np.random.default_rng(seed), 8, 200
    taken = (rng.random((rounds, users)) < 0.2).astype(np.uint8)
    taken[taken.sum(axis=1) == 0, 0] = 1
    if equal:
        taken = np.array([rng.permutation(users) < equal for _ in range(rounds)], np.uint8)
    weights = taken * rng.integers(20, 400, users)
    sums = weights @ rng.standard_normal((users, dimensions))
    sizes = np.linalg.norm(weights, axis=1, keepdims=True)
    sums += noise * sizes * rng.standard_normal(sums.shape)
    windows = [(start, min(start + 8, rounds)) for start in range(0, rounds, 8)]
    counts = np.stack([taken[a:b].sum(axis=0) for a, b in windows], axis=1).astype(int)
    many = taken.sum(axis=1)
    averages = sums / weights.sum(axis=1)[:, None]
    return [Log(each, users, windows, counts, many) for each in (sums, averages)]


@pytest.mark.parametrize("rounds", [20, 32])
@pytest.mark.parametrize("equal", [None, 2])
def test_sums_and_averages_with_weights_are_not_safe(rounds, equal):
    for seed in range(3):
        for log in weighted(rounds, equal=equal, seed=seed):
            with short_searches():
                found = audit_log(log)
                assert found.verdict.code > 0
                if found.rows == "probably sums" and found.verdict.code == 1:
                    assert "(--rows sums)" in " ".join(found.verdict.reasons)


def test_the_operator_can_say_that_rows_are_sums():
    log, _ = weighted(20, equal=2)
    with short_searches():
        assert audit_log(log).verdict.grade == "at risk"
        assert audit_log(log, rows="sums").verdict.grade == "safe"
