"""Disks that are full or read-only."""

import contextlib
import errno
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .operator import Operator
from .party import Party
from .scene import Outcome, Scene
from .settings import Settings, SkippedError

_DISK = "size=4m"
_FILE_BYTES = 512 << 10  # a little more than the table


def full(settings: Settings, folder: Path) -> Outcome:
    """Fills the disk of party 1, kills it, starts it again, and frees the disk."""
    with (
        _mounted(settings, folder) as parties,
        Scene("full disk", folder, parties=parties) as scene,
    ):
        scene.wait_for_lookups(1)
        filler = parties[1].data / "filler"
        _fill(filler)
        _refuses(scene, settings.seconds / 2, "507")
        parties[1].kill()
        parties[1].start()
        _refuses(scene, settings.seconds / 2, "507")
        filler.unlink()
        scene.outcome.times = 1
    return scene.outcome


def file_limit(settings: Settings, folder: Path) -> Outcome:
    """Lets no file of party 1 grow beyond half a megabyte, until it is started again."""
    table = folder / "table.npy"
    options = settings.options
    parties = [Party(number, table, folder, options) for number in range(2)]
    parties[1].max_file_bytes = _FILE_BYTES
    with Scene(
        "limit of a file's length", folder, parties=parties, update_rows=(300, 300)
    ) as scene:
        assert scene.operator is not None
        end = time.monotonic() + 60
        while not _saw(scene.operator, "507") and time.monotonic() < end:
            time.sleep(0.1)
        _refuses(scene, settings.seconds / 2, "507")
        parties[1].max_file_bytes = None
        parties[1].kill()
        parties[1].start()
        scene.outcome.times = 1
    return scene.outcome


def read_only(settings: Settings, folder: Path) -> Outcome:
    """Starts party 1 on a disk that has become read-only, then on one that can be written."""
    with (
        _mounted(settings, folder) as parties,
        Scene("read-only disk", folder, parties=parties) as scene,
    ):
        scene.wait_for_lookups(1)
        parties[1].kill()
        _run("mount", "-o", "remount,ro", str(parties[1].data))
        parties[1].start()
        _refuses(scene, settings.seconds / 2, "507")
        parties[1].kill()
        _run("mount", "-o", "remount,rw", str(parties[1].data))
        parties[1].start()
        scene.outcome.times = 1
    return scene.outcome


def _refuses(scene: Scene, seconds: float, status: str) -> None:
    """Expects lookups, and updates that are refused with a status, for some seconds."""
    operator = scene.operator
    assert operator is not None
    before, refused = operator.updates, operator.saw.total()
    time.sleep(seconds)
    scene.wait_for_lookups(1)
    if operator.saw.total() == refused:
        scene.outcome.failed.append(f"{operator.updates - before} updates were not refused")
    elif not _saw(operator, status):
        scene.outcome.failed.append(f"refused otherwise: {list(operator.texts.values())}")


def _saw(operator: Operator, status: str) -> bool:
    """Tests if a server has refused an update with a status."""
    return any(f"status {status}" in text for text in list(operator.texts.values()))


@contextlib.contextmanager
def _mounted(settings: Settings, folder: Path) -> Iterator[Sequence[Party]]:
    """Makes parties of which the second has a small disk. Raises SkippedError if not permitted."""
    table = folder / "table.npy"
    options = settings.options
    parties = [Party(number, table, folder, options) for number in range(2)]
    disk = parties[1].data
    disk.mkdir(parents=True)
    try:
        _run("mount", "-t", "tmpfs", "-o", _DISK, "tmpfs", str(disk))
    except (OSError, subprocess.CalledProcessError) as error:
        raise SkippedError(f"a small disk cannot be mounted: {error}") from error
    try:
        yield parties
    finally:
        _run("umount", str(disk))


def _fill(path: Path) -> None:
    """Writes a file until the disk is full."""
    try:
        with path.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 12))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603
