"""One thread of NumPy's linear algebra: its own threads wait busily between products.

The maps of a layer are small. OpenBLAS with two threads takes more CPU time for them than with one,
and many times as much on a machine that has other work. A server divides a batch among threads
instead.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["one_blas_thread"]


@cache
def _controller() -> Any:  # noqa: ANN401 - of threadpoolctl, which has no types
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - clients do not need it

    return ThreadpoolController().select(user_api="blas")


class _Limit:
    """The limit of this process, and the blocks that need it."""

    def __init__(self) -> None:
        self._lock, self._blocks, self._limiter = threading.Lock(), 0, None

    def enter(self) -> None:
        """Sets the limit for the first block."""
        with self._lock:
            if not self._blocks:
                self._limiter = _controller().limit(limits=1)
            self._blocks += 1

    def leave(self) -> None:
        """Ends the limit after the last block."""
        with self._lock:
            self._blocks -= 1
            if not self._blocks and self._limiter is not None:
                self._limiter.restore_original_limits()
                self._limiter = None


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limits linear algebra to one thread, in all threads of this process, in a block.

    The number of before is there again after the last of several blocks at once.
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
