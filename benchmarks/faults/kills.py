"""SIGKILL at random instants: of updates, lookups and snapshots."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .party import Party
from .scene import Outcome, Scene
from .settings import Settings

_BOTH_SHARE = 0.1
_SNAPSHOT_ROWS = 1 << 17
_MAX_JOURNAL = str(4 << 20)
_SNAPSHOT_SECONDS = 20.0
_LARGE_ROWS, _LARGE_WORDS = 1 << 20, 64


def kill(settings: Settings, folder: Path) -> Outcome:
    """Kills one party or both during updates and lookups."""
    random = np.random.default_rng(settings.seed)
    with Scene("kill -9", folder, options=settings.options) as scene:
        for number in range(settings.kills):
            scene.wait_for_lookups(1)
            time.sleep(random.uniform(0, 0.3))
            one = scene.parties[int(random.integers(2))]
            _kill(scene, scene.parties if random.random() < _BOTH_SHARE else [one])
            scene.outcome.times = number + 1
    _note_starts(scene)
    return scene.outcome


def kill_snapshots(settings: Settings, folder: Path) -> Outcome:
    """Kills a party while it takes a snapshot, which long updates cause."""
    random = np.random.default_rng(settings.seed)
    rows = (_SNAPSHOT_ROWS // 16, _SNAPSHOT_ROWS // 16)
    with Scene(
        "kill -9 in a snapshot",
        folder,
        rows=_SNAPSHOT_ROWS,
        options=[*settings.options, "--max-journal", _MAX_JOURNAL],
        readers=1,
        update_rows=rows,
    ) as scene:
        for _ in range(max(1, settings.kills // 10)):
            party = scene.parties[int(random.integers(2))]
            if _wait_for_snapshot(party):
                time.sleep(random.uniform(0, 0.05))
                scene.outcome.times += _incomplete(party)
            _kill(scene, [party])
            scene.wait_for_lookups(1)
        scene.outcome.notes.append(f"times: of {settings.kills // 10} kills, those in a snapshot")
    return scene.outcome


def kill_large(settings: Settings, folder: Path) -> Outcome:
    """Kills a party that has 2^20 rows of 256 bytes, for the time of its start."""
    random = np.random.default_rng(settings.seed)
    with Scene(
        "kill -9, 2^20 x 256 B",
        folder,
        rows=_LARGE_ROWS,
        words=_LARGE_WORDS,
        options=settings.options,
        readers=1,
        timeout=30.0,
        update_rows=(1000, 1000),
    ) as scene:
        for party in scene.parties:
            party.starts.clear()  # the first start reads the file
        for number in range(max(1, settings.kills // 40)):
            time.sleep(random.uniform(1, 3))
            _kill(scene, [scene.parties[number % 2]])
            scene.wait_for_lookups(1, seconds=60)
            scene.outcome.times = number + 1
    _note_starts(scene)
    return scene.outcome


def _kill(scene: Scene, parties: Sequence[Party]) -> None:
    """Kills parties, starts them again, and counts the acknowledged updates that they lack."""
    for party in parties:
        party.kill()
    done = scene.model.done
    for party in parties:
        party.start()
        scene.outcome.lost += max(0, done - scene.version(party))


def _numbers(party: Party, kind: str) -> int:
    """Returns the highest number of the files of a kind in a party's data folder."""
    names = [path.name for path in party.data.rglob(f"{kind}-*") if path.name.count(".") < 2]
    return max((int(name.split("-")[1].split(".")[0]) for name in names), default=0)


def _incomplete(party: Party) -> bool:
    """Tests if a party has begun a snapshot that is not complete."""
    return _numbers(party, "journal") > _numbers(party, "snapshot")


def _wait_for_snapshot(party: Party) -> bool:
    """Waits until a party begins a snapshot; False if it does not for a long time."""
    end = time.monotonic() + _SNAPSHOT_SECONDS
    before = _numbers(party, "journal")
    while _numbers(party, "journal") == before:
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def _note_starts(scene: Scene) -> None:
    starts = [seconds for party in scene.parties for seconds in party.starts]
    if starts:
        scene.outcome.notes.append(
            f"serves {np.median(starts):.2f} s after its start (median), {max(starts):.2f} s "
            "(longest)"
        )
