"""Two parties that prepare on Ray clusters of their own, also when workers are killed."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from examples.cluster.main import command_line
from examples.cluster.preparing import parts_of, remove_broken
from examples.cluster.sample import write_sample
from examples.cluster.totals import transfers_of
from mpc.layers import relu, weights
from nescio.mpc import (
    Activation,
    Dense,
    Layer,
    Network,
    Plan,
    PlanServer,
    PublicPlan,
    RemotePlan,
    Term,
    prepare,
)
from nescio.net import Channel
from nescio.ot import Sender

pytest.importorskip("ray")

ROOT = Path(__file__).parents[2]
MAIN = ROOT / "examples" / "cluster" / "main.py"
SECONDS = 150


class Party:
    """A party's program in a process of its own, with a cluster of its own."""

    def __init__(self, folder, *words):
        self._log = folder / f"{words[0]}.log"
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, MAIN, *map(str, words), "--json"],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=clean,
            )

    @property
    def text(self):
        return self._log.read_text()

    def end(self, seconds=SECONDS):
        """Waits for the end; returns the totals."""
        assert self.process.wait(seconds) == 0, self.text
        return json.loads(self.text.splitlines()[-1])


def free_port(count):
    """Returns the first of some ports in a row that are free."""
    for port in range(21000 + os.getpid() % 9000, 32000, count):
        try:
            for number in range(count):
                socket.create_server(("127.0.0.1", port + number)).close()
        except OSError:
            continue
        return port
    raise AssertionError("no free ports")


def descendants(process):
    """Yields the processes below one, and the titles that Ray gives them."""
    parents = {}
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            title = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
            parents[int(entry.name)] = int(fields[1]), title
        except (OSError, ValueError, IndexError):
            continue
    for number, (_, title) in parents.items():
        above = number
        while above > 1 and above != process:
            above, _ = parents.get(above, (0, ""))
        if above == process and number != process:
            yield number, title


def kill_worker(party, title, ready):
    """Kills a worker of a party's cluster as soon as `ready` is true."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and party.process.poll() is None:
        found = [number for number, name in descendants(party.process.pid) if title in name]
        if found and ready():
            os.kill(found[0], signal.SIGKILL)
            return
        time.sleep(0.02)
    raise AssertionError(f"no worker {title!r} was found: {party.text}")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The stores of both parties, of which a worker of each was killed at its work."""
    folder = tmp_path_factory.mktemp("cluster")
    files = ("--plan", folder / "m.plan", "--public", folder / "m.public")
    write_sample(command_line().parse_args(["sample", *map(str, files), "--side", "12"]))
    ports = ("--port", free_port(2), "--workers", 2)
    server = Party(folder, "serve", *files[:2], "--stores", "stores", *ports)
    client = Party(
        folder,
        "prepare",
        "127.0.0.1",
        *files[2:],
        "--store",
        "c",
        "--count",
        60,
        "--part",
        15,
        *ports,
    )
    try:
        works = [folder / "stores" / f"worker-{number}" for number in range(2)]
        busy = lambda: all(any(work.glob("*.part")) for work in works)  # noqa: E731
        kill_worker(server, "PlanWorker", busy)  # both work, so a part of the client is lost
        again = lambda: "begins again" in client.text and any(folder.glob("c*.part"))  # noqa: E731
        kill_worker(client, "prepare_part", again)
        asking = client.end()
        time.sleep(1)  # until the workers were asked for the last parts
        server.process.terminate()
        serving = server.end()
    finally:
        for party in (server, client):
            party.process.kill()
            party.process.wait()
    return folder, asking, serving, client.text, server.text


@pytest.mark.slow
@pytest.mark.cluster
def test_killed_workers_are_replaced_and_their_parts_prepared_anew(prepared):
    folder, asking, serving, client, server = prepared
    assert asking["inferences"] == 60
    assert asking["again"] >= 2
    assert "begins again" in client
    assert re.search(r"worker [01] was lost and has started again", server)
    assert serving["inferences"] >= 15  # those of a killed worker are not counted
    assert sorted(path.name for path in folder.glob("c*")) == ["c", "c.2", "c.3", "c.4"]
    assert len(list((folder / "stores").glob("*.store"))) >= 4
    assert asking["transfers"] == 60 * transfers_of(public(folder).network)


def public(folder):
    return PublicPlan.from_bytes((folder / "m.public").read_bytes())


@pytest.mark.slow
@pytest.mark.cluster
def test_the_stores_of_both_parties_work_together_and_once(prepared):
    folder = prepared[0]
    plan = Plan.load(folder / "m.plan")
    inputs = np.random.default_rng(3).uniform(0, 1, (60, 1, 12, 12))
    with (
        Channel.listener(timeout=20) as listener,
        PlanServer(plan, listener, folder / "stores", threads=1) as server,
    ):
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            connect = lambda: Channel.connect("127.0.0.1", listener.port, timeout=20)  # noqa: E731
            with RemotePlan(public(folder), connect, threads=1).open(folder / "c") as model:
                found = model(inputs)
        finally:
            server.stop()
            thread.join(20)
    draws = np.stack([plan.simulate(inputs).outputs for _ in range(32)])
    bound = 8 * draws.std(0) + 1e-6
    # rounding has few values, so that 32 draws may miss a rare one
    assert (np.abs(found - draws.mean(0)) <= bound).mean() > 0.99
    assert np.abs(found - draws.mean(0)).max() < 0.1
    assert (np.abs(np.roll(found, 1, 0) - draws.mean(0)) > bound).any(
        1
    ).mean() > 0.9  # other inputs


@pytest.mark.slow
def test_sessions_of_one_delta_end_together_and_begin_again(tmp_path):
    """A session of the receiver is killed while it makes OTs."""
    count = 6_000_001
    ports = ("--port", free_port(2), "--workers", 2, "--n", count)
    sender = Party(tmp_path, "send", "--out", "mine", *ports)
    receiver = Party(tmp_path, "receive", "127.0.0.1", "--out", "theirs", *ports)
    try:
        kill_worker(receiver, "ReceiverWorker", lambda: any(tmp_path.glob("theirs/*.t.npy.new")))
        ends = sender.end(), receiver.end()
    finally:
        for party in (sender, receiver):
            party.process.kill()
            party.process.wait()
    for end, party in zip(ends, (sender, receiver), strict=True):
        assert end["transfers"] == count
        assert end["again"] >= 1
        assert "a session failed, so all end, and delta is gone" in party.text
    delta = np.load(tmp_path / "mine" / "delta.npy")
    rows = []
    for part in ("part-000", "part-001"):
        r = np.load(tmp_path / "mine" / f"{part}.r.npy")
        t, choices = (np.load(tmp_path / "theirs" / f"{part}.{n}.npy") for n in ("t", "choices"))
        assert np.array_equal(t, r ^ choices.astype(np.uint64)[:, None] * delta)
        rows.append(r[:, 1])
    assert len(np.unique(np.concatenate(rows))) == count
    assert not list(tmp_path.glob("*/*.new"))
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("*/*.npy"))


@pytest.mark.parametrize(("bits", "outputs"), [(5, 5), (8, 6), (9, 9), (11, 4)])
def test_transfers_are_those_that_tables_take(monkeypatch, tmp_path, rng, bits, outputs):
    high = (1 << outputs) - 1
    activation = Activation(lambda x: np.clip(relu(x), 0, high), bits=bits)
    layers = (
        Layer((Term(0, Dense(weights(rng, 7, 6))),), weights(rng, 7), activation, 2),
        Layer((Term(1, Dense(weights(rng, 3, 7))),), weights(rng, 3)),
    )
    network, drawn = Network((6,), layers), []
    for name in ("extend", "extend_chosen", "extend_random", "extend_random_bytes"):
        whole = getattr(Sender, name)
        count = lambda self, n, *a, _whole=whole, **k: drawn.append(n) or _whole(self, n, *a, **k)  # noqa: E731
        monkeypatch.setattr(Sender, name, count)
    one, other = Channel.pair()
    serving = threading.Thread(target=prepare, args=(one, network, tmp_path / "s", 2))
    serving.start()
    prepare(other, network.public, tmp_path / "c", 2)
    serving.join()
    assert sum(drawn) == 2 * transfers_of(network.public)


def test_only_files_of_the_own_part_are_removed(tmp_path):
    part = parts_of(tmp_path / "c", 45, 20)[1]
    assert (part.path.name, part.count) == ("c.2", 20)
    broken = ["c.2.0123abcd.new", "c.2.0123abcd.new.89abcdef.part"]
    kept = ["c", "c.2", "c.3.0123abcd.new", "c.2.new", "c.2.backup", "c.22.0123abcd.new"]
    for name in [*broken, *kept]:
        (tmp_path / name).touch()
    remove_broken(part.path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
