"""The rolling restart of a table in shards, and releases that do not understand each other."""

import json
import subprocess
import sys
import threading

import pytest

from nescio.errors import ArgumentError, ResourceError
from nescio.service._batcher import Waited
from nescio.service._cluster import _admin as admin
from nescio.service._cluster._restart import restart

pytestmark = [pytest.mark.timeout(300), pytest.mark.load, pytest.mark.cluster]


def pids(table):
    """Returns the processes of the head and of all replicas."""
    return {one.info.pid for one in admin.status(table.name)} | {table.pid_of_head()}


class Lookups:
    """Looks up rows in a thread, and notes errors."""

    def __init__(self, table, rows):
        self._table, self._rows = table, rows
        self.failed, self.done = [], 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    def _run(self):
        while not self._stopped.is_set():
            try:
                self._table.check(rows=self._rows)
                self.done += 1
            except Exception as error:
                self.failed.append(error)


def test_no_lookup_fails_while_all_actors_are_restarted(sharded, fresh_rows):
    table = sharded(shards=2, replicas=2)
    table.server.table.report(lambda: Waited(0, 0.0))
    table.change("update", [1, 60_000], fresh_rows(2))
    table.wait_up()
    before, said = pids(table), []
    with Lookups(table, (1, 60_000)) as lookups:
        restart(table.name, say=said.append)
    assert lookups.failed == []
    assert lookups.done > 10
    assert len(said) == 5  # the head and four replicas
    assert not before & pids(table)
    found = admin.status(table.name)
    assert [(one.shard, one.up) for one in found] == [(0, True), (0, True), (1, True), (1, True)]
    table.change("update", [1, 60_001], fresh_rows(2))
    table.check(rows=(1, 60_000, 60_001))


def test_a_single_replica_is_restarted_only_by_force(sharded, fresh_rows):
    table = sharded(shards=1, replicas=1)
    table.change("update", [1], fresh_rows(1))
    before = pids(table)
    with pytest.raises(ArgumentError, match="has a single replica: lookups are refused"):
        restart(table.name)
    assert pids(table) == before
    restart(table.name, force=True, say=lambda _: None)
    table.wait_up()
    assert not before & pids(table)
    table.check(rows=(1,))


def test_a_front_of_another_protocol_is_refused(sharded, monkeypatch):
    table = sharded(shards=1, replicas=1)
    monkeypatch.setattr("nescio.service._cluster._front.PROTOCOL", 99)
    with pytest.raises(ResourceError, match="has protocol 1, this front has 99: run one release"):
        table.again()
    monkeypatch.undo()
    table.check()


def test_a_head_leaves_out_replicas_of_another_protocol(sharded):
    table = sharded(shards=1, replicas=2)

    def patch(_):
        from nescio.service._cluster import _head_replicas  # noqa: PLC0415

        _head_replicas.PROTOCOL = 99

    table.wait_up()
    table.in_head(patch)
    name = next(one.name for one in admin.status(table.name))
    table.kill(0, 0)
    table.check()
    for _ in range(20):
        assert not {one.name: one.up for one in admin.status(table.name)}[name]


def test_the_commands(sharded, raylets, fresh_rows):
    table = sharded(shards=1, replicas=1)
    table.change("update", [1], fresh_rows(1))

    def run(action, *options):
        arguments = ["cluster", action, "--cluster", raylets.address, "--party", "0", *options]
        return subprocess.run(
            [sys.executable, "-m", "nescio", *arguments],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    done = run("checkpoint", "--table", table.name)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the journal after them has 0 changes" in done.stdout
    refused = run("restart", "--table", table.name)
    assert refused.returncode != 0
    assert "has a single replica: lookups are refused while it restarts" in refused.stderr
    done = run("restart", "--force", "--table", table.name)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"the head of {table.name} is back",
        f"{table.name}/shard-0-replica-1 is in the place of {table.name}/shard-0-replica-0",
    ]
    shown = run("status", "--json", "--table", table.name)
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["state"] == "up"
    table.wait_fronts()
    table.check(rows=(1,))
