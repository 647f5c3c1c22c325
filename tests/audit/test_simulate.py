"""Simulated runs, defenses, sweeps and their curves."""

import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from nescio.audit._simulate.defenses import DEFENSES, Defense
from nescio.audit._simulate.runs import Outcome, Setting, attack_simulated, simulate
from nescio.audit._simulate.sweep import Case, Sweep, noise_to_break, plot, rounds_to_break, sweep
from nescio.errors import ArgumentError

SMALL = Setting(users=16, rounds=96, dimensions=300)
STRENGTHS = {
    "update-noise": ":0.5",
    "sum-noise": ":0.5",
    "count-noise": ":1",
    "coarse-counts": ":3",
    "hidden-counts": ":0.5",
    "batched": ":4",
    "subset": ":0.5",
}
ALL = [Defense.parse(name + STRENGTHS.get(name, "")) for name in DEFENSES]


def test_sums_are_of_those_who_took_part():
    run = simulate(SMALL, 3)
    np.testing.assert_allclose(run.log.aggregates, run.participation @ run.updates)
    assert (run.log.participants == run.participation.sum(axis=1)).all()
    for i, (start, stop) in enumerate(run.log.windows):
        assert (run.log.counts[:, i] == run.participation[start:stop].sum(axis=0)).all()


@pytest.mark.parametrize("defense", ALL, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_as_far_off_as_the_log_says(defense, seed):
    """Log rejects counts that contradict the participants; the truth must be allowed."""
    run = simulate(replace(SMALL, defense=defense, granularity=7), seed)
    log = run.log
    if log.counts is None:
        assert defense.name == "no-counts"
        return
    for i, (start, stop) in enumerate(log.windows):
        true = run.participation[start:stop].sum(axis=0)
        known = log.counts[:, i] >= 0
        assert (np.abs(log.counts[:, i] - true)[known] <= log.count_error).all()
        assert known.all() == (defense.name != "hidden-counts") or known.any()


@pytest.mark.parametrize(
    ("text", "variance"),
    [("update-noise:0.5", 0.25), ("subset:0.5", 1.0), ("none", 0.0)],
)
def test_noise_has_the_size_it_says(text, variance):
    run = simulate(replace(SMALL, defense=Defense.parse(text), dimensions=4000))
    off = run.log.aggregates - run.participation @ run.updates
    some = run.log.participants > 0
    per_update = off[some].var(axis=1) / run.log.participants[some]
    assert per_update == pytest.approx(np.full(some.sum(), variance), rel=0.2, abs=1e-20)


def test_noise_of_a_sum_is_added_once():
    run = simulate(replace(SMALL, defense=Defense.parse("sum-noise:2"), dimensions=4000))
    off = run.log.aggregates - run.participation @ run.updates
    assert off[run.log.participants > 0].std(axis=1) == pytest.approx(2.0, rel=0.1)


def test_a_group_takes_part_together():
    run = simulate(replace(SMALL, defense=Defense.parse("batched:4")))
    columns = run.participation.reshape(96, 4, 4)
    assert (columns == columns[:, :, :1]).all()


def test_a_moving_model_adds_the_same_to_all():
    still, moving = simulate(SMALL), simulate(replace(SMALL, step=0.2))
    shared = moving.log.aggregates - moving.participation @ moving.updates
    assert (still.participation == moving.participation).all()
    together = moving.log.participants
    size = np.linalg.norm(shared / np.maximum(together, 1)[:, None], axis=1)[together > 0]
    assert size[-20:].mean() < 0.6 * size[0]


def test_the_attack_recovers_what_is_undefended():
    found = attack_simulated(SMALL)
    assert (found.recovered, found.unique, found.wrong) == (1.0, 1.0, 0.0)
    assert found.error < 1e-9


def test_the_attack_is_judged_by_the_truth():
    """The attack recovers no single user of a group, whatever columns it finds."""
    found = attack_simulated(replace(SMALL, defense=Defense.parse("batched:4")), time_limit=1)
    assert (found.recovered, found.unique, found.wrong) == (0.0, 0.0, 0.0)
    assert found.error is None


def test_columns_without_names_are_matched():
    found = attack_simulated(replace(SMALL, users=8, defense=Defense.parse("no-counts")))
    assert found.recovered == 1.0
    assert found.wrong == 0.0


def test_noise_drowns_it():
    assert attack_simulated(replace(SMALL, noise=50.0), time_limit=1).recovered < 0.2


@pytest.mark.parametrize("defense", ALL, ids=str)
def test_a_defense_reads_what_it_writes(defense):
    assert Defense.parse(str(defense)) == defense


@pytest.mark.parametrize(
    "text",
    [
        *("nothing", "none:1", "update-noise", "update-noise:", "update-noise:x", "subset:2"),
        *("batched:1.5", "count-noise:0", "sum-noise:nan", "sum-noise:inf", "hidden-counts:-1"),
    ],
)
def test_invalid_defenses_are_rejected(text):
    with pytest.raises(ArgumentError, match="expected"):
        Defense.parse(text)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"users": 1}, {"rounds": 0}, {"participation": 0.0}, {"participation": 1.0}),
        *({"noise": -1.0}, {"noise": math.nan}, {"step": 2.0}, {"granularity": 0}),
    ],
)
def test_settings_that_cannot_be(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        Setting(**wrong)


def test_a_sweep_stops_at_the_rounds_that_break():
    plan = Sweep(users=(5,), rounds=(60, 8, 90), participation=(0.2,), dimensions=60, trials=2)
    cases = list(sweep(plan, method="reflect"))
    rounds = [case.setting.rounds for case in cases]
    assert rounds == sorted(rounds)
    assert cases[-1].broken(1.0)
    assert not any(case.broken(1.0) for case in cases[:-1])


def test_settings_that_the_attack_refuses_are_told():
    (case,) = sweep(Sweep(users=(16,), rounds=(10,)))
    assert case.outcomes == ()
    assert "rounds" in case.skipped
    assert case.as_json()["recovered"] is None


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"share": 0.0}, {"noise": (-1.0,)}])
def test_sweeps_that_cannot_be(wrong):
    with pytest.raises(ArgumentError):
        Sweep(**wrong)


def cases_of(table, users=8):
    """Cases made by hand: {(noise, rounds): recovered}."""
    return [
        Case(
            Setting(users=users, rounds=rounds, noise=noise),
            (Outcome(share, 0.0, 0.0, None, 1.0),),
        )
        for (noise, rounds), share in table.items()
    ]


def test_curves():
    cases = cases_of({(0.0, 10): 0.5, (0.0, 20): 1.0, (1.0, 10): 0.0, (1.0, 20): 0.4})
    cases += cases_of({(1.0, 40): 1.0, (3.0, 40): 0.0})
    (by_noise,) = rounds_to_break(cases, 1.0)
    assert (by_noise.over, by_noise.x, by_noise.y) == ("noise", (0.0, 1.0, 3.0), (20, 40, None))
    (by_rounds,) = noise_to_break(cases, 1.0)
    assert (by_rounds.over, by_rounds.x, by_rounds.y) == ("rounds", (10, 20, 40), (None, 0.0, 1.0))
    ET.fromstring(plot([by_noise], "rounds to break"))
    ET.fromstring(plot([by_rounds], "noise to break"))


def test_curves_are_apart_by_what_differs():
    table = {(0.0, 10): 1.0}
    curves = rounds_to_break(cases_of(table, 8) + cases_of(table, 16), 1.0)
    assert [(c.over, c.x) for c in curves] == [("users", (8, 16))]
    assert noise_to_break(cases_of(table), 1.0) == []
