"""Blocks of 128 bits as Python integers, and the permutation used by oblivious transfer.

Byte 0 of a block is its lowest byte: bit 0 is the lowest bit of byte 0.
"""

from functools import cache

from .prg import aes128_encrypt

BITS = 128
MASK = (1 << BITS) - 1


def to_block(data: bytes) -> int:
    """Convert sixteen bytes to a block."""
    return int.from_bytes(data, "little")


def to_bytes(block: int) -> bytes:
    """Convert a block to sixteen bytes."""
    return block.to_bytes(16, "little")


@cache
def aes128(key: bytes, block: int) -> int:
    """Encrypt a block with AES-128."""
    return to_block(aes128_encrypt(key, to_bytes(block)))


def sigma(block: int) -> int:
    """sigma(hi || lo) = (hi ^ lo) || hi, a linear orthomorphism (Guo, Katz, Wang, Yu 2020)."""
    low, high = block & (MASK >> 64), block >> 64
    return (high ^ low) << 64 | high


def xor_sum(blocks: list[int]) -> int:
    """Return the XOR of blocks; zero for an empty list."""
    total = 0
    for block in blocks:
        total ^= block
    return total
