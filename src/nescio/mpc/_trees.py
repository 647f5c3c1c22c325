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

    @property
    def _at_leaves(self) -> bool:
        return self._level == self.levels

    def message(self, vectors: IndexArray) -> ByteArray:
        """Expands a level, and writes the shares of its corrections; at the leaves, of the vectors.

        `vectors` (count, 2) are shares of the one-hot vectors of the low bits.
        """
        own, self._controls = _core.lut_expand_trees(
            self._level, self._at_leaves, self._key, self._nodes, self._pool
        )
        if self._at_leaves:
            own ^= vectors
        else:
            own ^= self._products[self._level]
            own ^= self._delta
        self._own: IndexArray = own
        return own.reshape(-1).view(np.uint8)

    def read(self, message: ByteArray) -> None:
        """Corrects the next level, or the vectors, with the other party's message."""
        other = np.frombuffer(message.tobytes(), np.uint64).reshape(self._own.shape)
        _core.lut_correct_trees(
            self._level, self._at_leaves, self._own ^ other, self._controls, self._nodes, self._pool
        )
        self._level += 1


def shared_delta(delta: IndexArray, *, is_server: bool) -> IndexArray:
    """Returns a party's share of the secret block: its lowest bit is 1 at the server only."""
    return without_lowest(delta) | _LOWEST * np.uint64(is_server)


def without_lowest(delta: IndexArray) -> IndexArray:
    """Clears the lowest bit of a block."""
    cleared: IndexArray = delta & ~_LOWEST
    return cleared
