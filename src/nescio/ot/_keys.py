"""The public keys of AES under which a session hashes what delta is in.

Both parties draw a nonce, and nothing but the two goes into the keys. Each extension has a base of
its own for its trees, and so have the transfers: the engine makes a key of it for each level of
each tree, and for each stretch of 64 transfers (core/ot/keys.h), so that a search for delta finds
one value to compare with, or 64, for each call of AES.

Source: Guo, Katz, Wang, Weng and Yu, "Better Concrete Security for Half-Gates Garbling (in the
Multi-instance Setting)", Crypto 2020.
"""

import hashlib

NONCE_BYTES = 16

_TAG = b"Nescio OT session keys 1\0"
_HASHING = 1 << 127


class SessionKeys:
    """Bases of keys, 16 bytes each, all different."""

    def __init__(self, sender_nonce: bytes, receiver_nonce: bytes) -> None:
        digest = hashlib.sha256(_TAG + sender_nonce + receiver_nonce).digest()
        self._base = int.from_bytes(digest[:16], "little")

    def trees(self, extension: int) -> bytes:
        """That of an extension's trees; a session counts its extensions from 0."""
        return self._with(extension << 64)

    def hashing(self) -> bytes:
        """That of the hash that makes random transfers of correlated ones."""
        return self._with(_HASHING)

    def _with(self, place: int) -> bytes:
        return (self._base ^ place).to_bytes(16, "little")
