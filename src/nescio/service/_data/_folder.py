"""The folder of a table: the names of its files, its lock, and which files still count.

    lock                    held by the process that serves the table
    snapshot-N.nescio       memory of the table; its existence says that it is complete
    state-N                 the state that belongs to it
    journal-N               changes since the beginning of snapshot N

A start takes the newest snapshot, and all journals from its number on. Journal N exists before the
snapshot N, and ends where journal N + 1 begins.
"""

import contextlib
import fcntl
import os
import re
from pathlib import Path
from typing import Literal

from ..._disk import sync_folder
from ...errors import FileError

Kind = Literal["snapshot", "state", "journal"]

_SUFFIX: dict[Kind, str] = {"snapshot": ".nescio", "state": "", "journal": ""}
_NAME = re.compile(r"(?:(snapshot)-([1-9]\d{0,18})\.nescio|(state|journal)-([1-9]\d{0,18}))")
_TEMPORARY = re.compile(r"(?:snapshot-\d+\.nescio|(?:state|journal)-\d+)\.[0-9a-f]{8}")


class Folder:
    """The folder of one table, which no other process uses.

    `failure` says why its files cannot be written, such as on a read-only disk; None normally.
    Raises FileError if the folder does not exist and cannot be made, or is in use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: str | None = None
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = self._open_lock()
        except OSError as error:
            raise self.unwritable(str(error.strerror)) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise FileError(
                f"the data folder {path} is in use by another process: stop it, or give each "
                "server a folder of its own"
            ) from error

    def _open_lock(self) -> int:
        """Opens the file `lock`; the folder itself if that cannot be made. Raises OSError."""
        path, flags = self.path / "lock", os.O_RDONLY | os.O_CLOEXEC
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self.failure = f"the data folder cannot be written: {error.strerror}"
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            return os.open(self.path, flags | os.O_DIRECTORY)

    def check_writable(self) -> None:
        """Raises FileError if the files cannot be written."""
        if self.failure is not None:
            raise self.unwritable(self.failure.partition(": ")[2])

    def unwritable(self, why: str) -> FileError:
        """Makes the error for a folder without a table that cannot be written."""
        return FileError(
            f"the data folder {self.path} cannot be written: {why}; expected a folder that the "
            "server may write"
        )

    def close(self) -> None:
        """Gives the folder to other processes."""
        os.close(self._lock)

    def file(self, kind: Kind, number: int) -> Path:
        """Returns the path of a file."""
        return self.path / f"{kind}-{number}{_SUFFIX[kind]}"

    def numbers(self, kind: Kind) -> list[int]:
        """Lists the numbers of the files of a kind, in order. Raises OSError."""
        found = (_NAME.fullmatch(path.name) for path in self.path.iterdir())
        parts = [match.groups() for match in found if match is not None]
        return sorted(int(one[1] or one[3]) for one in parts if kind in one)

    def sync(self) -> None:
        """Makes new names, and the absence of old ones, durable. Raises OSError."""
        sync_folder(self.path)

    def remove_unused(self, base: int) -> None:
        """Removes what is older than the snapshot `base`, and what was never completed.

        Files that cannot be removed stay, and are ignored. In a folder that cannot be written, all
        do.
        """
        if self.failure is not None:
            return
        with contextlib.suppress(OSError):
            for path in list(self.path.iterdir()):
                if _TEMPORARY.fullmatch(path.name):
                    path.unlink()
            for kind in _SUFFIX:
                for number in self.numbers(kind):
                    if number < base or (kind == "state" and number > base):
                        self.file(kind, number).unlink()
            self.sync()
