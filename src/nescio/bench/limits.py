"""What the machine could do at most, measured in the same run as what it does."""

import math
from typing import NamedTuple

from .. import _core
from ..dpf import Generator, Output
from .timing import median_seconds

_WIDE = ("chacha20", "chacha12", "chacha8", "salsa20")  # whose trees have arity 4
_BITS = {"bit": 1, "u8": 8, "u32": 32, "u64": 64, "u128": 128}
_LEAF_BITS = 512
_KEY_GROUP = 8


class Tree(NamedTuple):
    """The calls of the generator that a key's tree needs: for children, and for leaves.

    It has as many leaves as hold the shares, 512 bits each, and above them a node for every two
    (or, of ChaCha and Salsa20, four) below.
    """

    expansions: int
    leaves: int

    @classmethod
    def of(cls, rows: int, output: Output, generator: Generator) -> "Tree":
        """The tree of a table's keys."""
        leaves = math.ceil(rows * _BITS[output] / _LEAF_BITS)
        arity = 4 if generator in _WIDE else 2
        expansions, level = 0, leaves
        while level > 1:
            level = math.ceil(level / arity)
            expansions += level
        return cls(expansions, leaves)


def expansion_seconds(rows: int, output: Output, generator: Generator, tier: str) -> float:
    """One thread's time for one key's tree: the generator alone, its data always in the cache."""
    tree = Tree.of(rows, output, generator)
    return tree.leaves * _core.seconds_per_node(
        generator, True, tier
    ) + tree.expansions * _core.seconds_per_node(generator, False, tier)


def product_seconds(table_bytes: int, keys: int, output: Output, tier: str) -> float:
    """One thread's time for the product of keys' shares with a table, everything in the cache.

    Outside the portable tier eight keys of bit output are multiplied at once, wanted or not.
    """
    if output == "bit" and tier != "portable":
        keys = math.ceil(keys / _KEY_GROUP) * _KEY_GROUP
    return keys * table_bytes * _core.seconds_per_byte(output, tier)


def pass_seconds(rows: _core.Table, pool: _core.ThreadPool, duration: float) -> float:
    """The time in which the pool's threads read a table once and do nothing else."""
    return median_seconds(lambda: rows.read_all(pool), duration)
