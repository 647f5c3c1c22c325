"""A table of rows that a server serves."""

import hashlib
from collections.abc import Callable

import numpy as np

from .._arrays import Array, ByteArray, as_array
from ..dpf import Generator, Output
from ..errors import ArgumentError
from .params import TableParams

_DIGEST_PART = 32 << 20


class Table:
    """Rows to look up: any array of numbers, bools or fixed strings, of any shape.

    The first axis counts the rows. NumPy arrays (memory-mapped ones too), PyTorch and other DLPack
    arrays on the CPU, and buffers are taken; a C-contiguous one is used in place and must not
    change afterwards. The digest of the content is taken here, at about 1.5 GB/s.

    `output` is the group that shares add up in ("bit" is the fastest on a CPU), `generator` the
    keys' generator, `version` a text of the operator's choice that clients see. `progress`, if
    given, is called with the bytes digested so far and their total.

    Raises ArgumentError for an array without rows, or whose elements have no fixed bytes.
    """

    def __init__(
        self,
        array: object,
        *,
        version: str = "1",
        output: Output = "bit",
        generator: Generator = "chacha20",
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        values = as_array(array, "the table")
        if values.ndim == 0 or values.size == 0:
            raise ArgumentError(f"a table has at least one row and element: found {values.shape}")
        if values.dtype.hasobject or values.dtype.kind == "V":
            raise ArgumentError(f"a table of {values.dtype} has no fixed bytes to serve")
        values = np.ascontiguousarray(values)
        self._rows: ByteArray = values.reshape(len(values), -1).view(np.uint8)
        self._values = values
        self.params = TableParams(
            rows=len(values),
            row_shape=values.shape[1:],
            dtype=values.dtype,
            output=output,
            generator=generator,
            version=version,
            digest=_digest(self._rows, progress),
        )

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._values)

    def __repr__(self) -> str:
        """The table's parameters in one line."""
        return f"Table({self.params.describe()})"

    @property
    def values(self) -> Array:
        """The rows as they were given."""
        return self._values

    @property
    def rows(self) -> ByteArray:
        """The rows as bytes: shape (rows, row_bytes)."""
        return self._rows


def _digest(rows: ByteArray, progress: Callable[[int, int], None] | None) -> str:
    """SHA-256 of all rows, taken part by part so that a mapped file need not fit in memory."""
    state = hashlib.sha256()
    step = max(1, _DIGEST_PART // rows.shape[1])
    for first in range(0, len(rows), step):
        state.update(rows[first : first + step].data)
        if progress is not None:
            progress(min(first + step, len(rows)) * rows.shape[1], rows.size)
    return state.hexdigest()
