"""The folder of a local Ray cluster: of this user alone, and removed with the process that made it.

Ray makes its own folders 0777, sockets and code among them: they lie in one that others cannot
enter. A process that was killed cannot remove its folder. The next one that starts does, and knows
by a lock, which ends with the process, also if that ran in another container with the same disk.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "nescio-ray-"
_LOCK = "lock"


@contextmanager
def ray_folder() -> Iterator[str]:
    """Gives a path for Ray, in a new folder that others cannot enter. The end removes both."""
    _remove_left()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # 0700
    try:
        with _locked(folder):
            yield str(folder / "r")  # short: the paths of sockets have 107 bytes at most
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Makes the lock of a folder. It gets its name when it is held."""
    with (folder / "new").open("xb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (folder / "new").rename(folder / _LOCK)
        yield


def _remove_left() -> None:
    """Removes the folders of this user's processes that have ended without doing so."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            with (folder / _LOCK).open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if its process runs
                shutil.rmtree(folder, ignore_errors=True)
