"""One-hot vectors of many entries from trees of both parties, in plain Python.

A vector of 2^bits entries has 2^high blocks of 2^LOW_BITS entries, high = bits - LOW_BITS. The low
bits of the place s select an entry of a block, and lut.py has their vector. The high bits select
the block: the parties' trees have a leaf for each block, the same at both but for that one.

The trees are correlated (Guo, Yang, Wang, Zhang, Xie, Liu, Zhao, "Half-Tree", Eurocrypt 2023,
section 5). A party has a secret d_p with lowest bit 1 - p, and d = d_0 ^ d_1. On each level the
parties' nodes are equal, but for the node on the path of s, where they differ by d. So the lowest
bits, which are control bits, differ only there. For bit a of the path, an XOR of a bit of each
party, they have shares of a * d from correlated transfers, which cost no message:

    party p sends     with correlation d_p (lowest bit 1): the other gets t_q = r_p ^ a_q * d_p
    its share is      r_p ^ t_p ^ a_p * d_p                where t_p is what it got

The first level is these shares themselves: (share of d) ^ (share of a * d), then (share of a * d).
Below, the children of x are H(x) ^ c and H(x) ^ x ^ c if the control bit of x is 1, else the same
without c. The correction c is public: H(x) of both parties' nodes, ^ d if a is 0. Each party sends
the XOR of its part, a block. On the path the children then differ by d where the path goes on, and
by 0 where it does not.

Last, the parties send shares of one more block: H(x) of all leaves ^ the vector of the low bits.
Where the control bit of a leaf is 1 it is added to H(x): the entries of the block.

A message is 128 bits for each level but the first, and for the leaves, in each direction. All of
these are masked by H of a block that the other party does not know: see docs/security.md.
"""

from .blocks import BITS, to_block, to_bytes, xor_sum
from .ot_trees import cleared, hash_node, next_level

LOW_BITS = 7
GROUP_BITS = 6
LEVEL_BITS = 4


def level_key(base: bytes, table: int, level: int) -> bytes:
    """Return the AES key for the nodes of a level, 1 to high, of 2^GROUP_BITS tables.

    `base` is drawn for each batch of tables, whose numbers are from 0. An attacker who searches for
    d compares an evaluation with one hidden value a table.
    """
    return to_bytes(to_block(base) ^ (table >> GROUP_BITS << LEVEL_BITS | level))


def with_lowest_bit(block: int, bit: int) -> int:
    """Return a block with another lowest bit."""
    return cleared(block) | bit


def product_share(bit: int, delta: int, sent: int, received: int) -> int:
    """Return a party's share of the product of d and a bit of the path.

    The lowest bit of `delta`, the correlation of the transfers, is 1. That of `sent ^ received`,
    over both parties, is the bit of the path already.
    """
    return sent ^ received ^ bit * cleared(delta)


def first_level(party: int, delta: int, product: int) -> list[int]:
    """Return the nodes of level 1 from the share of the product with the first bit of the path."""
    return [with_lowest_bit(delta, 1 - party) ^ product, product]


def node_share(party: int, nodes: list[int], delta: int, product: int, key: bytes) -> int:
    """Return a party's share of the correction of the children of `nodes`."""
    hashes = xor_sum([hash_node(x, key) for x in nodes])
    return hashes ^ with_lowest_bit(delta, 1 - party) ^ product


def leaf_share(leaves: list[int], low_vector: int, key: bytes) -> int:
    """Return a party's share of the correction of the blocks, for its share of the low bits."""
    return xor_sum([hash_node(x, key) for x in leaves]) ^ low_vector


def grow(nodes: list[int], correction: int, key: bytes) -> list[int]:
    """Return the next level."""
    children = next_level(nodes, key)
    return [child ^ (nodes[i // 2] & 1) * correction for i, child in enumerate(children)]


def vector(leaves: list[int], correction: int, key: bytes) -> int:
    """Return a party's share of the one-hot vector."""
    blocks = [hash_node(x, key) ^ (x & 1) * correction for x in leaves]
    return sum(block << BITS * place for place, block in enumerate(blocks))


def path(place: int, bits: int) -> list[int]:
    """Return the high bits of a place, from the highest: the path from the root to its leaf."""
    return [place >> bit & 1 for bit in range(bits - 1, LOW_BITS - 1, -1)]
