"""An operator's journal: every change of a table, on the disk before any server gets it."""

import fcntl
import itertools
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..._arrays import check_file
from ..._disk import sync_folder, write_at
from ...errors import ArgumentError, FileError, MalformedMessageError, MismatchError
from ...pir._change import Summary, content_of
from .records import CHANGE, DROPPED, HEAD_BYTES, MADE, encode, file_head, read_head, read_records

LOCK_SECONDS = 10.0
_STEP_SECONDS = 0.05


@dataclass
class Entry:
    """A change in the journal."""

    place: int
    length: int
    time: int
    """The time at which it was written, in nanoseconds since 1970."""
    head: Summary
    after: bytes | None = None
    """The id of the table after it; None as long as no server is known to have made it."""
    dropped: bool = False

    @property
    def open(self) -> bool:
        """Tests if no server is known to have made the change, and it is not dropped."""
        return self.after is None and not self.dropped


class Journal:
    """The journal of one table, in a file that only its owner can read.

    Every change of it happens in a `locked` block, which excludes other processes. The changes stay
    in the file; memory has a line for each.
    """

    def __init__(self, path: str | os.PathLike[str], table: str) -> None:
        self._path = Path(path)
        self._table = table
        self._mine = threading.Lock()
        self._writing = threading.Lock()
        self._file: BinaryIO | None = None  # while it is locked
        self._forget()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def entries(self) -> list[Entry]:
        """All changes but dropped ones, oldest first."""
        return [entry for entry in self._entries if not entry.dropped]

    @property
    def last(self) -> Entry | None:
        """The newest change that is not dropped."""
        return next((entry for entry in reversed(self._entries) if not entry.dropped), None)

    @property
    def unmade(self) -> list[Entry]:
        """The changes since the last one that a server has made, dropped ones too; newest first."""
        return list(itertools.takewhile(lambda entry: entry.after is None, self._entries[::-1]))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the file, which is made if it does not exist, and reads what is new in it.

        Raises FileError if another process keeps it locked, or for a file that is not a journal of
        this table.
        """
        if not self._mine.acquire(timeout=LOCK_SECONDS):
            raise self._busy()
        try:
            with self._lock_file() as file:
                self._file = file
                self._read(file, repair=True)
                try:
                    yield
                finally:
                    with self._writing:  # a call that was interrupted may still write
                        self._file = None
        except OSError as error:
            raise self._unusable(error) from error
        finally:
            self._mine.release()

    def look(self) -> None:
        """Reads the file as it is, without a lock: for a report. Raises FileError."""
        with self._mine:
            self._forget()
            try:
                self._path.stat()
                check_file(self._path, "the journal of a table")
                with self._path.open("rb") as file:
                    self._read(file, repair=False)
            except FileNotFoundError:
                return
            except OSError as error:
                raise self._unusable(error) from error

    def append(self, change: bytes) -> Entry:
        """Writes an encoded change; returns when it is on the disk. Raises FileError."""
        self._write(CHANGE, change)
        return self._entries[-1]

    def made(self, entry: Entry, after: bytes) -> None:
        """Notes the id of the table after a change, which a server has made.

        A dropped change is no longer dropped: the server was still making it at that time. Raises
        MismatchError if another server got another id from the same change.
        """
        if entry.after is None:
            self._write(MADE, entry.head.name + after)
        elif entry.after != after:
            raise MismatchError(
                f"version {entry.head.version!r}: found the id {after.hex()} after the change, "
                f"expected {entry.after.hex()}, the other party's: the parties had different rows",
                found=after.hex(),
                expected=entry.after.hex(),
            )

    def drop(self, entry: Entry) -> None:
        """Notes that no server has made a change, and that none will."""
        self._write(DROPPED, entry.head.name)

    def find(self, change: bytes) -> Entry | None:
        """Finds the newest change, if it is the same as an encoded one but for the name."""
        last = self.last
        if last is None or last.head != Summary.of(change)._replace(name=last.head.name):
            return None
        return last if content_of(change) == content_of(self.change(last)) else None

    def change(self, entry: Entry) -> bytes:
        """Reads an encoded change."""
        try:
            with self._path.open("rb") as file:
                file.seek(entry.place)
                found = file.read(entry.length)
        except OSError as error:
            raise self._unusable(error) from error
        if len(found) != entry.length or Summary.of(found) != entry.head:
            raise FileError(f"{self._path} was replaced while it was read: try again")
        return found

    def content(self, entry: Entry) -> str:
        """Hashes a change as servers do in `last_change`."""
        return content_of(self.change(entry)).hex()

    def chain(self) -> list[Entry]:
        """Lists the changes that lead to the newest one without a gap, oldest first."""
        entry = self.last
        found: list[Entry] = []
        makers = {one.after: one for one in self.entries if one.after is not None}
        while entry is not None:
            found.append(entry)
            entry = makers.pop(entry.head.changed, None)  # each once: ids may lead in a circle
        return found[::-1]

    def lacking(self, id_: bytes) -> list[Entry] | None:
        """Lists the changes that a table with an id lacks; None if the journal lacks the id.

        The last of them may be one that no server is known to have made.
        """
        chain = self.chain()
        if chain and chain[-1].after == id_:
            return []
        for place in reversed(range(len(chain))):
            if chain[place].head.changed == id_:
                return chain[place:]
        return None

    def compact(self, keep: int) -> int:
        """Removes all changes but the last `keep` from the file; returns how many it removed."""
        entries = self.entries
        if len(entries) <= keep:
            return 0
        kept = entries[len(entries) - keep :]
        with self._new_file() as file:
            for entry in kept:
                file.write(encode(CHANGE, entry.time, self.change(entry)))
                if entry.after is not None:
                    file.write(encode(MADE, entry.time, entry.head.name + entry.after))
        self._forget()
        return len(entries) - len(kept)

    def _forget(self) -> None:
        self._entries: list[Entry] = []
        self._by_name: dict[bytes, Entry] = {}
        self._end = 0
        self._inode = 0

    def _read(self, file: BinaryIO, *, repair: bool) -> None:
        """Reads what has been added since the last time; cuts an unfinished record off."""
        status = os.fstat(file.fileno())
        if status.st_ino != self._inode or status.st_size < self._end:
            self._forget()
            table, self._end = read_head(file, self._path)
            self._inode = status.st_ino
            if table != self._table:
                raise FileError(
                    f"{self._path} is the journal of table {table!r}, expected one of "
                    f"{self._table!r}: each table has a journal of its own"
                )
        for record in read_records(file, self._end, status.st_size, self._path):
            self._note(record.kind, record.time, record.body, record.place)
            self._end = record.end
        if repair and self._end < status.st_size:
            file.truncate(self._end)
            os.fsync(file.fileno())

    def _note(self, kind: int, when: int, body: bytes, place: int) -> None:
        """Takes a record into memory."""
        if kind == CHANGE:
            try:
                entry = Entry(place, len(body), when, Summary.of(body))
            except MalformedMessageError as error:
                raise FileError(
                    f"{self._path}, byte {place}: {error}: use the release that wrote the journal"
                ) from error
            self._entries.append(entry)
            self._by_name[entry.head.name] = entry
            return
        found = self._by_name.get(body[:16])
        if found is None:
            raise FileError(
                f"{self._path}: found the end of a change that is not in the journal, at byte "
                f"{place}: restore the journal from a backup"
            )
        if kind == MADE:
            found.after, found.dropped = body[16:], False
        else:
            found.dropped = True

    def _write(self, kind: int, body: bytes) -> None:
        with self._writing:
            if self._file is None:
                raise ArgumentError("found a change of a journal that is not locked")
            descriptor, when = self._file.fileno(), time.time_ns()
            data = encode(kind, when, body)
            try:
                write_at(descriptor, [data], self._end)
                os.fsync(descriptor)
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(descriptor, self._end)
                raise FileError(
                    f"{self._path}: the journal cannot be written ({error.strerror}), so that "
                    "nothing more was sent to the servers: make room, and try again"
                ) from error
            self._note(kind, when, body, self._end + HEAD_BYTES)
            self._end += len(data)

    @contextmanager
    def _lock_file(self) -> Iterator[BinaryIO]:
        """Opens and locks the file that has the path, also if it is replaced meanwhile."""
        until = time.monotonic() + LOCK_SECONDS
        while True:
            if not self._path.exists():
                with self._new_file(replace=False):
                    pass
            check_file(self._path, "the journal of a table")
            with self._path.open("r+b") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.fstat(file.fileno()).st_ino == self._path.stat().st_ino:
                        yield file
                        return
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise self._busy() from None
                    time.sleep(_STEP_SECONDS)

    @contextmanager
    def _new_file(self, *, replace: bool = True) -> Iterator[BinaryIO]:
        """Writes a new file, mode 0600, which gets the path as a whole."""
        path = self._path.resolve()  # a link stays one
        new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            try:
                file.write(file_head(self._table))
                yield file
                file.flush()
                os.fsync(file.fileno())
                if replace:
                    new.replace(path)
                else:
                    with suppress(FileExistsError):
                        os.link(new, path)
            finally:
                with suppress(FileNotFoundError):
                    new.unlink()
        sync_folder(path.parent)

    def _busy(self) -> FileError:
        return FileError(
            f"{self._path}: another operator changes the table with this journal now: try again "
            "when it has finished"
        )

    def _unusable(self, error: OSError) -> FileError:
        return FileError(f"the journal {self._path} cannot be used: {error.strerror or error}")
