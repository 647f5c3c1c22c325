"""Replicas of a table in shards come and go with the queue time that fronts report."""

import sys
import time
from dataclasses import replace

import pytest

from nescio.service._batcher import Waited
from nescio.service._cluster import _admin as admin

pytestmark = [pytest.mark.timeout(300), pytest.mark.load, pytest.mark.cluster]


def wait_for_states(table, expected, seconds=90.0):
    """Waits until the replicas of all shards have these states."""
    end = time.monotonic() + seconds
    while (found := [one.state for one in admin.status(table.name)]) != expected:
        assert time.monotonic() < end, found
        time.sleep(0.1)


def test_a_replica_comes_with_long_waits_and_goes_with_short_ones(sharded, fresh_rows):
    table = sharded(shards=2, replicas=1, max_replicas=2, queue_seconds=0.05)

    def patch(head):
        head._scaler.policy = replace(head._scaler.policy, down_seconds=3.0, rest_seconds=0.0)

    table.in_head(patch)
    waits = [Waited(10, 5.0)]
    table.server.table.report(lambda: waits[0])
    table.change("update", [1, 60_000], fresh_rows(2))
    wait_for_states(table, ["up"] * 4)
    table.wait_up()
    assert table.server.lanes == 3
    for _ in range(4):
        table.check(rows=(1, 60_000))
    table.kill_head()
    table.change("update", [2], fresh_rows(1))
    assert len(admin.status(table.name)) == 4  # the head that is back has found them
    table.in_head(patch)
    waits[0] = Waited(10, 0.0)
    wait_for_states(table, ["up"] * 2)
    table.check(rows=(1, 2, 60_000))


def test_a_replica_that_finds_no_memory_breaks_nothing(sharded, fresh_rows):
    table = sharded(shards=2, replicas=1)

    def patch(_):
        from nescio.service._cluster import _shard  # noqa: PLC0415

        _shard._OVERHEAD_BYTES = 1 << 50

    table.in_head(patch)
    admin.scale(table.name, 2)
    wait_for_states(table, ["up", "waiting"] * 2)
    assert [one.needed for one in admin.status(table.name)] == [True, False] * 2
    ray = sys.modules["ray"]
    for number in range(3):
        table.change("update", [number, 60_000], fresh_rows(2))
        table.check(rows=(number, 60_000))
    begin = time.monotonic()
    table.kill(0, 0)  # is found, and is back, in spite of those that wait
    table.wait_fronts()
    table.check(rows=(1, 60_000))
    print(f"back in {time.monotonic() - begin:.1f} s")
    admin.scale(table.name, 1)
    wait_for_states(table, ["up"] * 2)
    assert len(ray.get(table.head().state.remote()).names[0]) == 1
