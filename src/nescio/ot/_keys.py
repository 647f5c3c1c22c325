"""The public AES keys under which a session hashes values that contain delta.

Both parties draw a nonce, and the keys depend only on the two nonces. Each extension has its own
key base for its trees, and the transfers have another. From a base the engine derives one key for
each level of each tree, and one for each range of 64 transfers (core/ot/keys.h). In a search for
delta, one AES call then tests one value of the trees, or 64 values of the transfers.

Source: Guo, Katz, Wang, Weng and Yu, "Better Concrete Security for Half-Gates Garbling (in the
Multi-instance Setting)", Crypto 2020.
"""

import hashlib

NONCE_BYTES = 16

_TAG = b"Nescio OT session keys 1\0"
_HASHING = 1 << 127


class SessionKeys:
    """The key bases of a session, 16 bytes each, all different."""

    def __init__(self, sender_nonce: bytes, receiver_nonce: bytes) -> None:
        digest = hashlib.sha256(_TAG + sender_nonce + receiver_nonce).digest()
        self._base = int.from_bytes(digest[:16], "little")

    def trees(self, extension: int) -> bytes:
        """Returns the base for the trees of an extension; a session counts extensions from 0."""
        return self._with(extension << 64)

    def hashing(self) -> bytes:
        """Returns the base for the hash that turns correlated transfers into random ones."""
        return self._with(_HASHING)

    def _with(self, tweak: int) -> bytes:
        return (self._base ^ tweak).to_bytes(16, "little")
