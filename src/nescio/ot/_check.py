"""What sender and receiver of correlated OTs do in their own way: seeds, trees, and their check.

One extension, after the base OTs of the first:

    sender                                   receiver
    grows trees from random seeds            knows a choice for each level: the way it does not go
      TREE: sums of left nodes, masked  ->
                                        <-   CHAL, only if malicious: coefficients' seed, mask
                                             opens one side a level, grows all leaves but one
      PROF: hash of its combination     ->   compares with its own

Security model: two parties, semi-honest, or malicious with abort (`malicious=True`): a cheating
sender is caught by the check but for one guess of punctured positions, of which a wrong one ends
the protocol; the receiver has nothing to cheat with but its answer to the check, which then fails
itself. Both rest on H being circular correlation robust (Guo et al. 2023, section 4) with AES under
public keys, one a level of a tree, as an ideal cipher.

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
from ._engine import Blocks, Kernels
from ._extension import packed
from ._families import Shape
from ._iknp import seed_receiver, seed_sender
from ._randomness import Randomness

_PROOF_TAG = b"Nescio OT consistency\0"
_SEED_BYTES = 16


class SenderRole:
    """Holds delta; its blocks have a lowest bit of 0."""

    def __init__(
        self,
        channel: Channel,
        delta: IndexArray,
        randomness: Randomness,
        kernels: Kernels,
        *,
        malicious: bool,
    ) -> None:
        self._channel = channel
        self._delta = delta
        self._randomness = randomness
        self._kernels = kernels
        self._malicious = malicious

    def seed(self, count: int) -> IndexArray:
        """The first correlations: r."""
        return seed_sender(self._channel, self._delta[0], count, self._randomness, self._malicious)

    def grow(
        self,
        shape: Shape,
        blocks: IndexArray,
        checks: IndexArray,
        key: bytes,
        room: Blocks | None,
    ) -> "tuple[Blocks, SenderCheck | None]":
        """Grows every tree, and sends for each level what opens one side of it."""
        seeds = as_blocks(self._randomness.draw(shape.trees * _SEED_BYTES))
        leaves, sums = self._kernels.grow(seeds, shape.depth, self._delta[0], key, room)
        self._channel.send("TREE", packed(sums ^ blocks))
        if not len(checks):
            return leaves, None
        return leaves, SenderCheck(self._channel, self._delta, checks, self._kernels)


class SenderCheck:
    """Proves that the trees were grown as they should be."""

    def __init__(
        self, channel: Channel, delta: IndexArray, blocks: IndexArray, kernels: Kernels
    ) -> None:
        self._channel = channel
        self._delta = delta
        self._blocks = blocks
        self._kernels = kernels

    def __call__(self, leaves: Blocks) -> None:
        """Sends the hash of its combination of all leaves."""
        challenge = self._channel.receive("CHAL", 2 * _SEED_BYTES)
        seed, masked = bytes(challenge[:_SEED_BYTES]), challenge[_SEED_BYTES:]
        bits = np.unpackbits(np.frombuffer(masked, np.uint8), bitorder="little")
        corrected = self._blocks ^ self._delta * bits.astype(np.uint64)[:, np.newaxis]
        combined = self._kernels.chi_sum(leaves, seed) ^ _core.pack_bits(corrected)
        self._channel.send("PROF", proof(combined))


class ReceiverRole:
    """Its blocks have its choice as their lowest bit."""

    def __init__(
        self,
        channel: Channel,
        randomness: Randomness,
        kernels: Kernels,
        *,
        malicious: bool,
    ) -> None:
        self._channel = channel
        self._randomness = randomness
        self._kernels = kernels
        self._malicious = malicious

    def seed(self, count: int) -> IndexArray:
        """The first correlations: t."""
        _, blocks = seed_receiver(self._channel, count, self._randomness, self._malicious)
        return blocks

    def grow(
        self,
        shape: Shape,
        blocks: IndexArray,
        checks: IndexArray,
        key: bytes,
        room: Blocks | None,
    ) -> "tuple[Blocks, ReceiverCheck | None]":
        """Grows all leaves but one of each tree, and gets that one but for delta."""
        sums = self._channel.receive("TREE", 16 * len(blocks))
        choices = (blocks[:, 0] & np.uint64(1)).astype(np.uint8)
        sides = as_blocks(sums) ^ blocks
        check = None
        if len(checks):  # asks before it opens the trees: the sender works on it meanwhile
            positions = punctured_positions(choices, shape)
            check = ReceiverCheck(self._channel, self._randomness, positions, checks, self._kernels)
        return self._kernels.puncture(sides, choices, shape.depth, key, room), check


class ReceiverCheck:
    """Asks for the sender's proof, when all that the sender has to say of its trees is there."""

    def __init__(
        self,
        channel: Channel,
        randomness: Randomness,
        positions: IndexArray,
        blocks: IndexArray,
        kernels: Kernels,
    ) -> None:
        self._channel = channel
        self._blocks = blocks
        self._kernels = kernels
        self._seed = randomness.draw(_SEED_BYTES)
        phi = np.bitwise_xor.reduce(_core.chi_at(positions, self._seed), axis=0)
        masks = np.packbits((blocks[:, 0] & np.uint64(1)).astype(np.uint8), bitorder="little")
        channel.send("CHAL", self._seed + packed(phi ^ masks.view(np.uint64)).tobytes())

    def __call__(self, leaves: Blocks) -> None:
        """Raises ConsistencyError unless the sender's combination is the receiver's."""
        combined = self._kernels.chi_sum(leaves, self._seed) ^ _core.pack_bits(self._blocks)
        found = self._channel.receive("PROF", hashlib.sha256().digest_size)
        if not hmac.compare_digest(bytes(found), proof(combined)):
            message = "the sender's trees are not what it should have grown: it cheats, or fails"
            raise ConsistencyError(message)


def punctured_positions(choices: ByteArray, shape: Shape) -> IndexArray:
    """Where each tree is punctured, among the leaves of all: it goes where it has no choice."""
    digits = (1 - choices.reshape(shape.trees, shape.depth)).astype(np.uint64)
    weights = np.uint64(1) << np.arange(shape.depth, dtype=np.uint64)[::-1]
    starts = np.arange(shape.trees, dtype=np.uint64) << np.uint64(shape.depth)
    positions: IndexArray = starts + (digits * weights).sum(axis=1, dtype=np.uint64)
    return positions


def proof(combined: IndexArray) -> bytes:
    """What the sender shows of its combination."""
    return hashlib.sha256(_PROOF_TAG + packed(combined).tobytes()).digest()


def as_blocks(raw: object) -> IndexArray:
    """Bytes as blocks."""
    blocks: IndexArray = np.frombuffer(raw, np.uint64).reshape(-1, 2)  # type: ignore[call-overload]
    return blocks
