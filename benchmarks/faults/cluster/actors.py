"""Replicas, nodes, heads and fronts of a table in shards that end, or hang."""

import signal
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.faults.party import Party
from benchmarks.faults.scene import Outcome, Scene
from benchmarks.faults.settings import Settings

from .party import ClusterParty, kill
from .raylets import Raylets

_TIMEOUT = 15.0
_ROUNDS = 3


class ClusterScene(Scene):
    """A scene of a party on a cluster and of one without: a lookup needs both.

    Where replicas take the place of those that fail, a refused lookup is a failure.
    """

    def __init__(
        self, fault: str, folder: Path, party: ClusterParty, *, strict: bool = True
    ) -> None:
        plain = Party(1, folder / "table.npy", folder, ["--data", str(folder / "data-1")])
        parties = [party, plain]
        super().__init__(
            fault, folder, parties=parties, timeout=_TIMEOUT, pause=0.1, update_rows=(1, 20)
        )
        self.connect([party.urls if party.others else party.url, plain.url])
        self.party, self._strict = party, strict

    def _gather(self) -> None:
        super()._gather()
        if self._strict and self.outcome.refused:
            self.outcome.failed.append(f"refused: {self.outcome.texts}")


def replicas(raylets: Raylets, settings: Settings, folder: Path) -> Outcome:
    """Kills a replica of one shard after the other, once the shard has all of them again."""
    random = np.random.default_rng(settings.seed)
    party = ClusterParty(folder, raylets.address)
    end = time.monotonic() + settings.limit
    with ClusterScene("a replica is killed", folder, party) as scene:
        for number in range(settings.kills):
            if time.monotonic() > end:
                scene.outcome.notes.append(f"{number} kills in the time given")
                break
            pids = party.wait_up(number % party.shards)
            scene.wait_for_lookups(1)
            time.sleep(random.uniform(0, 0.1))
            kill(int(random.choice(pids)))
            scene.outcome.times = number + 1
        party.wait_up()
    _note_latencies(scene)
    return scene.outcome


def stopped(raylets: Raylets, settings: Settings, folder: Path) -> Outcome:
    """Stops a replica of one shard after the other for seconds."""
    random = np.random.default_rng(settings.seed)
    party = ClusterParty(folder, raylets.address)
    with ClusterScene("a replica hangs", folder, party) as scene:
        for number in range(2 * party.shards):
            pid = int(random.choice(party.wait_up(number % party.shards)))
            kill(pid, signal.SIGSTOP)
            try:
                time.sleep(settings.seconds)
            finally:
                kill(pid, signal.SIGCONT)
            scene.outcome.times = number + 1
        party.wait_up()
    _note_latencies(scene)
    return scene.outcome


def node(raylets: Raylets, settings: Settings, folder: Path) -> Outcome:
    """Ends a node, lets the table go on with the others, and starts a node again."""
    party = ClusterParty(folder, raylets.address)
    waits = []
    with ClusterScene("a node ends, and returns", folder, party) as scene:
        for number in range(_ROUNDS):
            party.wait_up()
            raylets.kill(_used(party, raylets.others))
            begun = time.monotonic()
            try:
                scene.outcome.times = number + 1
                time.sleep(1.0)  # in which the head of the table may learn of it
                party.wait_up()
                waits.append(time.monotonic() - begun)
            finally:
                raylets.add()
            time.sleep(settings.seconds)
    scene.outcome.notes.append(f"all replicas are back after {max(waits):.1f} s at most")
    _note_latencies(scene)
    return scene.outcome


def head(raylets: Raylets, settings: Settings, folder: Path) -> Outcome:
    """Kills the head of the table."""
    party = ClusterParty(folder, raylets.address)
    with ClusterScene("the head is killed", folder, party) as scene:
        for number in range(_ROUNDS):
            party.wait_up()
            scene.wait_for_lookups(1)
            kill(party.head_pid())
            scene.outcome.times = number + 1
            time.sleep(settings.seconds / 2)
    return scene.outcome


def front(raylets: Raylets, settings: Settings, folder: Path) -> Outcome:
    """Kills one of two fronts, and starts it again; clients know both.

    Clients are renewed then: those that have seen a front fail leave it alone for up to 30 s.
    """
    party = ClusterParty(folder, raylets.address, fronts=2)
    fronts: Sequence[Party] = [party, *party.others]
    with ClusterScene("one of two fronts is killed", folder, party) as scene:
        for number in range(2 * _ROUNDS):
            scene.wait_for_lookups(1)
            one = fronts[number % 2]
            one.kill()
            scene.outcome.times = number + 1
            time.sleep(settings.seconds / 2)
            Party.start(one, wait=False)
            Party.wait_until_ready(one)
            for reader in scene.readers:
                reader.renew()
    return scene.outcome


def single(raylets: Raylets, settings: Settings, folder: Path) -> Outcome:
    """Kills the only replica of a shard: lookups are refused until it is back."""
    random = np.random.default_rng(settings.seed)
    party = ClusterParty(folder, raylets.address, replicas=1)
    with ClusterScene("the only replica is killed", folder, party, strict=False) as scene:
        for number in range(min(settings.kills, 2 * _ROUNDS)):
            party.wait_up()
            pids = party.wait_up(number % party.shards)
            scene.wait_for_lookups(1)
            kill(int(random.choice(pids)))
            scene.outcome.times = number + 1
        party.wait_up()
    wrong = [text for text in scene.outcome.texts.values() if "503" not in text]
    scene.outcome.notes += [f"other refusals than 503: {text}" for text in wrong]
    return scene.outcome


def _used(party: ClusterParty, nodes: Sequence[str]) -> str:
    """Returns the node, of those given, that has the most replicas."""
    used = [one.info.node for one in party.status() if one.info]
    return max(nodes, key=used.count)


def _note_latencies(scene: Scene) -> None:
    seconds = np.array([one for reader in scene.readers for one in reader.latencies])
    scene.outcome.notes.append(
        f"lookups took {1e3 * np.median(seconds):.0f} ms (median), "
        f"{np.quantile(seconds, 0.99):.2f} s (p99), {seconds.max():.2f} s (longest)"
    )
