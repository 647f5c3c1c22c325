"""SIGKILL at random instants: of updates, lookups, snapshots and starts."""

import time
from pathlib import Path

import numpy as np

from .scene import Outcome, Scene
from .settings import Settings


def kill(settings: Settings, folder: Path) -> Outcome:
    """Kills one party after the other during updates and lookups."""
    random = np.random.default_rng(settings.seed)
    with Scene("kill -9 during updates", folder, options=settings.options(folder)) as scene:
        for number in range(settings.kills):
            scene.wait_for_lookups(1)
            time.sleep(random.uniform(0, 0.3))
            _kill_and_check(scene, int(random.integers(2)))
            scene.outcome.times = number + 1
    _note_starts(scene)
    return scene.outcome


def _kill_and_check(scene: Scene, number: int) -> None:
    """Kills a party, starts it again, and counts the acknowledged updates that it lacks."""
    party = scene.parties[number]
    party.kill()
    done = scene.model.done
    party.restart()
    scene.outcome.lost += max(0, done - scene.version(party))


def _note_starts(scene: Scene) -> None:
    starts = [seconds for party in scene.parties for seconds in party.starts]
    if starts:
        scene.outcome.notes.append(
            f"ready after {np.median(starts):.2f} s (median), {max(starts):.2f} s (longest)"
        )
