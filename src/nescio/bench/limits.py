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


_ROUNDS = {"chacha20": 20, "chacha12": 12, "chacha8": 8, "salsa20": 20}
_AES_ROUNDS = 10
_BLOCK_BYTES = 16
_STATE_BYTES = 64  # of ChaCha and Salsa20: 16 words
_STEPS_PER_ROUND = 16  # additions, each with an XOR and a rotation


def issue_seconds(rows: int, output: Output, generator: Generator, tier: str) -> float | None:
    """Returns one thread's time for the instructions of one key's tree and nothing else.

    Counts the rounds of AES, or the additions, XORs and rotations of ChaCha and Salsa20, at the
    rate of a loop of these instructions. None for other generators and the portable tier.
    """
    tree = Tree.of(rows, output, generator)
    width, seconds = _core.issue("aes" if generator == "aes128" else "words", tier)
    if not width:
        return None
    if generator == "aes128":
        calls = 2 * tree.expansions + _LEAF_BITS // 128 * tree.leaves
        return calls * _AES_ROUNDS * _BLOCK_BYTES / width * seconds
    if generator not in _ROUNDS:
        return None
    blocks = tree.expansions + tree.leaves
    steps = _ROUNDS[generator] * _STEPS_PER_ROUND * (_STATE_BYTES // 16)
    return blocks * steps / width * seconds


def product_issue_seconds(table_bytes: int, keys: int, output: Output, tier: str) -> float | None:
    """Returns one thread's time for the products' instructions and nothing else.

    An instruction multiplies a register of table bytes: for bits with the shares of eight keys
    (two instructions with AVX2), otherwise with those of one (two for bytes with AVX2). None for
    128-bit words and tiers without the instruction.
    """
    if output == "u128":
        return None
    width, seconds = _core.issue(output, tier)
    if not width:
        return None
    groups = math.ceil(keys / _KEY_GROUP) if output == "bit" else keys
    each = 2 if tier == "avx2" and output in {"bit", "u8"} else 1
    return groups * table_bytes / width * each * seconds


def pass_seconds(rows: _core.Table, pool: _core.ThreadPool, duration: float) -> float:
    """Returns the time in which the pool's threads read the table once, and do nothing else."""
    return median_seconds(lambda: rows.read_all(pool), duration)
