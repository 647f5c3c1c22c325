"""A readers-writer lock."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """A lock that many readers share, or one writer holds alone.

    A waiting writer goes before readers that arrive later, so a stream of readers cannot starve it.
    A thread that reads may read again, also while a writer waits. It cannot write: that would wait
    for itself.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers: Counter[int] = Counter()  # how often each thread reads
        self._writers_waiting = 0
        self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Holds the lock as a reader."""
        own = threading.get_ident()
        with self._changed:
            if own not in self._readers:
                self._changed.wait_for(lambda: not self._writing and not self._writers_waiting)
            self._readers[own] += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers[own] -= 1
                if not self._readers[own]:
                    del self._readers[own]
                self._changed.notify_all()

    @property
    def is_mine(self) -> bool:
        """True if this thread holds the lock as a reader."""
        with self._changed:
            return threading.get_ident() in self._readers

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Holds the lock as the writer, in a thread that is not a reader."""
        with self._changed:
            self._writers_waiting += 1
            try:
                self._changed.wait_for(lambda: not self._writing and not self._readers)
            finally:
                self._writers_waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
