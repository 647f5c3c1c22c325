"""A readers-writer lock."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Turn:
    """The work of a writer, until it is done."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.done = False
        self.error: BaseException | None = None


class SharedLock:
    """A lock that many readers share, or one writer has alone.

    A waiting writer goes before readers that arrive later, so a stream of readers cannot starve it.
    The last reader to leave does the work of writers that wait: if it had to wake another thread
    first, nobody would read for as long as the interpreter takes to switch threads, some
    milliseconds in a busy process, and longer than most writes.

    A thread that reads may read again, also while a writer waits. It cannot write: that would wait
    for itself.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers: Counter[int] = Counter()  # how often each thread reads
        self._turns: deque[_Turn] = deque()
        self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Holds the lock as a reader."""
        own = threading.get_ident()
        with self._changed:
            if own not in self._readers:
                self._changed.wait_for(lambda: not self._writing and not self._turns)
            self._readers[own] += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers[own] -= 1
                if not self._readers[own]:
                    del self._readers[own]
                writes = self._begins()
            if writes:
                self._write_all()

    @property
    def is_mine(self) -> bool:
        """True if this thread holds the lock as a reader."""
        with self._changed:
            return threading.get_ident() in self._readers

    def write(self, work: Callable[[], None]) -> None:
        """Calls `work` while nobody else has the lock, in this thread or in that of a reader.

        This thread is not a reader. Raises what `work` raises.
        """
        turn = _Turn(work)
        with self._changed:
            self._turns.append(turn)
            writes = self._begins()
        if writes:
            self._write_all()
        with self._changed:
            self._changed.wait_for(lambda: turn.done)
        if turn.error is not None:
            raise turn.error

    def _begins(self) -> bool:
        """Tests if writers wait and nobody has the lock; if so, the caller has it."""
        if self._writing or self._readers or not self._turns:
            return False
        self._writing = True
        return True

    def _write_all(self) -> None:
        """Does the work of all writers that wait, and gives the lock away."""
        while True:
            with self._changed:
                if not self._turns:
                    self._writing = False
                    self._changed.notify_all()
                    return
                turn = self._turns.popleft()
            try:
                turn.work()
            except BaseException as error:  # of the writer, who gets it
                turn.error = error
            turn.done = True
