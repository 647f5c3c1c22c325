"""Trees that make one-hot vectors of many entries, at one of both parties.

tests/spec/lut_tree.py is the specification, and says why the vectors are right.
"""

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray

BLOCK_BITS = 7
"""log2 of the entries for which a leaf stands: a vector of so many bits is made without trees."""

KEY_BYTES = 16
MESSAGE_BYTES = 16
_LOWEST = np.array([1, 0], np.uint64)


class Trees:
    """The trees of some tables, one level after the other.

    `nodes` (count, words) has memory for the vectors, where the trees grow. `products`
    (levels, count, 2) are shares of the bits of the path times the secret block, from the root,
    and `delta` is a share of this block. `key` is public, and new for each batch of tables.
    """

    def __init__(
        self,
        nodes: IndexArray,
        products: IndexArray,
        delta: IndexArray,
        key: bytes,
        pool: _core.ThreadPool,
    ) -> None:
        self.levels, self._level = len(products), 1
        self._nodes, self._products, self._delta = nodes, products, delta
        self._key, self._pool = key, pool
        nodes[:, 2:4] = products[0]
        nodes[:, 0:2] = products[0] ^ delta

    def message(self, vectors: IndexArray) -> ByteArray:
        """Writes the shares of the corrections of a level; below the last one, of the vectors.

        `vectors` (count, 2) are shares of the one-hot vectors of the low bits.
        """
        sums = _core.lut_sum_hashes(self._level, self._key, self._nodes, self._pool)
        if self._level < self.levels:
            sums ^= self._products[self._level]
            sums ^= self._delta
        else:
            sums ^= vectors
        self._own: IndexArray = sums
        return sums.reshape(-1).view(np.uint8)

    def read(self, message: ByteArray) -> None:
        """Grows the next level, or the vectors, with the other party's message."""
        other = np.frombuffer(message.tobytes(), np.uint64).reshape(self._own.shape)
        grow = _core.lut_grow_trees if self._level < self.levels else _core.lut_grow_leaves
        grow(self._level, self._key, self._own ^ other, self._nodes, self._pool)
        self._level += 1


def shared_delta(delta: IndexArray, *, is_server: bool) -> IndexArray:
    """Returns a party's share of the secret block: its lowest bit is 1 at the server only."""
    return without_lowest(delta) | _LOWEST * np.uint64(is_server)


def without_lowest(delta: IndexArray) -> IndexArray:
    """Clears the lowest bit of a block."""
    cleared: IndexArray = delta & ~_LOWEST
    return cleared
