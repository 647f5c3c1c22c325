"""The sender: the party that holds delta and both messages of each transfer."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_count
from ..errors import ArgumentError, ChannelError
from ..net import Channel
from . import _pads
from ._blocks import as_delta, block_bytes, low_bits, wipe
from ._check import SenderCheck
from ._engine import Blocks
from ._extension import Check, Request
from ._families import ExtensionPlan
from ._iknp import seed_sender
from ._keys import ExtensionKeys
from ._party import MAX_OTS, STREAM_BATCH, FamilyName, Party, as_messages
from ._triples import WORD_BITS, bit_batches, sender_share, word_batches, word_message


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
    `nescio.ot.device.DeviceBlocks`. `delta` is the correlation, uint64 of shape (2,) with
    lowest bit 1, for protocols that share one between sessions and threads; by default it is drawn.
    It needs 127 uniform secret bits, and is copied. `insecure_seed` makes all randomness
    predictable, for test vectors only.

    Security model: an adversary of bounded power runs the other party, semi-honest or, with
    `malicious`, in any way; the protocol then ends in `nescio.errors.ConsistencyError`. The
    receiver's choices are hidden by LPN with regular noise, the sender's blocks by AES under
    public keys as an ideal cipher, both through base OTs on edwards25519. The number and the kind
    of OTs are public. After an error start a new session, with another delta. Where several
    sessions share a delta, make their first calls one after the other, use no OT before all have
    returned, and after an error end all of them (docs/ot.md has the reason).

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
        delta: Array | None = None,
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
        self._delta = self._randomness.blocks(1) if delta is None else as_delta(delta)[np.newaxis]
        self._delta[0, 0] |= np.uint64(1)

    @property
    def delta(self) -> IndexArray:
        """The secret correlation: one block, uint64 of shape (2,), with lowest bit 1.

        Raises ChannelError after the end of the session, which overwrites it.
        """
        if self._closed:
            raise ChannelError("this session has ended, and its delta is overwritten")
        delta: IndexArray = self._delta[0].copy()
        return delta

    def extend(self, n: int, *, out: IndexArray | None = None) -> Blocks:
        """Makes `n` correlated OTs: r, uint64 of shape (n, 2), lowest bits 0.

        `out` is an array of this shape for r (CPU only), which avoids new memory in each call. Its
        content is undefined after an error. Raises ArgumentError.
        """
        request = Request("COT ", as_count(n, "n", 0, MAX_OTS))
        (r,) = self._outputs(out, ((n, 2), np.uint64))
        with self._ending_with_errors():
            return self._draw(request, out=r)[0]

    def stream(
        self, batch: int = STREAM_BATCH, *, out: IndexArray | None = None
    ) -> Iterator[Blocks]:
        """Yields `extend(batch, out=out)` without end: with `out`, the same array each time."""
        while True:
            yield self.extend(batch, out=out)

    def extend_chosen(self, n: int) -> IndexArray:
        """Makes `n` correlated OTs with choices of the receiver, which sends `n` bits for them.

        Returns uint64 of shape (n, 2).

        Source: Gan et al., "cuOT", section III-D.
        """
        request = Request("CHOS", as_count(n, "n", 0, MAX_OTS))
        with self._ending_with_errors():
            return self._chosen(request)[0]

    def extend_random(
        self, n: int, *, out: tuple[IndexArray, IndexArray] | None = None
    ) -> tuple[Blocks, Blocks]:
        """Makes `n` random OTs: both messages, blocks of shape (n, 2) each. Sends nothing.

        `out` has an array for each, as in `extend`. Raises ArgumentError.
        """
        request = Request("ROT ", as_count(n, "n", 0, MAX_OTS))
        return self._random(request, *self._outputs(out, *[((n, 2), np.uint64)] * 2))

    def extend_random_bytes(self, n: int, length: int) -> tuple[ByteArray, ByteArray]:
        """Makes `n` random OTs of any length: both messages, uint8 of shape (n, length) each.

        Sends nothing. Raises ArgumentError.
        """
        _pads.chunks_of(length, as_count(n, "n", 0, MAX_OTS))
        with self._ending_with_errors():
            r, first = self._draw_host(Request("ROTB", n, 2, length))
            pair = (self._host_hash(r, first, delta=delta) for delta in (None, self._delta[0]))
            zero, one = (_pads.stretched(self._host_hash, keys, first, length) for keys in pair)
            return zero, one

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
        return self._triples(bit_batches(n, MAX_OTS // 2), self._bit_triples, np.uint8)

    def _bit_triples(self, n: int) -> tuple[ByteArray, ByteArray, ByteArray]:
        pair = self._random(Request("BITS", 2 * n))
        m0, m1 = (low_bits(self._to_host(blocks)).reshape(2, n) for blocks in pair)
        a, b = m0 ^ m1
        return a, b, a & b ^ m0[0] ^ m0[1]

    def extend_word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Makes shares a, b, c of `n` Beaver triples of words: c = a * b after adding both shares.

        All arithmetic is modulo 2^64. Each is uint64 of shape (n,), n at most 2^24. A triple takes
        128 random OTs and 520 bytes of messages. Semi-honest. Source: Gilboa 1999.
        """
        return self._triples(word_batches(n), self._word_triples, np.uint64)

    def _word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        factors = self._randomness.blocks(n).reshape(2, n)
        zero, one = self._random(Request("WORD", 2 * WORD_BITS * n))
        low, high = (self._to_host(blocks)[:, 0].reshape(2, n, WORD_BITS) for blocks in (zero, one))
        self.channel.send("TRPL", word_message(factors, low, high))
        return factors[0], factors[1], sender_share(factors, low)

    def _random(
        self, request: Request, zeros: Array | None = None, ones: Array | None = None
    ) -> tuple[Blocks, Blocks]:
        """Draws random OTs: both messages. On the CPU r becomes the second, in its own memory."""
        with self._ending_with_errors():
            r, first = self._draw(request, out=ones)
            low = self._hash(r, first, out=zeros)
            return low, self._hash(r, first, delta=self._delta[0], out=r)

    def _wipe(self) -> None:
        wipe(self._delta)

    def _seed(self, count: int, session: bytes, idle: Callable[[], None]) -> IndexArray:
        """Makes the first correlations from base OTs: r."""
        return seed_sender(
            self.channel,
            self._delta[0],
            count,
            self._randomness,
            self.malicious,
            session=session,
            threads=self._threads,
            idle=idle,
        )

    def _grow(
        self,
        plan: ExtensionPlan,
        blocks: IndexArray,
        checks: IndexArray,
        keys: ExtensionKeys,
        scratch: Blocks | None,
    ) -> tuple[Blocks, Check | None]:
        """Grows every tree, and sends for each level the correction that opens one side of it."""
        seeds = self._randomness.blocks(plan.trees)
        leaves, sums = self._kernels.grow(seeds, plan.depth, self._delta[0], keys.trees, scratch)
        wipe(seeds)
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
        corrected: IndexArray = self._delta * bits.astype(np.uint64)[:, np.newaxis]
        corrected ^= r
        return corrected, first
