"""Jumps of the wall clock of both servers, by days and years, back and forth."""

import shutil
import subprocess
import time
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

from .party import Party
from .scene import Outcome, Scene
from .settings import Settings, SkippedError

_DAY = 86400
_JUMPS = 3600, -3600, 400 * _DAY, -400 * _DAY, 3650 * _DAY, 0
_SOURCE = Path(__file__).with_name("clock.c")


def jumps(settings: Settings, folder: Path) -> Outcome:
    """Sets the wall clock of both servers forward and back."""
    offset = folder / "offset"
    _write(offset, 0)
    library = _compile(folder)
    prefix = ["env", f"LD_PRELOAD={library}", f"FAULTS_CLOCK={offset}"]
    table = folder / "table.npy"
    options = settings.options
    parties = [Party(number, table, folder, options, prefix=prefix) for number in range(2)]
    with Scene("jumps of the wall clock", folder, parties=parties) as scene:
        for number, seconds in enumerate(_JUMPS):
            scene.wait_for_lookups(1)
            _write(offset, seconds)
            time.sleep(max(1.1, settings.seconds / len(_JUMPS)))
            if abs(_clock_of(parties[0]) - time.time() - seconds) > _DAY:
                scene.outcome.failed.append(f"the server's clock did not jump by {seconds} s")
            scene.outcome.times = number + 1
    return scene.outcome


def _compile(folder: Path) -> Path:
    """Compiles the library that changes the clock. Raises SkippedError without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SkippedError("there is no C compiler, cc, for a clock that jumps")
    library = folder / "clock.so"
    subprocess.run(  # noqa: S603 - our own source
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"], check=True
    )
    return library


def _write(path: Path, seconds: int) -> None:
    """Writes the offset in place, because the servers map the file."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(8))
    with path.open("r+b", buffering=0) as file:
        file.write(seconds.to_bytes(8, "little", signed=True))


def _clock_of(party: Party) -> float:
    """Returns the wall clock that a server shows in the field `Date`."""
    reply = httpx.get(f"{party.url}/healthz", trust_env=False)
    return parsedate_to_datetime(reply.headers["date"]).timestamp()
