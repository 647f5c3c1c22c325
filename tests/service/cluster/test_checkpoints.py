"""Checkpoints of a table in shards: no change is lost and no row is wrong, whatever is killed."""

import os
import random
import signal
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from nescio.errors import NescioError
from nescio.service._cluster import _admin as admin

KILLS = int(os.environ.get("KILLS", "4"))

pytestmark = [pytest.mark.timeout(180), pytest.mark.load]


def journals(table):
    """Returns the names and lengths of the journals of a table."""
    folder = table.options.data / table.name
    return {path.name: path.stat().st_size for path in folder.glob("journal*")}


def files(table):
    """Returns the names in the data folder of a table."""
    return sorted(path.name for path in (table.options.data / table.name).iterdir())


def restart_all(table):
    """Ends all actors of a table, and starts it again."""
    table.server.stop()
    admin.drain(table.name)
    table.server = table.again()


def test_shards_and_head_start_from_a_checkpoint(sharded, fresh_rows, tmp_path):
    table = sharded(shards=2, replicas=1, spare=4)
    for number in range(5):
        table.change("update", [number, 69_000 + number], fresh_rows(2))
    table.change("append", [70_001], fresh_rows(1))
    before = journals(table)["journal"]
    state = admin.checkpoint(table.name)
    assert state.changes == state.journal_bytes == 0
    assert sum(journals(table).values()) < before / 2
    assert files(table) == ["base", "journal-2", "lock", "shard-0-2", "shard-1-2"]
    np.save(tmp_path / "table.npy", np.load(tmp_path / "table.npy")[::-1])  # is not read again
    table.change("update", [1, 69_001], fresh_rows(2))
    table.kill(1, 0)
    table.wait_up()
    rows = (0, 1, 2, 4, 69_000, 69_001, 69_004, 70_001, 70_002)
    table.check(rows=rows)
    table.kill_head()
    table.change("append", [70_000], fresh_rows(1))
    assert admin.checkpoint_state(table.name).changes == 2
    restart_all(table)
    table.check(rows=(*rows, 70_000))
    admin.checkpoint(table.name)
    assert files(table) == ["base", "journal-3", "lock", "shard-0-3", "shard-1-3"]
    restart_all(table)
    table.check(rows=(*rows, 70_000))


@pytest.mark.cluster
def test_a_long_journal_begins_a_checkpoint(sharded, fresh_rows):
    table = sharded(shards=2, replicas=2, max_journal=4096)
    longest = 0
    for number in range(30):
        table.change("update", [number], fresh_rows(1))
        longest = max(longest, sum(journals(table).values()))
        table.check(rows=(number,))
    end = time.monotonic() + 30
    while admin.checkpoint_state(table.name).active and time.monotonic() < end:
        time.sleep(0.1)
    state = admin.checkpoint_state(table.name)
    assert state.taken >= 1
    assert state.failed == 0
    assert state.changes < 30
    assert sum(journals(table).values()) < longest
    table.kill(0, 0)
    table.kill(1, 1)
    table.wait_up()
    for _ in range(4):  # of both replicas
        table.check(rows=range(0, 30, 3))


_INSTANTS = [
    ("_checkpoint.Checkpoints", "_freeze", "after"),
    ("_journal.HeadJournal", "advance", "after"),
    ("_checkpoint.Checkpoints", "_write", "during"),
    ("_journal", "store_base", "before"),
    ("_journal", "store_base", "after"),
    ("_journal", "clean", "before"),
]


def kill_head_at(table, place, name, when):
    """Lets the head kill itself at a function of its next checkpoint."""

    def patch(_):
        import importlib  # noqa: PLC0415
        import threading  # noqa: PLC0415

        module, _, kind = place.partition(".")
        owner = importlib.import_module(f"nescio.service._cluster.{module}")
        owner = getattr(owner, kind) if kind else owner
        real = getattr(owner, name)

        def end():
            os.kill(os.getpid(), signal.SIGKILL)

        def killing(*arguments):
            if when == "before":
                end()
            if when == "during":
                threading.Timer(0.02, end).start()
            found = real(*arguments)
            end()
            return found

        setattr(owner, name, killing)

    table.in_head(patch)


@pytest.mark.cluster
@pytest.mark.parametrize(("place", "name", "when"), _INSTANTS)
def test_a_head_that_is_killed_during_a_checkpoint(sharded, fresh_rows, place, name, when):
    table = sharded(shards=2, replicas=1)
    for number in range(3):
        table.change("update", [number, 69_000 + number], fresh_rows(2))
    pid = table.pid_of_head()
    kill_head_at(table, place, name, when)
    with suppress(NescioError):
        admin.checkpoint(table.name, seconds=30)
    table.wait_head(pid)
    done = (when == "after" and name == "store_base") or name == "clean"
    assert admin.checkpoint_state(table.name).changes == (0 if done else 3)
    assert "shard-0-2" in files(table) or not done
    rows = [0, 1, 2, 3, 69_000, 69_001, 69_002]
    table.check(rows=rows)
    table.change("update", [1, 3], fresh_rows(2))
    table.check(rows=rows)
    restart_all(table)
    table.check(rows=rows)
    admin.checkpoint(table.name)  # works now, whatever was left
    assert len(files(table)) == 5
    table.change("update", [2], fresh_rows(1))
    restart_all(table)
    table.check(rows=rows)


def slow_writes(table, seconds):
    """Lets the shards wait some seconds within the writing of a file."""
    ray = sys.modules["ray"]

    def patch(_):
        from nescio.service._cluster import _shard  # noqa: PLC0415

        real = _shard.write_frozen

        def slow(path, frozen, pause):
            def wait():
                time.sleep(seconds)
                pause()

            real(path, frozen, wait)

        _shard.write_frozen = slow

    for one in admin.status(table.name):
        ray.get(ray.get_actor(one.name).__ray_call__.remote(patch))


@pytest.mark.cluster
def test_changes_and_lookups_during_a_checkpoint(sharded, fresh_rows):
    table = sharded(shards=2, replicas=1)
    slow_writes(table, 0.5)
    table.change("update", [5, 60_000], fresh_rows(2))
    ray = sys.modules["ray"]
    ray.get(table.head().begin_checkpoint.remote())
    made = 0
    while admin.checkpoint_state(table.name).active:
        table.change("update", [5, 1000 + made, 60_000 + made], fresh_rows(3))
        table.check(rows=(5, 1000 + made, 60_000 + made))
        made += 1
    assert made > 3
    state = admin.checkpoint_state(table.name)
    assert (state.taken, state.changes) == (1, made)
    rows = [5, *range(1000, 1000 + made), *range(60_000, 60_000 + made)]
    for shard in (0, 1):
        table.kill(shard, 0)
    table.wait_up()
    table.check(rows=rows)
    restart_all(table)
    table.check(rows=rows)


@pytest.mark.cluster
def test_a_checkpoint_that_was_not_completed_is_ignored(sharded, fresh_rows):
    """All actors are killed while files are written; files that look complete are there too."""
    table = sharded(shards=2, replicas=1)
    table.change("update", [5, 60_000], fresh_rows(2))
    slow_writes(table, 5)
    ray = sys.modules["ray"]
    ray.get(table.head().begin_checkpoint.remote())
    table.change("update", [6, 60_001], fresh_rows(2))  # to the new journal
    folder = table.options.data / table.name
    assert "journal-2" in files(table)
    table.server.stop()
    pids = [one.info.pid for one in admin.status(table.name)]
    for pid in [table.pid_of_head(), *pids]:
        os.kill(pid, signal.SIGKILL)
    (folder / "shard-0-2").write_bytes(b"torn")
    (folder / "shard-1-2.1234").write_bytes(b"torn")
    table.server = table.again()
    table.check(rows=(5, 6, 60_000, 60_001))
    assert files(table) == ["base", "journal", "journal-2", "lock"]
    admin.checkpoint(table.name)
    restart_all(table)
    table.check(rows=(5, 6, 60_000, 60_001))


@pytest.mark.cluster
@pytest.mark.timeout(180 + 40 * KILLS)
def test_random_kills(sharded, fresh_rows):
    """Head or shards are killed at random while changes and checkpoints go on."""
    table = sharded(shards=2, replicas=2, max_journal=1024)
    chance = random.Random(7)
    rows = set()
    for kill in range(KILLS):
        for _ in range(chance.randrange(2, 8)):
            row = chance.randrange(70_000)
            rows.add(row)
            table.change("update", [row], fresh_rows(1), seconds=60)
        if kill % 2:
            table.kill_head()
        else:
            table.kill(chance.randrange(2), kill // 2 % 2)
        table.check(rows=sorted(rows)[:40])
        table.wait_up()
    restart_all(table)
    table.check(rows=sorted(rows)[:60])
