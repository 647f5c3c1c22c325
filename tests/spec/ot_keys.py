"""The public keys and seeds of a session, in plain Python.

AES keys hash trees and transfers. Many keys are used, so that an attacker who searches for delta
can compare each evaluation with few hidden values: Guo, Katz, Wang, Weng and Yu, "Better Concrete
Security for Half-Gates Garbling" (Crypto 2020). A base is sixteen bytes, a block in little-endian
order.
"""

import hashlib

from .blocks import to_block, to_bytes

LEVEL_BITS = 6
PERIOD_BITS = 6


def session_digest(sender_nonce: bytes, receiver_nonce: bytes) -> bytes:
    """Hash both parties' nonces."""
    return hashlib.sha256(b"Nescio OT session keys 1\0" + sender_nonce + receiver_nonce).digest()


def session_base(sender_nonce: bytes, receiver_nonce: bytes) -> int:
    """Derive the base of a session; its AES keys are the base XOR their number."""
    return to_block(session_digest(sender_nonce, receiver_nonce)[:16])


def code_seed(session: bytes, extension: int, challenge: bytes) -> bytes:
    """Return the seed of an extension's LPN code; `challenge` is empty without the check."""
    message = b"Nescio OT code 1\0" + session + extension.to_bytes(8, "little") + challenge
    return hashlib.sha256(message).digest()[:16]


def proof(session: bytes, extension: int, challenge: bytes, combined: int) -> bytes:
    """Return the PROF message for the sender's combination of all leaves."""
    message = b"Nescio OT consistency 2\0" + session + extension.to_bytes(8, "little") + challenge
    return hashlib.sha256(message + to_bytes(combined)).digest()


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
