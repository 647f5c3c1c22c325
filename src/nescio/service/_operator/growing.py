"""Growth of a table in the background of its operator's calls."""

import threading
from collections.abc import Callable
from contextlib import suppress

from ...errors import NescioError

LEAST_VACANT = 16
"""A table grows if fewer than its rows divided by this are vacant: half of the last growth."""


class Grower:
    """Grows a table on a thread of its own before its vacant rows run out."""

    def __init__(self, grow: Callable[[], object]) -> None:
        self._grow = grow
        self._thread: threading.Thread | None = None

    def after_append(self, rows: int, vacant: int) -> None:
        """Begins to grow a table of `rows` rows if too few of them are vacant."""
        if vacant * LEAST_VACANT < rows and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._run, name="nescio-growth", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Waits until a growth that has begun is over."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with suppress(NescioError):  # the next append grows the table, or says why it cannot
            self._grow()
