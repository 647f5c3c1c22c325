"""The progress of a long run, on one line of a terminal."""

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Progress"]


class Progress:
    """Shows texts on one line of a terminal; nothing if standard error is not one."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._shows = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> "Progress":
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        """Clears the line."""
        if self._shows:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def __call__(self, text: str) -> None:
        """Replaces the line."""
        if self._shows:
            spent = time.monotonic() - self._start
            line = f"nescio: {spent:.0f} s: {text}"[:100]
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
