"""The server's folder: a store for each preparation, in a file that its session names.

SESSION.store     a store that clients may use
....new           one that was completed when the server stopped; it gets its name at the start
....part          one that was not; it is removed at the start
lock              held by the server that uses the folder
"""

import fcntl
import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import FileError
from .._store import Store
from ._request import NO_STORE, RefusalError

__all__ = ["StoreFolder"]

_NEW = re.compile(r"[0-9a-f]{16}\.new")
_HALF = re.compile(rf"{_NEW.pattern}\.[0-9a-f]{{1,16}}\.part")
_BUSY_SECONDS = 5.0  # for a connection that the client has left


class StoreFolder:
    """The stores of a server, one for each preparation, up to `max_bytes` together.

    Threads may share it. Raises FileError if the folder cannot be used, or another server uses it.
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int) -> None:
        self._folder, self._max_bytes = Path(folder), max_bytes
        self._reserved = 0
        self._used: set[str] = set()
        self._changed = threading.Condition()
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise FileError(f"{self._folder} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._recover()
        except OSError as error:
            os.close(self._lock)
            raise FileError(f"{self._folder} is in use by another server") from error

    def _recover(self) -> None:
        """Names what was complete when the server stopped, and removes what was not."""
        for path in list(self._folder.iterdir()):
            if _HALF.fullmatch(path.name):
                path.unlink(missing_ok=True)
            elif _NEW.fullmatch(path.name):
                with suppress(FileError):  # of a file that is no store
                    self._name(path)

    def _name(self, path: Path) -> None:
        with Store(path) as store:
            session = store.contents.session
        path.rename(self._path(session))

    def _path(self, session: str) -> Path:
        return self._folder / f"{session}.store"

    @contextmanager
    def new(self, size: int) -> Iterator[Path]:
        """Yields the path for a new store of `size` bytes, which gets its name after the block.

        Raises RefusalError if the folder would be larger than its limit.
        """
        with self._changed:
            found = sum(path.stat().st_size for path in self._folder.glob("*.store"))
            left = self._max_bytes - found - self._reserved
            if size > left:
                raise RefusalError(
                    f"the server's folder of stores: found {max(0, left):,} bytes left, expected "
                    f"{size:,}: prepare fewer inferences, or use those that are prepared"
                )
            self._reserved += size
        path = self._folder / f"{secrets.token_hex(8)}.new"
        try:
            yield path
            self._name(path)
        finally:
            with self._changed:
                self._reserved -= size

    @contextmanager
    def use(self, session: str) -> Iterator[Path]:
        """Yields the path of a session's store, for this connection alone.

        Raises RefusalError if the folder has no such store, or if another connection uses it.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: session not in self._used, _BUSY_SECONDS):
                raise RefusalError("another connection uses this preparation: try again later")
            if not self._path(session).is_file():
                raise RefusalError(
                    f"{NO_STORE} {session[:12]}: it was used up, "
                    "or made with another server; prepare more in a new store"
                )
            self._used.add(session)
        try:
            yield self._path(session)
        finally:
            with self._changed:
                self._used.remove(session)
                self._changed.notify_all()

    def remove(self, session: str) -> None:
        """Removes a store that is used up."""
        with self._changed:
            self._path(session).unlink(missing_ok=True)

    def close(self) -> None:
        """Lets another server use the folder."""
        os.close(self._lock)
