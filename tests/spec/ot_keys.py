"""The public AES keys under which trees and transfers are hashed, in plain Python.

Many keys are used, so that an attacker who searches for delta can compare each evaluation with few
hidden values: Guo, Katz, Wang, Weng and Yu, "Better Concrete Security for Half-Gates Garbling"
(Crypto 2020). A base is sixteen bytes, a block in little-endian order.
"""

import hashlib

from .blocks import to_block, to_bytes

LEVEL_BITS = 6
PERIOD_BITS = 6


def session_base(sender_nonce: bytes, receiver_nonce: bytes) -> int:
    """Derive the base of a session; its keys are the base XOR their number."""
    tag = b"Nescio OT session keys 1\0"
    return to_block(hashlib.sha256(tag + sender_nonce + receiver_nonce).digest()[:16])


def trees_base(session: int, extension: int) -> bytes:
    """Return the base for the trees of extension number `extension` of a session, from 0."""
    return to_bytes(session ^ extension << 64)


def hashing_base(session: int) -> bytes:
    """Return the base for the hash of transfers."""
    return to_bytes(session ^ 1 << 127)


def tree_key(base: bytes, tree: int, level: int) -> bytes:
    """Return the key for the nodes of a level; the root is level 0."""
    return to_bytes(to_block(base) ^ (tree << LEVEL_BITS | level))


def transfer_key(base: bytes, index: int) -> bytes:
    """Return the key of a transfer; 64 consecutive transfers, a key period, share one."""
    return to_bytes(to_block(base) ^ index >> PERIOD_BITS)
