"""The folder or URL of a table's shards: empty at first, whole once it has its description."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..._disk import OWNER_ONLY, replacing, sync_folder
from ...errors import FileError
from ...pir import TableParams
from ...pir._sharded import name_shard
from ._files import filesystem, is_url

DESCRIPTION = "table.json"

Write = Callable[[Path], None]


class Output(Protocol):
    """A place for shards. A pickled one is the same place."""

    @property
    def is_changeable(self) -> bool:
        """True if a file can be changed after it was written."""

    def begin(self, sizes: Sequence[int]) -> None:
        """Makes the place. Raises FileError if it has files, or no space for shards of `sizes`."""

    def put(self, name: str, write: Write) -> None:
        """Puts the file that `write` makes at a path to its place. Raises FileError."""

    def name(self, name: str, params: TableParams) -> None:
        """Gives a shard the parameters of its table, now that its digest is known."""

    def finish(self, text: str) -> None:
        """Writes the description of the table, after which the table is whole. Raises FileError."""

    def abandon(self, names: Sequence[str]) -> None:
        """Removes the files of a table that is not finished."""


def open_output(name: str) -> Output:
    """Returns the output of a path or a URL. Raises ArgumentError for an unknown kind of URL."""
    if not is_url(name):
        return Folder(Path(name))
    filesystem(name)
    return Remote(name.rstrip("/"))


@dataclass(slots=True)
class Folder:
    """A folder of a disk, or of a file system that several machines share.

    `made` is True if it did not exist before.
    """

    path: Path
    made: bool = False

    @property
    def is_changeable(self) -> bool:
        """True: a shard gets its digest in place."""
        return True

    def begin(self, sizes: Sequence[int]) -> None:
        """Makes the folder. Raises FileError if it has files, or its disk has no space."""
        try:
            self.made = not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise _not_empty(str(self.path))
        except OSError as error:
            raise _not_written(str(self.path), error) from error
        try:
            _check_space(self.path, sum(sizes))
        except FileError:
            self.abandon(())
            raise

    def put(self, name: str, write: Write) -> None:
        """Writes a file into the folder."""
        write(self.path / name)

    def name(self, name: str, params: TableParams) -> None:
        """Changes the head of a file."""
        name_shard(self.path / name, params)

    def finish(self, text: str) -> None:
        """Writes the description last."""
        try:
            with replacing(self.path / DESCRIPTION, OWNER_ONLY) as file:
                file.write(text.encode())
            sync_folder(self.path)
        except OSError as error:
            raise _not_written(str(self.path), error) from error

    def abandon(self, names: Sequence[str]) -> None:
        """Removes the files, whole or not, and the folder if `begin` made it and it is empty."""
        with contextlib.suppress(OSError):
            for name in names:
                for path in (self.path / name, *self.path.glob(f"{name}.????????")):
                    path.unlink(missing_ok=True)
            if self.made:
                self.path.rmdir()


@dataclass(frozen=True, slots=True)
class Remote:
    """A URL of an object store, where files cannot be changed.

    A shard is written to a temporary folder of this machine (TMPDIR), sent, and removed there.
    """

    url: str

    @property
    def is_changeable(self) -> bool:
        """False: the digest must be known before a shard is sent."""
        return False

    def begin(self, sizes: Sequence[int]) -> None:
        """Checks that nothing is there, and that one shard fits the disk. Raises FileError."""
        files, path = filesystem(self.url)
        try:
            files.makedirs(path, exist_ok=True)
            found = files.find(path)
        except FileNotFoundError:
            found = []
        except Exception as error:  # object stores have errors of their own
            raise _not_written(self.url, error) from error
        if found:
            raise _not_empty(self.url)
        _check_space(Path(tempfile.gettempdir()), max(sizes))

    def put(self, name: str, write: Write) -> None:
        """Writes a file here, and sends it. Raises FileError."""
        with tempfile.TemporaryDirectory(prefix="nescio-build-") as folder:
            write(Path(folder) / name)
            files, path = filesystem(self.url)
            try:
                _make_private(files, f"{path}/{name}")
                files.put_file(str(Path(folder) / name), f"{path}/{name}")
            except Exception as error:
                raise _not_written(f"{self.url}/{name}", error) from error

    def name(self, name: str, params: TableParams) -> None:
        """Raises FileError: a file that was sent cannot be changed."""
        raise FileError(
            f"{self.url}/{name} cannot be changed: expected the digest of {params.id!r}"
        )

    def finish(self, text: str) -> None:
        """Sends the description last."""
        files, path = filesystem(self.url)
        try:
            _make_private(files, f"{path}/{DESCRIPTION}")
            files.pipe_file(f"{path}/{DESCRIPTION}", text.encode())
        except Exception as error:
            raise _not_written(f"{self.url}/{DESCRIPTION}", error) from error

    def abandon(self, names: Sequence[str]) -> None:
        """Removes the files that were sent."""
        files, path = filesystem(self.url)
        for name in names:
            with contextlib.suppress(Exception):  # most do not exist
                files.rm_file(f"{path}/{name}")


def _make_private(files: Any, path: str) -> None:  # noqa: ANN401 - fsspec has no types
    """Makes an empty file of this machine that its user alone reads. Object stores have rules."""
    if "file" in files.protocol:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, OWNER_ONLY))


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FileError(
            f"{folder} has {free:,} bytes of free space, expected {needed:,} for the shards: "
            "choose another disk"
        )


def _not_empty(name: str) -> FileError:
    return FileError(f"{name} is not empty, expected a new folder, or an empty one: choose another")


def _not_written(name: str, error: Exception) -> FileError:
    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return FileError(f"{name} cannot be written: {why}")
