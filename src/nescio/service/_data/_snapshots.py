"""Snapshots of a table that changes: in the background, and at the first start."""

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ...errors import FileError
from ...pir import Table
from ...pir._durable import Kept, save_snapshot
from ...pir._state import TableState
from ._folder import Folder
from ._origin import Origin
from ._state import State

_LOG = logging.getLogger(__name__)
_NICENESS = 10


class Begun(NamedTuple):
    """A snapshot that has begun, together with the journal that has its number."""

    number: int
    table: Table
    state: TableState
    kept: Kept

    @classmethod
    def now(cls, number: int, table: Table) -> "Begun":
        """Begins a snapshot of a table. The caller holds `changing`."""
        with table.reading() as state:
            return cls(number, table, state, Kept.of(table))


def write_snapshot(folder: Folder, begun: Begun, origin: Origin, pause: Callable[[], None]) -> None:
    """Writes a snapshot that has begun, and removes older files.

    Raises FileError if a file cannot be written.
    """
    number, table, state, kept = begun
    try:
        State(state.params.id, origin, kept).write(folder.file("state", number))
        folder.sync()
        save_snapshot(folder.file("snapshot", number), table, state, pause)
        folder.sync()
    except OSError as error:
        raise FileError(f"{folder.path} cannot be written: {error.strerror}") from error
    folder.remove_unused(number)


class Snapshots:
    """Takes snapshots in a thread of low priority, one at a time.

    `take` gets a function to call after each block. A failure is logged, and leaves the older
    snapshot with all journals since. For a minute after it, `due` is False.
    """

    RETRY_SECONDS = 60.0

    def __init__(self, name: str, take: Callable[[Callable[[], None]], None]) -> None:
        self._name = name
        self._take = take
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._failed_at = -math.inf
        self.taken = 0
        self.failed = 0
        self.seconds = 0.0

    @property
    def active(self) -> bool:
        """True while a snapshot is taken."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def due(self) -> bool:
        """True if no snapshot is taken, and none failed in the last minute."""
        waited = time.monotonic() - self._failed_at
        return not self.active and waited >= self.RETRY_SECONDS

    def start(self) -> None:
        """Starts a snapshot unless one is being taken. One thread may call this at a time."""
        if not self.active and not self._stopped.is_set():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the snapshot that is being taken, which then does not count."""
        self._stopped.set()
        self.wait()

    def wait(self) -> None:
        """Waits for the snapshot that is being taken."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with suppress(OSError, AttributeError):  # of this thread alone, on Linux
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        began = time.monotonic()
        try:
            self._take(self._pause)
        except _StoppedError:
            return
        except (FileError, OSError, MemoryError) as error:
            self.failed += 1
            self._failed_at = time.monotonic()
            _LOG.error("table %s: no snapshot was taken, the journal grows: %s", self._name, error)
            return
        self.taken += 1
        self.seconds = time.monotonic() - began

    def _pause(self) -> None:
        if self._stopped.is_set():
            raise _StoppedError


class _StoppedError(Exception):
    """The service ends."""
