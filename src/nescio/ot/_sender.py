"""The sender: the party that holds delta and both messages of each transfer."""

from collections.abc import Iterator, Sequence

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_count
from ..errors import ArgumentError
from ..net import Channel
from . import _pads
from ._blocks import as_blocks, block_bytes, low_bits
from ._check import SenderCheck
from ._engine import Blocks
from ._extension import Check, Request
from ._families import ExtensionPlan
from ._iknp import seed_sender
from ._keys import SEED_BYTES, ExtensionKeys
from ._party import MAX_OTS, STREAM_BATCH, FamilyName, Party, as_messages


class Sender(Party):
    """The sender of oblivious transfers: it has two messages, of which the receiver gets one.

        sender = nescio.ot.Sender(channel)              receiver = nescio.ot.Receiver(channel)
        r = sender.extend(1 << 20)                      choices, t = receiver.extend(1 << 20)

    These are correlated OTs, t[i] == r[i] ^ choices[i] * delta, from which all other OTs are made.
    Both parties call methods of the same name, with the same sizes, in the same order, each in its
    own thread or on its own machine.

    `family` is "primal" (fastest; megabytes of messages) or "dual" (kilobytes). `parameters` names
    a parameter set of the family (`nescio ot estimate` lists them). With `malicious`, cheating by
    the other party raises an error wherever the other party could gain by it. `threads` is the
    number of CPU threads, 0 for all processors. `device` and `devices` name GPUs, as in
    `nescio.Server`; results of `extend` and `extend_random` then stay there, as
    `nescio.ot.device.DeviceBlocks`. `insecure_seed` makes all randomness predictable, for test
    vectors only.

    Security model: an adversary of bounded power runs the other party, semi-honest or, with
    `malicious`, in any way; the protocol then ends in `nescio.errors.ConsistencyError`. The
    receiver's choices are hidden by LPN with regular noise, the sender's blocks by AES under
    public keys as an ideal cipher, both through base OTs on edwards25519. The number and the kind
    of OTs are public. After an error start a new session, with another delta.

    Raises ArgumentError for parameters that do not exist, and ModuleNotFoundError without PyNaCl.
    Methods raise MismatchError if the parties call different methods or pass different sizes, and
    ChannelError if the other party leaves, stalls or refuses.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        family: FamilyName = "primal",
        malicious: bool = False,
        parameters: str | None = None,
        threads: int = 0,
        device: str = "auto",
        devices: Sequence[str] | None = None,
        insecure_seed: bytes | None = None,
    ) -> None:
        super().__init__(
            "sender",
            channel,
            family=family,
            malicious=malicious,
            parameters=parameters,
            threads=threads,
            device=device,
            devices=devices,
            insecure_seed=insecure_seed,
        )
        self._delta = as_blocks(self._randomness.draw(16)).copy()
        self._delta[0, 0] |= np.uint64(1)

    @property
    def delta(self) -> IndexArray:
        """The secret correlation: one block, uint64 of shape (2,), with lowest bit 1."""
        delta: IndexArray = self._delta[0].copy()
        return delta

    def extend(self, n: int) -> Blocks:
        """Makes `n` correlated OTs: r, uint64 of shape (n, 2), lowest bits 0."""
        request = Request("COT ", as_count(n, "n", 0, MAX_OTS))
        with self._ending_with_errors():
            return self._draw(request)[0]

    def stream(self, batch: int = STREAM_BATCH) -> Iterator[Blocks]:
        """Yields `extend(batch)` without end."""
        while True:
            yield self.extend(batch)

    def extend_chosen(self, n: int) -> IndexArray:
        """Makes `n` correlated OTs with choices of the receiver, which sends `n` bits for them.

        Returns uint64 of shape (n, 2).

        Source: Gan et al., "cuOT", section III-D.
        """
        request = Request("CHOS", as_count(n, "n", 0, MAX_OTS))
        with self._ending_with_errors():
            return self._chosen(request)[0]

    def extend_random(self, n: int) -> tuple[Blocks, Blocks]:
        """Makes `n` random OTs: both messages, blocks of shape (n, 2) each. Sends nothing."""
        return self._random(Request("ROT ", as_count(n, "n", 0, MAX_OTS)))

    def send(self, zeros: Array, ones: Array) -> None:
        """Sends one of two messages per transfer: zeros[i] if the receiver chose 0, else ones[i].

        Messages are bytes, uint8 of shape (n, length), or blocks, uint64 of shape (n, 2). Raises
        ArgumentError unless both arrays have the same shape.
        """
        low, high = as_messages(zeros, "zeros"), as_messages(ones, "ones")
        if low.shape != high.shape:
            raise ArgumentError(
                f"messages: found shapes {low.shape} and {high.shape}, expected equal shapes"
            )
        count, length = low.shape
        _pads.chunks_of(length, count)
        with self._ending_with_errors():
            r, first = self._chosen(Request("SEND", count, 2, length))
            for kind, messages, delta in (("MSG0", low, None), ("MSG1", high, self._delta[0])):
                keys = self._host_hash(r, first, delta=delta)
                pad = _pads.stretched(self._host_hash, keys, first, length)
                self.channel.send(kind, messages ^ pad)

    def send_one_of(self, messages: ByteArray) -> None:
        """Sends one of N messages per transfer: uint8 of shape (n, N, length), N from 2 to 2^16.

        Source: Naor and Pinkas 1999, with log2 N transfers each. Raises ArgumentError.
        """
        array = _pads.as_options(messages)
        count, options, length = array.shape
        levels = _pads.levels_of(options)
        with self._ending_with_errors():
            r, first = self._chosen(Request("ONEN", count * levels, options, length))
            low = self._host_hash(r, first).reshape(count, levels, 2)
            high = self._host_hash(r, first, delta=self._delta[0]).reshape(count, levels, 2)
            for option in range(options):
                keys = np.where(_pads.digits(option, levels)[:, np.newaxis], high, low)
                pad = _pads.option_pads(self._host_hash, keys, first, option, length)
                self.channel.send("MSGN", np.ascontiguousarray(array[:, option] ^ pad))

    def extend_bit_triples(self, n: int) -> tuple[ByteArray, ByteArray, ByteArray]:
        """Makes shares a, b, c of `n` Beaver triples of bits: c = a AND b after XOR of both shares.

        Each is uint8 of shape (n,). A triple takes two random OTs and no messages. Semi-honest.
        """
        zero, one = self._random(Request("BITS", 2 * as_count(n, "n", 0, MAX_OTS // 2)))
        m0, m1 = (low_bits(self._to_host(blocks)).reshape(2, n) for blocks in (zero, one))
        a, b = m0 ^ m1
        return a, b, a & b ^ m0[0] ^ m0[1]

    def extend_word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Makes shares a, b, c of `n` Beaver triples of words: c = a * b after adding both shares.

        All arithmetic is modulo 2^64. Each is uint64 of shape (n,). A triple takes 128 random OTs
        and a kilobyte of messages. Semi-honest.
        Source: Gilboa 1999.
        """
        counts = _pads.triple_batches(n)
        with self._ending_with_errors():
            parts = [self._word_triples(count) for count in counts]
        a, b, c = (np.concatenate(part) for part in zip(*parts, strict=True))
        return a, b, c

    def _word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        a, b = as_blocks(self._randomness.draw(16 * n)).reshape(2, n)
        zero, one = self._random(Request("WORD", 2 * 64 * n))
        low, high = (self._to_host(blocks)[:, 0].reshape(2, n, 64) for blocks in (zero, one))
        shifted = np.stack([a, b])[:, :, np.newaxis] << np.arange(64, dtype=np.uint64)
        self.channel.send("TRPL", np.ascontiguousarray(low + shifted - high))
        return a, b, a * b - low.sum(axis=(0, 2), dtype=np.uint64)

    def _random(self, request: Request) -> tuple[Blocks, Blocks]:
        """Draws random OTs: both messages."""
        with self._ending_with_errors():
            r, first = self._draw(request)
            return self._hash(r, first), self._hash(r, first, delta=self._delta[0])

    def _seed(self, count: int) -> IndexArray:
        """Makes the first correlations from base OTs: r."""
        return seed_sender(self.channel, self._delta[0], count, self._randomness, self.malicious)

    def _grow(
        self,
        plan: ExtensionPlan,
        blocks: IndexArray,
        checks: IndexArray,
        keys: ExtensionKeys,
        scratch: Blocks | None,
    ) -> tuple[Blocks, Check | None]:
        """Grows every tree, and sends for each level the correction that opens one side of it."""
        seeds = as_blocks(self._randomness.draw(plan.trees * SEED_BYTES))
        leaves, sums = self._kernels.grow(seeds, plan.depth, self._delta[0], keys.trees, scratch)
        self.channel.send("TREE", block_bytes(sums ^ blocks))
        if not len(checks):
            return leaves, None
        return leaves, SenderCheck(self.channel, self._delta, checks, self._kernels, keys=keys)

    def _chosen(self, request: Request) -> tuple[IndexArray, int]:
        """Draws correlated OTs and applies the receiver's corrections of their choices."""
        r, first = self._draw_host(request)
        flips = self.channel.receive("FLIP", -(-request.number // 8))
        bits = np.unpackbits(
            np.frombuffer(flips, np.uint8), count=request.number, bitorder="little"
        )
        return r ^ self._delta * bits.astype(np.uint64)[:, np.newaxis], first
