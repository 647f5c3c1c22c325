"""Correlated GGM trees and their punctured copies, in plain Python.

Guo, Yang, Wang, Zhang, Xie, Liu, Zhao, "Half-Tree: Halving the Cost of Tree Expansion in COT and
DPF" (Eurocrypt 2023), figure 3 (cGGM) and section 4. Levels are lists of nodes from left to right;
the nodes of each level XOR to delta. Blocks are integers, see blocks.py. Nodes are hashed under the
key of their tree and level, see ot_keys.py.
"""

from .blocks import aes128, sigma, xor_sum
from .ot_keys import tree_key


def hash_node(x: int, key: bytes) -> int:
    """Return H(x) = pi(sigma(x)) ^ sigma(x), which is circular correlation robust (section 2.4)."""
    return aes128(key, sigma(x)) ^ sigma(x)


def next_level(nodes: list[int], key: bytes) -> list[int]:
    """Expand the nodes of a level: the children of x are H(x) (left) and H(x) ^ x (right)."""
    return [child for x in nodes for child in (hash_node(x, key), hash_node(x, key) ^ x)]


def cleared(leaf: int) -> int:
    """Clear the lowest bit of a leaf."""
    return leaf >> 1 << 1


def grow(seed: int, delta: int, depth: int, base: bytes, tree: int) -> tuple[list[int], list[int]]:
    """Return the sender's leaves, lowest bits cleared, and the XOR of each level's left nodes."""
    nodes, sums = [seed, seed ^ delta], [seed]
    while len(sums) < depth:
        nodes = next_level(nodes, tree_key(base, tree, len(sums)))
        sums.append(xor_sum(nodes[0::2]))
    return [cleared(leaf) for leaf in nodes], sums


def path_of(choices: list[int]) -> int:
    """Return the punctured leaf: on each level the path takes the side that was not chosen."""
    path = 0
    for choice in choices:
        path = 2 * path + 1 - choice
    return path


def puncture(sides: list[int], choices: list[int], base: bytes, tree: int) -> list[int]:
    """Return the receiver's leaves; only the punctured leaf has its lowest bit set.

    `sides[l]` is the XOR of the nodes on side `choices[l]` of level l + 1, where 0 is left.
    """
    nodes, path = [0], 0  # one level; the node on the path is unknown and stored as zero
    for level, (side, choice) in enumerate(zip(sides, choices, strict=True)):
        children = next_level(nodes, tree_key(base, tree, level))
        children[2 * path] = children[2 * path + 1] = 0
        children[2 * path + choice] = side ^ xor_sum(children[choice::2])
        nodes, path = children, 2 * path + 1 - choice
    nodes[path] = xor_sum(nodes)
    return [cleared(leaf) | (i == path) for i, leaf in enumerate(nodes)]
