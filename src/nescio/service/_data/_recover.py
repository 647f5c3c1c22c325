"""The start of a table from its data folder: the newest snapshot, and the changes since."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path

from ...errors import FileError
from ...pir._checksums import Progress
from ...pir._durable import Versions, open_snapshot
from ...pir._history import DEFAULT_VERSIONS
from ._folder import Folder
from ._journal import HEAD_BYTES, JournalReader, JournalWriter
from ._kept import KeptTable
from ._origin import Origin
from ._state import State

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """A table from its folder: changes made again, bytes of a torn record, seconds."""

    kept: KeptTable
    changes: int
    torn_bytes: int
    seconds: float

    def describe(self) -> str:
        """Describes the start in one line."""
        left = "cut off" if self.kept.failure is None else "ignored"
        torn = self.torn_bytes and f", {self.torn_bytes} bytes of an unfinished change {left}"
        return (
            f"version {self.kept.table.params.version!r}, {self.changes} changes made again in "
            f"{self.seconds:.2f} s{torn or ''}"
        )


class Recovery:
    """A start from a folder, which has a snapshot with an `origin`."""

    def __init__(self, folder: Folder, base: int, state: State) -> None:
        self._folder = folder
        self._base = base
        self._state = state

    @property
    def origin(self) -> Origin:
        """The first version in the folder, and the files that it was made from."""
        return self._state.origin

    @classmethod
    def of(cls, folder: Folder) -> "Recovery | None":
        """Reads the state of a folder; None if the folder has no table yet.

        Raises FileError if files are missing or damaged, and for a folder without a table that
        cannot be written.
        """
        try:
            base = _base(folder)
            if base is None:
                folder.check_writable()
                return None
            path = folder.file("state", base)
            data = path.read_bytes()
        except OSError as error:
            raise _unusable(folder, f"{error.filename} cannot be read: {error.strerror}") from error
        try:
            return cls(folder, base, State.parse(data))
        except FileError as error:
            raise _unusable(folder, f"{path}: {error}") from error

    def load(
        self,
        origin: Origin,
        threads: int,
        progress: Progress | None,
        keep: int = DEFAULT_VERSIONS,
    ) -> Recovered:
        """Loads the snapshot, and makes the changes of the journals again.

        At most `keep` versions are answered, with the current one. `origin` is that of the folder,
        whose sources may have another state now. If the files cannot be written, the table refuses
        changes, and the log says why. Raises FileError if a file is missing, damaged, or that of
        another table.
        """
        began, folder = time.monotonic(), self._folder
        folder.remove_unused(self._base)
        try:
            path = folder.file("snapshot", self._base)
            table = open_snapshot(path, self._state.kept, threads, progress)
            if table.params.id != self._state.id:
                raise FileError(f"{path} is not that of the state beside it")
            replay = Versions(table, keep)
            numbers, kept_bytes = self._journals(), 0
            for number in numbers:
                path = folder.file("journal", number)
                with path.open("rb") as file:
                    reader = JournalReader(file)
                    self._replay(reader, number, replay)
                kept_bytes += reader.end - HEAD_BYTES
                torn = reader.torn_bytes
                if torn and number != numbers[-1]:
                    raise FileError(f"its end is missing: {torn} bytes of a change, and no more")
            replay.finish()
            writer = JournalWriter(path, reader.head, reader.end, reader.count)
            writer.failure = folder.failure or writer.failure
            if reader.torn_bytes and writer.failure is None:
                writer.cut()
        except FileError as error:
            raise _unusable(folder, _about(path, error)) from error
        except OSError as error:
            raise _unusable(folder, f"{path} cannot be read: {error.strerror}") from error
        if writer.failure is not None:
            name = folder.path.name
            _LOG.error(
                "table %s: all changes are refused until a restart: %s", name, writer.failure
            )
        kept = KeptTable(table, folder, origin, writer)
        seconds = time.monotonic() - began
        kept.backlog.add(kept_bytes, seconds if replay.slow else 0)
        kept.backlog.changes = replay.count
        if not replay.exact:
            kept.mark()
        with table.changing():
            kept.tidy()
        return Recovered(kept, replay.count, reader.torn_bytes, seconds)

    def _replay(self, reader: JournalReader, number: int, replay: Versions) -> None:
        """Makes the changes of one journal, at the latest when the replay finishes."""
        head = reader.head
        if head.origin != self.origin.id or head.number != number or head.base != replay.id:
            raise FileError("it is the journal of another table, or of another time")
        for record in reader:
            if record.is_mark:
                replay.mark()
            else:
                replay.add(*record)

    def _journals(self) -> list[int]:
        """Lists the journals from the snapshot on. Raises FileError if one is missing."""
        found = [n for n in self._folder.numbers("journal") if n >= self._base]
        expected = list(range(self._base, self._base + max(1, len(found))))
        if found != expected:
            raise FileError(f"found the journals {found}, expected {expected}")
        return found


def recover(folder: Folder, threads: int = 0, keep: int = DEFAULT_VERSIONS) -> Recovered | None:
    """Starts a table from its folder; None if the folder has none yet. Raises FileError."""
    recovery = Recovery.of(folder)
    return None if recovery is None else recovery.load(recovery.origin, threads, None, keep)


def _base(folder: Folder) -> int | None:
    """Returns the number of the newest snapshot; None for a folder whose first one is missing.

    Removes what a first start has left that was interrupted before it served anything.
    """
    snapshots, journals = folder.numbers("snapshot"), folder.numbers("journal")
    if snapshots:
        return snapshots[-1]
    if not journals:
        folder.remove_unused(1)
        return None
    first = folder.file("journal", 1)
    if journals != [1] or first.stat().st_size > HEAD_BYTES:
        raise _unusable(folder, f"found the journals {journals} and no snapshot, expected one")
    folder.check_writable()
    first.unlink()
    folder.remove_unused(2)
    return None


def _about(path: Path, error: FileError) -> str:
    """Names the file of an error whose text does not."""
    return str(error) if str(path) in str(error) else f"{path}: {error}"


def _unusable(folder: Folder, why: str) -> FileError:
    return FileError(
        f"the table cannot be started from {folder.path}: {why}. Restore the folder from a backup, "
        "or move it away to begin again from the source file, without the changes since"
    )
