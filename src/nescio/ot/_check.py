"""The messages of one extension, and the check that the sender's trees were grown correctly.

One extension, after the base OTs of the first:

    sender                                   receiver
    grows trees from random seeds            has a choice for each level: the side it does not take
      TREE: sums of left nodes, masked  ->
                                        <-   CHAL, only if malicious: coefficients' seed, mask
                                             opens one side per level, grows all leaves but one
      PROF: hash of its combination     ->   compares with its own
                                        <-   PASS

`Sender._grow` and `Receiver._grow` do the first part, the classes here CHAL, PROF and PASS. The
sender multiplies its leaves by the code before it waits for PASS, and returns no transfers of the
extension without it.

Security model: two parties, semi-honest, or malicious with abort (`malicious=True`). The check
catches a cheating sender, except that the sender may guess punctured positions once: a wrong guess
ends the protocol. A cheating receiver can change nothing but its challenge. The sender then hashes
a value that differs from the receiver's by a multiple of delta, and the receiver can search for
delta, 127 bits, with that hash. Session, extension and challenge are part of the hash, SHA-256 as a
random oracle, so one call of it tests one extension: neither a table made before nor many
extensions make the search cheaper. Both rest on H being circular correlation robust (Guo et al.
2023, section 4) with AES under public keys, one key per level of a tree, as an ideal cipher.

Source: Guo, Yang, Wang, Zhang, Xie, Liu and Zhao, "Half-Tree" (2023), Figures 5 and 6; Yang et al.,
"Ferret" (2020), Figure 9 for the check.
"""

import hashlib
import hmac

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray
from ..errors import ConsistencyError
from ..net import Channel
from ._blocks import block_bytes, low_bits, wipe
from ._engine import Blocks, Kernels
from ._families import ExtensionPlan
from ._keys import SEED_BYTES, ExtensionKeys
from ._randomness import Randomness


class SenderCheck:
    """Proves to the receiver that the trees were grown correctly."""

    def __init__(
        self,
        channel: Channel,
        delta: IndexArray,
        blocks: IndexArray,
        kernels: Kernels,
        *,
        keys: ExtensionKeys,
    ) -> None:
        self._channel = channel
        self._delta = delta
        self._blocks = blocks
        self._kernels = kernels
        self._keys = keys

    def run(self, leaves: Blocks) -> bytes:
        """Sends the hash of the linear combination of all leaves, and returns the challenge."""
        challenge = bytes(self._channel.receive("CHAL", 2 * SEED_BYTES))
        seed, masked = challenge[:SEED_BYTES], challenge[SEED_BYTES:]
        bits = np.unpackbits(np.frombuffer(masked, np.uint8), bitorder="little")
        corrected = self._delta * bits.astype(np.uint64)[:, np.newaxis]
        corrected ^= self._blocks
        combined = self._kernels.chi_sum(leaves, seed) ^ _core.pack_bits(corrected)
        wipe(corrected)
        self._channel.send("PROF", self._keys.proof(challenge, block_bytes(combined).tobytes()))
        return challenge

    def finish(self) -> None:
        """Waits until the receiver accepts the proof; raises PeerRefusedError if it does not."""
        self._channel.receive("PASS", 0)


class ReceiverCheck:
    """Challenges the sender after all its messages about the trees, and checks its proof."""

    def __init__(
        self,
        channel: Channel,
        randomness: Randomness,
        positions: IndexArray,
        blocks: IndexArray,
        kernels: Kernels,
        *,
        keys: ExtensionKeys,
    ) -> None:
        self._channel = channel
        self._blocks = blocks
        self._kernels = kernels
        self._keys = keys
        self._seed = randomness.draw(SEED_BYTES)
        phi = np.bitwise_xor.reduce(_core.chi_at(positions, self._seed), axis=0)
        masks = np.packbits(low_bits(blocks), bitorder="little")
        self._challenge = self._seed + block_bytes(phi ^ masks.view(np.uint64)).tobytes()
        channel.send("CHAL", self._challenge)

    def run(self, leaves: Blocks) -> bytes:
        """Compares both parties' linear combinations, and returns the challenge.

        Raises ConsistencyError if they differ.
        """
        combined = self._kernels.chi_sum(leaves, self._seed) ^ _core.pack_bits(self._blocks)
        expected = self._keys.proof(self._challenge, block_bytes(combined).tobytes())
        found = self._channel.receive("PROF", hashlib.sha256().digest_size)
        if not hmac.compare_digest(bytes(found), expected):
            raise ConsistencyError(
                "the consistency check of the sender's trees failed: the sender cheats, or its "
                "computation is faulty; end the session"
            )
        self._channel.send("PASS", b"")
        return self._challenge

    def finish(self) -> None:
        """Does nothing: `run` has raised or passed."""


def punctured_positions(choices: ByteArray, plan: ExtensionPlan) -> IndexArray:
    """Computes each tree's punctured leaf, as a position among the leaves of all trees.

    The path to that leaf takes the opposite side of the choice at each level.
    """
    digits = (1 - choices.reshape(plan.trees, plan.depth)).astype(np.uint64)
    weights = np.uint64(1) << np.arange(plan.depth, dtype=np.uint64)[::-1]
    starts = np.arange(plan.trees, dtype=np.uint64) << np.uint64(plan.depth)
    positions: IndexArray = starts + (digits * weights).sum(axis=1, dtype=np.uint64)
    return positions
