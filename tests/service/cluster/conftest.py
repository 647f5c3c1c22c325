"""A party on a Ray cluster of three nodes of this machine, beside a plain party."""

import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import nescio
from benchmarks.faults.cluster.raylets import Raylets
from nescio.errors import NescioError
from nescio.pir._change import Change, make_change
from nescio.service._cluster import ClusterOptions, connected, open_table
from nescio.service._cluster import _admin as admin
from nescio.service._cluster._open import array_sources

FIELDS = {"version": "1", "output": "bit", "generator": "chacha20"}
ROWS = 70_000


@pytest.fixture(scope="session")
def raylets():
    """The nodes of a cluster, one for all tests; Ray is imported after its settings are made."""
    folder = tempfile.mkdtemp(prefix="nescio-ray-")  # pytest's names are too long for sockets
    nodes = Raylets(Path(folder))
    try:
        yield nodes
    finally:
        nodes.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def ray_cluster(raylets):
    """A connection to the cluster."""
    with connected(raylets.address, 0):
        yield sys.modules["ray"]


class Sharded:
    """A table in shards, and the same table in this process, which gets the same changes."""

    def __init__(self, name, path, options, spare=0):
        self.name, self.options = name, options
        self.sources = array_sources(path, options, spare=lambda _: spare, **FIELDS)
        self.server = open_table(name, self.sources, options)
        self.whole = nescio.Table(np.load(path), spare=spare)
        self.plain = nescio.Server(self.whole, threads=1, party=0)

    def again(self):
        """Opens the table once more, as another front, or as one that starts again does."""
        return open_table(self.name, self.sources, self.options)

    def change(self, operation, indices, rows, seconds=30.0):
        """Makes a change at both, again and again until the head makes it."""
        where = np.asarray(indices, np.uint64)
        change = Change(operation, self.whole.next_version, where, rows)
        message = change.encode(self.whole.params)
        end = time.monotonic() + seconds
        while True:
            try:
                found = make_change(self.server.table, message)
                break
            except NescioError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        assert found == make_change(self.whole, message)

    def check(self, server=None, rows=(0, 12_345, ROWS - 1)):
        """Compares an answer with that of the table in this process, byte for byte."""
        client = nescio.Client(self.whole.params, self.whole.tops)
        query = client.query(rows).keys[0]
        assert (server or self.server).answer(query) == self.plain.answer(query)

    def kill(self, shard, replica):
        """Kills the process of a replica."""
        name = f"{self.name}/shard-{shard}-replica-{replica}"
        found = [one.info for one in admin.status(self.name) if one.name == name]
        os.kill(found[0].pid, signal.SIGKILL)

    def head(self):
        """Returns the actor at the head."""
        return sys.modules["ray"].get_actor(f"{self.name}/head")

    def in_head(self, function):
        """Calls a function of the head's object, in its process."""
        return sys.modules["ray"].get(self.head().__ray_call__.remote(function))

    def pid_of_head(self):
        """Returns the process of the head."""
        return self.in_head(lambda _: os.getpid())

    def kill_head(self, seconds=60.0):
        """Kills the process of the head; returns when Ray has started another one."""
        pid = self.pid_of_head()
        os.kill(pid, signal.SIGKILL)
        self.wait_head(pid, seconds)

    def wait_head(self, pid, seconds=60.0):
        """Waits until the head answers from another process than one that ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(Exception):
                if self.pid_of_head() != pid:
                    return
            time.sleep(0.1)
        raise AssertionError("the head is not back")

    def wait_fronts(self, seconds=60.0):
        """Waits until this front asks a replica of each shard."""
        end = time.monotonic() + seconds
        time.sleep(1.0)  # until those that have ended are left out
        while self.server.shards.missing:
            assert time.monotonic() < end
            time.sleep(0.1)

    def wait_up(self, seconds=60.0):
        """Waits until all replicas answer, at the head and at this front."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            fronts = [one.up for own in self.server.shards.shards for one in own]
            if all(fronts) and all(map(self._is_back, admin.status(self.name))):
                return
            time.sleep(0.1)
        raise AssertionError("a replica is not back")

    def _is_back(self, one):
        """Tests if a replica has all changes; the head may not have missed it yet."""
        return one.up and one.info is not None and one.info.ident == self.whole.params.id

    def end(self):
        self.server.stop()
        admin.drain(self.name)


@pytest.fixture
def sharded(ray_cluster, tmp_path, request):
    """Makes tables in shards, which end with the test."""
    del ray_cluster
    made = []

    def make(*, shards=2, replicas=2, spare=0, data=True, rows=ROWS, devices=(), **more):
        path = Path(tmp_path, "table.npy")
        if not path.exists():
            values = np.random.default_rng(3).integers(256, size=(rows, 32), dtype=np.uint8)
            np.save(path, values)
        folder = tmp_path / "data" if data else None
        options = ClusterOptions(
            party=0, shards=shards, replicas=replicas, threads=1, data=folder, devices=devices,
            **more,
        )  # fmt: skip
        name = f"{request.node.name[:40]}-{len(made)}".replace("[", "-").replace("]", "")
        made.append(Sharded(name, path, options, spare))
        if replicas > 1:  # a table is opened when one of each shard is up
            made[-1].wait_up()
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture
def fresh_rows():
    """Returns random rows."""
    random = np.random.default_rng()
    return lambda count: random.integers(256, size=(count, 32), dtype=np.uint8)
