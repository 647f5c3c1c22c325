"""The consistency checks in plain Python: sums in GF(2^128).

Yang, Weng, Lan, Zhang, Wang, "Ferret" (CCS 2020), figure 9. Bit i of a block is the coefficient of
X^i, modulo X^128 + X^7 + X^2 + X + 1.
"""

from .blocks import BITS, aes128

ROW = 512
MODULUS = 1 << 128 | 0x87


def multiply(a: int, b: int) -> int:
    """The product of two field elements."""
    product = 0
    for i in range(BITS):
        if b >> i & 1:
            product ^= a << i
    for i in reversed(range(BITS, 2 * BITS)):
        if product >> i & 1:
            product ^= MODULUS << (i - BITS)
    return product


def chi(seed: bytes, position: int) -> int:
    """The coefficient of a leaf: a factor for its position in its row of 512, and one for the row.

    Any sum of leaves that are not all zero takes a value given before with probability 2^-127.
    """
    row, place = divmod(position, ROW)
    return multiply(aes128(seed, place), aes128(seed, 1 << 64 | row))


def chi_sum(leaves: list[int], seed: bytes) -> int:
    """The sum of chi[i] * leaves[i]."""
    total = 0
    for i, leaf in enumerate(leaves):
        total ^= multiply(chi(seed, i), leaf)
    return total


def pack(blocks: list[int]) -> int:
    """The sum of blocks[i] * X^i."""
    total = 0
    for i, block in enumerate(blocks):
        total ^= multiply(block, 1 << i)
    return total
