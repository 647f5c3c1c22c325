"""A data folder that is put back from an older copy: the operator's journal has what it lacks."""

import shutil
import time
from pathlib import Path

from .scene import Outcome, Scene
from .settings import Settings


def restore(settings: Settings, folder: Path) -> Outcome:
    """Starts each party in turn with a copy of its data folder that is some seconds old."""
    with Scene("data folder from a backup", folder, options=settings.options) as scene:
        assert scene.operator is not None
        for number, party in enumerate(scene.parties):
            scene.wait_for_lookups(1)
            backup = folder / f"backup-{number}"
            party.kill()
            shutil.copytree(party.data, backup)
            party.start()
            time.sleep(settings.seconds / 2)
            party.kill()
            shutil.rmtree(party.data)
            shutil.copytree(backup, party.data)
            party.start()
            scene.outcome.times = number + 1
        scene.wait_for_lookups(1)
    scene.outcome.notes.append(f"the operator repaired {scene.operator.repaired} updates")
    return scene.outcome
