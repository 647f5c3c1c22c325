"""Lower bounds on this CPU, measured in the same run as the benchmark."""

import math
from typing import NamedTuple

from .. import _core
from .._timing import median_seconds
from ..dpf import Generator, Output

_ARITY_4 = ("chacha20", "chacha12", "chacha8", "salsa20")
_BITS = {"bit": 1, "u8": 8, "u32": 32, "u64": 64, "u128": 128}
_LEAF_BITS = 512
_KEY_GROUP = 8


class Tree(NamedTuple):
    """The calls of the generator for one key's tree: to expand nodes, and to make leaves.

    The tree has as many leaves of 512 bits as hold the shares. A node has two children, or four
    with ChaCha and Salsa20.
    """

    expansions: int
    leaves: int

    @classmethod
    def of(cls, rows: int, output: Output, generator: Generator) -> "Tree":
        """Returns the tree of a key for a table."""
        leaves = math.ceil(rows * _BITS[output] / _LEAF_BITS)
        arity = 4 if generator in _ARITY_4 else 2
        expansions, level = 0, leaves
        while level > 1:
            level = math.ceil(level / arity)
            expansions += level
        return cls(expansions, leaves)


def expansion_seconds(rows: int, output: Output, generator: Generator, tier: str) -> float:
    """Returns one thread's time for the generator calls of one key, with data in the cache."""
    tree = Tree.of(rows, output, generator)
    return tree.leaves * _core.seconds_per_node(
        generator, True, tier
    ) + tree.expansions * _core.seconds_per_node(generator, False, tier)


def product_seconds(table_bytes: int, keys: int, output: Output, tier: str) -> float:
    """Returns one thread's time for the products of keys' shares with a table in the cache.

    Except in the portable tier, bit outputs are multiplied in groups of eight keys; a smaller group
    costs as much.
    """
    if output == "bit" and tier != "portable":
        keys = math.ceil(keys / _KEY_GROUP) * _KEY_GROUP
    return keys * table_bytes * _core.seconds_per_byte(output, tier)


def pass_seconds(rows: _core.Table, pool: _core.ThreadPool, duration: float) -> float:
    """Returns the time in which the pool's threads read the table once, and do nothing else."""
    return median_seconds(lambda: rows.read_all(pool), duration)
