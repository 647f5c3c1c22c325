"""The public keys and seeds of a session, all derived from nonces of both parties.

Each extension has its own key base for its trees, and the transfers have another. From a base the
engine derives one AES key for each level of each tree, and one for each range of 64 transfers
(core/ot/keys.h). In a search for delta, one AES call then tests one value of the trees, or 64
values of the transfers.

Each extension has its own LPN code. With one code for all of them, an attacker would invert a part
of its matrix once and test the result on every extension (`nescio.ot.estimate.gauss_one_code`).

Source: Guo, Katz, Wang, Weng and Yu, "Better Concrete Security for Half-Gates Garbling (in the
Multi-instance Setting)", Crypto 2020.
"""

import hashlib

NONCE_BYTES = 16
SEED_BYTES = 16

_TAG = b"Nescio OT session keys 1\0"
_CODE_TAG = b"Nescio OT code 1\0"
_PROOF_TAG = b"Nescio OT consistency 2\0"
_HASHING = 1 << 127


class ExtensionKeys:
    """The public values of one extension of a session; a session counts extensions from 0."""

    def __init__(self, session: bytes, number: int) -> None:
        self._context = session + number.to_bytes(8, "little")
        base = int.from_bytes(session[:16], "little")
        self.trees = (base ^ number << 64).to_bytes(16, "little")
        """The base of the trees' AES keys, 16 bytes."""

    def code(self, challenge: bytes) -> bytes:
        """Returns the seed of the extension's LPN code, 16 bytes.

        `challenge` is the receiver's CHAL message in a malicious session, else empty. The receiver
        draws it after all messages of the sender, so a sender cannot search for a nonce that gives
        a weak code. A receiver that does so weakens only what hides its own choices.
        """
        return hashlib.sha256(_CODE_TAG + self._context + challenge).digest()[:SEED_BYTES]

    def proof(self, challenge: bytes, combined: bytes) -> bytes:
        """Hashes the combination of all leaves for the PROF message, 32 bytes.

        A receiver that changes its challenge makes the sender hash a value that contains delta. The
        context is part of every hash, so a hash that an attacker computes tests one extension.
        """
        return hashlib.sha256(_PROOF_TAG + self._context + challenge + combined).digest()


class SessionKeys:
    """The public keys of a session: one base for transfers, and the keys of each extension."""

    def __init__(self, sender_nonce: bytes, receiver_nonce: bytes) -> None:
        self.session = hashlib.sha256(_TAG + sender_nonce + receiver_nonce).digest()
        """A hash of both nonces, 32 bytes: the session's public name."""

    def extension(self, number: int) -> ExtensionKeys:
        """Returns the keys of an extension; a session counts extensions from 0."""
        return ExtensionKeys(self.session, number)

    def hashing(self) -> bytes:
        """Returns the base for the hash that turns correlated transfers into random ones."""
        base = int.from_bytes(self.session[:16], "little")
        return (base ^ _HASHING).to_bytes(16, "little")
