"""One thread of NumPy's linear algebra: its own threads wait busily between products.

The maps of a layer are small. OpenBLAS with two threads takes more CPU time for them than with one,
and many times as much on a machine that has other work. A server divides a batch among threads
instead.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["one_blas_thread"]


@cache
def _controller() -> Any:  # noqa: ANN401 - of threadpoolctl, which has no types
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - clients do not need it

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[object]:
    """Limits linear algebra to one thread, in all threads of this process, in a block.

    Does nothing while another thread has set a limit: of several blocks at once, the first counts.
    """
    limit: AbstractContextManager[object] = _controller().limit(limits=1)
    return limit
