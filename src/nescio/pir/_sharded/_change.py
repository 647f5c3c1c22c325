"""A change of rows, from the table's head to the shards that have them."""

from dataclasses import dataclass

import numpy as np

from ..._arrays import ByteArray, IndexArray
from .._params import TableParams
from ._cut import Part


@dataclass(frozen=True, slots=True)
class RowUpdate:
    """Rows to overwrite: their numbers, (n,), and their bytes, (n, row_bytes).

    `before` is the id of the version to change, `after` the parameters of the one that it makes,
    which are not known while shards prepare it.
    """

    before: bytes
    indices: IndexArray
    rows: ByteArray
    after: TableParams | None = None

    def of(self, params: TableParams, part: Part) -> "RowUpdate":
        """Returns the rows of a shard's part."""
        first, end = part.rows(params)
        own = (self.indices >= np.uint64(first)) & (self.indices < np.uint64(end))
        return RowUpdate(self.before, self.indices[own], self.rows[own], self.after)

    @property
    def bytes(self) -> int:
        """The memory of the rows and of their numbers."""
        return self.indices.nbytes + self.rows.nbytes
