"""The number of replicas by queue time, without Ray: when one is added, ended, or neither."""

import itertools

import pytest

from nescio.service._cluster._autoscale import WINDOW_SECONDS, Autoscaler, Policy, Queues, Report

POLICY = Policy(least=1, most=3, target=0.1)


def run(queues, *, replicas=1, starting=0, scaler=None, begin=0.0):
    """Gives a queue time each second; returns the replicas after each."""
    scaler = scaler or Autoscaler(POLICY)
    found = []
    for second, queue in enumerate(queues):
        replicas = scaler.wanted(begin + second, queue, replicas, starting)
        found.append(replicas)
    return found


def test_a_replica_is_added_after_some_seconds_above_the_target():
    assert run([0.2] * 6) == [1, 1, 1, 1, 1, 2]


def test_a_short_peak_adds_none():
    assert set(run(([0.5] * 5 + [0.05]) * 20)) == {1}


def test_after_one_is_added_it_has_time_to_help():
    found = run([0.2] * 80)
    assert [found.index(count) for count in (2, 3)] == [5, 35]
    assert max(found) == POLICY.most


def test_none_is_added_while_another_one_starts():
    assert set(run([9.0] * 600, starting=2)) == {1}


def test_a_replica_is_ended_after_minutes_below_a_fraction_of_the_target():
    found = run([0.0] * 700, replicas=3)
    assert found[299] == 3
    assert found[300] == 2
    assert found.index(1) == 601
    assert found[-1] == POLICY.least


def test_one_that_never_came_up_is_ended_too():
    assert run([0.0] * 301, replicas=2, starting=1)[-1] == 1


@pytest.mark.parametrize("queue", [0.026, 0.1, None])
def test_between_the_limits_nothing_changes(queue):
    """Also if no front reports: nobody knows then what a replica would help."""
    assert set(run([queue] * 1000, replicas=2)) == {2}


def test_a_load_that_changes_does_not_make_replicas_come_and_go():
    """Each minute, 20 seconds above the target, 40 of nothing: one comes, none ends."""
    found = run(([0.3] * 20 + [0.0] * 40) * 30)
    changes = [b - a for a, b in itertools.pairwise(found) if a != b]
    assert changes == [1, 1]


def test_replicas_that_a_person_set_stay():
    assert set(run([9.0] * 100, replicas=5)) == {5}
    assert set(run([0.0] * 250, replicas=5)) == {5}


def test_queue_times_are_those_of_all_fronts_together():
    queues = Queues()
    assert queues.seconds(0.0) is None
    queues.add(1.0, "a", Report(0, 0.0))
    assert queues.seconds(1.0) == 0.0
    queues.add(1.5, "a", Report(30, 3.0))
    queues.add(1.5, "b", Report(10, 5.0))
    assert queues.seconds(2.0) == pytest.approx(8.0 / 40)
    assert queues.seconds(1.5 + WINDOW_SECONDS) == pytest.approx(8.0 / 40)
    assert queues.seconds(1.6 + WINDOW_SECONDS) is None


def test_a_replica_is_asked_by_all_if_each_latest_report_has_it():
    queues = Queues()
    assert queues.all_ask(0.0, "x")  # there is no front
    queues.add(1.0, "a", Report(0, 0.0, ["x"]))
    queues.add(1.0, "b", Report(0, 0.0, ["y"]))
    assert not queues.all_ask(1.0, "x")
    queues.add(2.0, "b", Report(0, 0.0, ["x", "y"]))
    assert queues.all_ask(2.0, "x")
