"""The arithmetic of the consistency checks in plain Python: sums in GF(2^128).

Yang, Weng, Lan, Zhang, Wang, "Ferret" (CCS 2020), figure 9. Bit i of a block is the coefficient of
X^i, modulo X^128 + X^7 + X^2 + X + 1.
"""

from .blocks import BITS, aes128

ROW = 512
MODULUS = 1 << 128 | 0x87


def multiply(a: int, b: int) -> int:
    """Multiply two field elements."""
    product = 0
    for i in range(BITS):
        if b >> i & 1:
            product ^= a << i
    for i in reversed(range(BITS, 2 * BITS)):
        if product >> i & 1:
            product ^= MODULUS << (i - BITS)
    return product


def chi(seed: bytes, position: int) -> int:
    """Return the coefficient of a leaf: one factor for its column in a row of 512, one for the row.

    The sum of leaves that are not all zero equals any fixed value with probability at most 2^-127.
    """
    row, column = divmod(position, ROW)
    return multiply(aes128(seed, column), aes128(seed, 1 << 64 | row))


def chi_sum(leaves: list[int], seed: bytes) -> int:
    """Return the sum of chi[i] * leaves[i]."""
    total = 0
    for i, leaf in enumerate(leaves):
        total ^= multiply(chi(seed, i), leaf)
    return total


def pack(blocks: list[int]) -> int:
    """Return the sum of blocks[i] * X^i."""
    total = 0
    for i, block in enumerate(blocks):
        total ^= multiply(block, 1 << i)
    return total
