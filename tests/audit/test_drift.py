"""The measure of drift from sums, and the remedies for it."""

import numpy as np
import pytest

from audit.records import Run
from nescio import audit
from nescio.audit._log import drift, remedies


def drifting(change, users=20, rounds=80, seed=0, still_from=None):
    """A run whose updates turn from one to another, over the whole run or until a round."""
    run = Run(users, rounds, 600, rate=0.2, seed=seed)
    other = np.random.default_rng(seed + 1).standard_normal(run.updates.shape)
    last = still_from or rounds
    angle = change * np.minimum(np.arange(rounds), last) / last * np.pi / 2
    sums = run.participation @ run.updates * np.cos(angle)[:, None]
    run.aggregates = sums + run.participation @ other * np.sin(angle)[:, None]
    return run, audit.Log(run.aggregates, users, run.windows, run.counts, run.participants)


def test_constant_updates_show_no_drift():
    _, log = drifting(0)
    found = drift.measure(log)
    assert found.small
    assert found.change == 0
    assert found.tail < 1e-12
    assert np.isfinite(found.trend).all()
    assert "as the attack assumes" in found.words


@pytest.mark.parametrize("noise", [0.01, 1.0, 1000.0])
def test_noise_is_no_drift(noise):
    """Noise of any size has no drift."""
    for seed in range(4):
        run = Run(20, 80, 200, rate=0.2, noise=noise, seed=seed)
        log = audit.Log(run.aggregates, 20, run.windows, run.counts, run.participants)
        assert drift.measure(log).change < 0.15
    assert drift.measure(log).half_life == np.inf


@pytest.mark.parametrize("change", [0.05, 0.4, 1])
def test_change_is_seen_however_small(change):
    found = drift.measure(drifting(change)[1])
    assert not found.small
    assert found.change > 0.5
    assert "drift as the model learns" in found.words


def test_more_drift_shows_as_more():
    found = [drift.measure(drifting(change)[1]).tail for change in (0, 0.4, 1)]
    assert found[0] < found[1] < found[2]


def test_too_few_rounds_do_not_tell():
    found = drift.measure(drifting(1, users=20, rounds=22)[1])
    assert np.isnan(found.change)
    assert found.small
    assert "too few rounds" in found.words


def test_rescaling_undoes_a_trend():
    run = Run(30, 100, 300, rate=0.2, seed=3)
    size = np.exp(-np.arange(100) / 40)[:, None]
    log = audit.Log(run.aggregates * size, 30, run.windows, run.counts, run.participants)
    assert drift.measure(log).trend[3] < 0.1
    again = remedies.rescaled(log)
    assert drift.measure(again).trend[3] > 0.5


def test_a_still_stretch_is_found_and_broken():
    run, log = drifting(1, rounds=120, still_from=60, seed=4)
    assert remedies.slowest(log, 50) >= 40
    part = remedies.cut(log, 60, 120)
    result = audit.solve(part, method="reflect")
    assert (result.participation == run.participation[60:]).all()
    assert not audit.solve(log, method="reflect", time_limit=5).unique.any()


def test_remedies_keep_the_windows():
    _, log = drifting(0.5, rounds=125)
    found = remedies.remedies(log)
    assert [one.log.rounds for one in found] == [125, 75, 60, 40]
    for one in found:
        assert one.log.windows[0][0] == 0
        assert one.log.windows[-1][1] == one.log.rounds
        assert one.log.counts.shape[1] == len(one.log.windows)
        assert one.name
    assert "without the first 50 rounds" in [one.name for one in found]


def test_a_short_log_is_not_made_shorter():
    assert [one.log.rounds for one in remedies.remedies(drifting(0.5, rounds=24)[1])] == [24]


def test_cutting_too_much_is_refused():
    _, log = drifting(0.5)
    with pytest.raises(ValueError, match="more rounds than users"):
        remedies.cut(log, 0, 10)
