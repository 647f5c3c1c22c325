"""A table whose changes are in a journal before they are made."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ...errors import FileError
from ...pir import Table, TableParams
from ...pir._change import operation_of
from ...pir._versions import Record
from .._observe import JournalMetrics
from ._folder import Folder
from ._journal import Head, JournalWriter
from ._journal import Record as JournalRecord
from ._origin import Origin
from ._snapshots import Begun, Snapshots, write_snapshot

_LEAST_BYTES = 32 << 20


@dataclass(slots=True)
class Backlog:
    """The changes that a start must make again: bytes, number, and seconds of the slow ones.

    Consecutive updates are made as one, and so cost what their bytes do. Other changes are slow:
    each costs again what it has cost.
    """

    bytes: int = 0
    changes: int = 0
    slow_seconds: float = 0.0

    MAX_CHANGES = 4096
    MAX_SLOW_SECONDS = 0.5

    def add(self, size: int, slow_seconds: float) -> None:
        """Counts a change."""
        self.bytes += size
        self.changes += 1
        self.slow_seconds += slow_seconds

    def join(self, before: "Backlog") -> None:
        """Counts the changes of an older journal too."""
        self.bytes += before.bytes
        self.changes += before.changes
        self.slow_seconds += before.slow_seconds

    def is_long(self, most_bytes: int) -> bool:
        """Tests if a new snapshot would make the next start faster by some tenths of a second."""
        return (
            self.bytes > most_bytes
            or self.changes > self.MAX_CHANGES
            or self.slow_seconds > self.MAX_SLOW_SECONDS
        )


class KeptTable:
    """A table in a data folder; its journal is attached to the table.

    Each change is in the journal, synchronized, before it is made. When the journal is long, a
    snapshot begins in the background, and a new journal with it. `max_journal_bytes` of None are an
    eighth of the table's, at least 32 MiB.
    """

    def __init__(self, table: Table, folder: Folder, origin: Origin, writer: JournalWriter) -> None:
        self.table = table
        self.folder = folder
        self.origin = origin
        self.backlog = Backlog()
        self.max_journal_bytes: int | None = None
        self.snapshots = Snapshots(folder.path.name, self._take)
        self._writer = writer
        self.watch: JournalMetrics | None = None  # counts, if metrics are wanted
        table.journal = self

    @classmethod
    def begin(
        cls, table: Table, folder: Folder, origin: Origin, done: Callable[[], None] = lambda: None
    ) -> "KeptTable":
        """Stores a table in an empty folder. Raises FileError if that fails.

        `done` is called after each block of 4 MiB.
        """
        try:
            writer = JournalWriter.create(
                folder.file("journal", 1), Head.new(1, origin.id, table.params.id)
            )
        except OSError as error:
            raise FileError(f"{folder.path} cannot be written: {error.strerror}") from error
        with table.changing():
            begun = Begun.now(1, table)
        write_snapshot(folder, begun, origin, done)
        kept = cls(table, folder, origin, writer)
        kept.mark()
        return kept

    @property
    def failure(self) -> str | None:
        """The reason for which changes are refused until the next start; None normally."""
        return self._writer.failure

    def check(self) -> None:
        """Raises FileError if no change can be recorded."""
        self._writer.check()

    @contextmanager
    def recording(self, message: bytes) -> Iterator[Record]:
        """Gives the function that records the change of a message, which the block makes.

        The caller holds `changing`. If the block fails after it has recorded the change, no later
        change is accepted: the memory may have a part of it.
        """
        began, writer = time.monotonic(), self._writer
        end, count = writer.end, writer.count

        def record(params: TableParams) -> None:
            target = self.table.target
            moved = b"" if target is None else target.moved.tobytes()
            begin = time.perf_counter()
            try:
                writer.append(JournalRecord(message, moved, params.id))
            except BaseException:
                if self.watch is not None:
                    self.watch.failed()
                raise
            if self.watch is not None:
                self.watch.written(writer.end - end, time.perf_counter() - begin)

        try:
            yield record
        except BaseException:
            if writer.count > count:
                writer.retract(end)
            raise
        if writer.count > count:
            slow = operation_of(message) != "update"
            self.backlog.add(writer.end - end, slow * (time.monotonic() - began))
            self.tidy()

    def tidy(self) -> None:
        """Starts a snapshot if the journal is long. The caller holds `changing`."""
        long = self.backlog.is_long(self._most_bytes)
        if long and self._writer.failure is None and self.snapshots.due:
            self.snapshots.start()

    def mark(self) -> None:
        """Notes in the journal that the snapshot is complete, if the journal can be written.

        A start then knows all versions from here on, and can answer them.
        """
        with self.table.changing(), suppress(FileError):
            self._writer.append(JournalRecord.mark(self.table.params.id))

    def close(self) -> None:
        """Ends snapshots, refuses further changes, and gives the folder to other processes."""
        self.snapshots.stop()
        with self.table.changing():
            self._writer.failure = "the service ends"
            self._writer.close()
        self.folder.close()

    @property
    def _most_bytes(self) -> int:
        if self.max_journal_bytes is not None:
            return self.max_journal_bytes
        return max(_LEAST_BYTES, self.table.bytes // 8)

    def _take(self, pause: Callable[[], None]) -> None:
        """Takes a snapshot. Raises FileError or OSError if that fails."""
        begin, done = time.perf_counter(), False
        try:
            self._take_now(pause)
            done = True
        finally:
            if self.watch is not None:
                self.watch.snapshot(time.perf_counter() - begin, done=done)

    def _take_now(self, pause: Callable[[], None]) -> None:
        with self.table.changing():
            self.check()
            writer = self._new_journal()
            self._writer.close()
            self._writer = writer
            before, self.backlog = self.backlog, Backlog()
            begun = Begun.now(writer.head.number, self.table)
        try:
            write_snapshot(self.folder, begun, self.origin, pause)
        except BaseException:
            with self.table.changing():
                self.backlog.join(before)
            raise
        self.mark()

    def _new_journal(self) -> JournalWriter:
        """Creates the next journal. Raises OSError; changes then go on in the old one."""
        number = self._writer.head.number + 1
        path = self.folder.file("journal", number)
        try:
            writer = JournalWriter.create(
                path, Head.new(number, self.origin.id, self.table.params.id)
            )
            self.folder.sync()
        except OSError as error:
            if path.exists():  # a start would read it, and miss the changes that follow in the old
                self._writer.failure = f"a new journal could not be begun: {error.strerror}"
            raise
        return writer
