"""SIGSTOP and SIGCONT: a machine that hangs for seconds."""

import signal
import time
from pathlib import Path

from .scene import Outcome, Scene
from .settings import Settings


def stop(settings: Settings, folder: Path) -> Outcome:
    """Stops one party after the other for seconds, while clients wait for at most one."""
    options = settings.options
    with Scene("SIGSTOP for seconds", folder, options=options, timeout=1.0) as scene:
        for number, party in enumerate([*scene.parties, *scene.parties]):
            scene.wait_for_lookups(1)
            party.send(signal.SIGSTOP)
            time.sleep(settings.seconds / 2)
            party.send(signal.SIGCONT)
            scene.outcome.times = number + 1
    return scene.outcome
