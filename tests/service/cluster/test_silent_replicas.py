"""Replicas that hang are left out; replicas that compute for long are waited for."""

import contextlib
import os
import signal
import time

import pytest

from nescio.errors import ResourceError
from nescio.service._cluster import _admin as admin

pytestmark = [pytest.mark.timeout(180), pytest.mark.load, pytest.mark.cluster]

SLOW_SECONDS = 2.5  # longer than a replica may be silent
THREADS = 8  # of a shard's actor


@contextlib.contextmanager
def stopped(table, replica=0):
    pid = admin.status(table.name)[replica].info.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def slow_down(ray, actor):
    """Lets a shard sleep before each of its answers, as one does that reads a disk."""

    def patch(shard, seconds):
        answer = shard._server.answer_parts

        def slowly(queries):
            time.sleep(seconds)
            return answer(queries)

        shard._server.answer_parts = slowly

    ray.get(actor.__ray_call__.remote(patch, SLOW_SECONDS))


def test_a_stopped_replica_is_left_out_and_changes_go_on(sharded, fresh_rows):
    table = sharded(shards=2, replicas=2)
    with stopped(table):
        longest = 0.0
        for _ in range(8):
            begin = time.monotonic()
            table.check()
            longest = max(longest, time.monotonic() - begin)
        assert longest < 4.0  # 1.3 s on a quiet machine
        table.change("update", [9], fresh_rows(1))
        table.check(rows=(9,))
    table.wait_up()
    table.check(rows=(9,))


def test_a_single_replica_that_is_stopped_is_refused(sharded, monkeypatch):
    monkeypatch.setattr("nescio.service._cluster._asking._ALONE_SECONDS", 1.0)
    table = sharded(shards=2, replicas=1)
    with stopped(table), pytest.raises(ResourceError, match="shard 0 has no replica that answers"):
        table.check()
    table.wait_up()
    table.check()


def test_a_slow_replica_is_waited_for(sharded, ray_cluster):
    """Also if all threads of its actor compute: pings have one of their own."""
    table = sharded(shards=1, replicas=2)
    for replica in table.server.shards.shards[0]:
        slow_down(ray_cluster, replica.actor)
    others = [
        replica.actor.answer.remote([])
        for replica in table.server.shards.shards[0]
        for _ in range(THREADS)
    ]
    begin = time.monotonic()
    table.check()
    assert time.monotonic() - begin > 2 * SLOW_SECONDS  # after one of those, with its own sleep
    assert all(one.up for one in table.server.shards.shards[0])
    ray_cluster.get(others)


def test_a_replica_without_the_changes_is_not_asked(sharded, fresh_rows):
    """One that was started again, at a front that has not asked it meanwhile."""
    table = sharded(shards=1, replicas=1)
    table.change("update", [3], fresh_rows(1))
    table.server.table.stop()
    pid = admin.status(table.name)[0].info.pid
    head = table.head()
    ray = table.server.table._ray
    ray.kill(head)  # nobody sends the shard the change again
    os.kill(pid, signal.SIGKILL)
    actor = table.server.shards.shards[0][0].actor
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            assert ray.get(actor.info.remote()).fresh
            break
        except ray.exceptions.RayActorError:
            time.sleep(0.1)
    with pytest.raises(ResourceError, match="no replica that answers"):
        table.check(rows=(3,))
    table.server.stop()
    table.server = table.again()  # with a head that sends it the change
    table.check(rows=(3,))
