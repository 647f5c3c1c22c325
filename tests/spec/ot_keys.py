"""The public AES keys that hash trees and transfers, in plain Python.

There are many keys, so that each AES call in a search for delta tests few hidden values: Guo,
Katz, Wang, Weng and Yu, "Better Concrete Security for Half-Gates Garbling" (Crypto 2020). A base is
sixteen bytes, a block in little-endian order.
"""

import hashlib

from .blocks import to_block, to_bytes

LEVEL_BITS = 6
STRETCH_BITS = 6


def session_base(sender_nonce: bytes, receiver_nonce: bytes) -> int:
    """Derives the base of a session; its keys are this base XOR their number."""
    tag = b"Nescio OT session keys 1\0"
    return to_block(hashlib.sha256(tag + sender_nonce + receiver_nonce).digest()[:16])


def trees_base(session: int, extension: int) -> bytes:
    """The base for the trees of an extension, which a session counts from 0."""
    return to_bytes(session ^ extension << 64)


def hashing_base(session: int) -> bytes:
    """The base for the hash of transfers."""
    return to_bytes(session ^ 1 << 127)


def tree_key(base: bytes, tree: int, level: int) -> bytes:
    """The key for the nodes of a level, the root being level 0."""
    return to_bytes(to_block(base) ^ (tree << LEVEL_BITS | level))


def transfer_key(base: bytes, index: int) -> bytes:
    """The key for a transfer, shared by its range of 64 transfers."""
    return to_bytes(to_block(base) ^ index >> STRETCH_BITS)
