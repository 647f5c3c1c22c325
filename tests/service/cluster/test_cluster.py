"""A table in shards on Ray answers as one in this process does, through changes and failures."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from nescio.errors import ArgumentError, FileError, ResourceError
from nescio.service._cluster import ClusterOptions, open_table
from nescio.service._cluster import _admin as admin
from nescio.service._cluster._open import array_sources

KILLS = int(os.environ.get("KILLS", "4"))

pytestmark = [pytest.mark.timeout(180), pytest.mark.load]


def test_changes_and_a_second_front(sharded, fresh_rows):
    table = sharded(shards=3, replicas=1, spare=5)
    table.check()
    table.change("update", [1, 30_000, 69_999], fresh_rows(3))
    table.change("append", [70_000, 70_001], fresh_rows(2))
    table.change("clear", [70_000], np.zeros((0, 32), np.uint8))
    table.check(rows=(1, 30_000, 69_999, 70_000, 70_001, 70_004))
    other = table.again()
    try:
        table.check(other, rows=(1, 69_999))
        table.change("update", [7], fresh_rows(1))
        table.check(other, rows=(7, 8))  # asks the head about the version that it has not heard of
        assert other.table.versions[:3] == table.whole.versions[:3]
    finally:
        other.stop()
    with pytest.raises(ArgumentError, match="an insertion or a deletion of a table that is cut"):
        table.change("insert", [0], fresh_rows(1), seconds=0)


def test_queries_to_older_versions_are_answered(sharded, fresh_rows):
    import nescio  # noqa: PLC0415

    table = sharded(replicas=1)
    old = nescio.Client(table.whole.params, table.whole.tops).query([5, 60_000]).keys[0]
    for _ in range(3):
        table.change("update", [5, 60_000], fresh_rows(2))
        assert table.server.answer(old) == table.plain.answer(old)


@pytest.mark.timeout(180 + 20 * KILLS)
def test_lookups_and_changes_go_on_while_replicas_are_killed(sharded, fresh_rows):
    """With two replicas of each shard no lookup fails, no change is lost, no row is wrong."""
    table = sharded(shards=2, replicas=2)
    longest = 0.0
    for kill in range(KILLS):
        table.kill(kill % 2, kill // 2 % 2)
        for _ in range(10):
            begin = time.monotonic()
            table.check()
            longest = max(longest, time.monotonic() - begin)
        table.change("update", [kill, 69_000 + kill], fresh_rows(2))
        table.check(rows=(kill, 69_000 + kill))
        table.wait_up()
    table.check()
    print(f"{KILLS} kills, {11 * KILLS} lookups, {KILLS} changes, longest lookup {longest:.2f} s")


def test_a_single_replica_refuses_until_it_is_back(sharded, fresh_rows):
    table = sharded(shards=2, replicas=1)
    table.change("update", [3, 69_999], fresh_rows(2))
    table.kill(1, 0)
    refused = 0
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            table.check(rows=(3, 69_999))
        except ResourceError:
            refused += 1
            time.sleep(0.05)
            continue
        if refused:
            break
    assert refused
    table.check(rows=(3, 69_999))  # with the change that its file lacks


def test_a_killed_head_loses_no_change(sharded, fresh_rows, ray_cluster):
    table = sharded(shards=2, replicas=1)
    table.change("update", [4, 50_000], fresh_rows(2))
    head = ray_cluster.get_actor(f"{table.name}/head")
    os.kill(ray_cluster.get(head.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
    table.check(rows=(4, 50_000))  # lookups need no head
    table.change("update", [4, 50_001], fresh_rows(2))
    table.check(rows=(4, 50_000, 50_001))


def test_a_table_starts_again_from_its_journal(sharded, fresh_rows):
    table = sharded(shards=2, replicas=1)
    table.change("update", [4, 50_000], fresh_rows(2))
    table.change("update", [69_999], fresh_rows(1))
    table.server.stop()
    admin.drain(table.name)
    table.server = table.again()
    table.check(rows=(4, 50_000, 69_999))
    table.change("update", [1], fresh_rows(1))
    table.check(rows=(1,))


def test_replicas_come_and_go(sharded, fresh_rows):
    table = sharded(shards=2, replicas=1)
    table.change("update", [1], fresh_rows(1))
    failed = []
    stopped = threading.Event()

    def look_up():
        while not stopped.is_set():
            try:
                table.check(rows=(1,))
            except Exception as error:
                failed.append(error)

    thread = threading.Thread(target=look_up)
    thread.start()
    try:
        admin.scale(table.name, 2)
        assert [one.shard for one in admin.status(table.name)] == [0, 0, 1, 1]
        table.wait_up()
        admin.scale(table.name, 1)
    finally:
        stopped.set()
        thread.join()
    assert failed == []
    assert [one.shard for one in admin.status(table.name)] == [0, 1]
    table.check(rows=(1,))


def test_what_is_refused(sharded, tmp_path):
    table = sharded(shards=2, replicas=1)
    with pytest.raises(ArgumentError, match="is not on the cluster, found"):
        admin.status("other")
    options = ClusterOptions(party=0, shards=3, threads=1, data=tmp_path / "data")
    path = tmp_path / "table.npy"
    fields = {"version": "1", "output": "bit", "generator": "chacha20"}
    sources = array_sources(path, options, spare=lambda _: 0, **fields)
    with pytest.raises(ArgumentError, match="found 2 shards on the cluster, expected 3"):
        open_table(table.name, sources, options)
    np.save(path, np.load(path)[::-1])  # other rows than those of the journal
    other = ClusterOptions(party=0, shards=2, threads=1, data=tmp_path / "data")
    table.server.stop()
    admin.drain(table.name)
    sources = array_sources(path, other, spare=lambda _: 0, **fields)
    with pytest.raises(FileError, match="the file of its rows has changed, but its data folder"):
        open_table(table.name, sources, other)
    np.save(path, np.load(path)[::-1])
    table.server = table.again()
    link = tmp_path / "other"
    link.mkdir()
    (link / "second").symlink_to(tmp_path / "data" / table.name)
    options = ClusterOptions(party=0, shards=2, threads=1, data=link)
    with pytest.raises(FileError, match="is in use by another process"):
        open_table("second", sources, options)


def test_shards_on_devices(sharded, fresh_rows):
    """On emulated devices: on GPUs the same kernels run, one card of Ray's a replica."""
    table = sharded(shards=2, replicas=1, devices=("emulated",), rows=1500)
    assert table.server.devices == ("emulated",)
    table.check(rows=(0, 1499))
    table.change("update", [0, 1499], fresh_rows(2))
    table.check(rows=(0, 1499))


def test_devices_that_a_replica_does_not_have():
    with pytest.raises(ArgumentError, match="--device: found cuda:1, expected cuda, cuda:0"):
        ClusterOptions(party=0, devices=("cuda:1",))
