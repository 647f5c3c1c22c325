"""The party that holds delta, and both messages of each transfer."""

from collections.abc import Iterator, Sequence

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_count
from ..errors import ArgumentError
from ..net import Channel
from . import _pads
from ._check import SenderRole, as_blocks
from ._engine import Blocks
from ._extension import Draw, Role
from ._party import MOST_OTS, STREAM_BATCH, FamilyName, Party, as_messages


class Sender(Party):
    """The sender of oblivious transfers: of both messages it has, the receiver gets one.

        sender = nescio.ot.Sender(channel)              receiver = nescio.ot.Receiver(channel)
        r = sender.extend(1 << 20)                      choices, t = receiver.extend(1 << 20)

    with t[i] == r[i] ^ choices[i] * delta: correlated OTs, from which all others are made. Both
    parties call methods of the same name, with the same numbers, in the same order, each on its own
    thread or machine.

    `family` is "primal" (fastest; megabytes of messages) or "dual" (kilobytes); `parameters` names
    a set of it (`nescio ot estimate` lists them). `malicious` makes the other party's cheating an
    error where it could gain by it. `threads` of 0 takes every processor.
    `device` and `devices` name GPUs, as `nescio.Server`'s do: what `extend` and `extend_random`
    give then stays there, as `nescio.ot.device.DeviceBlocks`. `insecure_seed` makes all
    that is random predictable, for test vectors.

    Security model: an adversary of bounded power runs the other party, semi-honest or, with
    `malicious`, in any way; the protocol then ends in `nescio.errors.ConsistencyError`. The
    receiver's choices are hidden by LPN with regular noise, the sender's blocks by AES under
    public keys as an ideal cipher, both through base OTs on edwards25519. What is leaked: how many
    OTs are made, of which kind. After an error begin anew, with another delta.

    Raises ArgumentError for parameters that do not exist; methods raise MismatchError if the other
    party wants something else, ChannelError if it goes, stalls or refuses.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        family: FamilyName = "primal",
        malicious: bool = False,
        parameters: str | None = None,
        threads: int = 1,
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
        """The correlation: one block, uint64 of shape (2,), its lowest bit 1."""
        delta: IndexArray = self._delta[0].copy()
        return delta

    def _make_role(self) -> Role:
        return SenderRole(
            self.channel, self._delta, self._randomness, self._kernels, malicious=self.malicious
        )

    def extend(self, n: int) -> Blocks:
        """`n` correlated OTs: r, uint64 of shape (n, 2), lowest bits 0."""
        what = Draw("COT ", as_count(n, "n", 0, MOST_OTS))
        with self._ending_with_errors():
            return self._draw(what)[0]

    def stream(self, batch: int = STREAM_BATCH) -> Iterator[Blocks]:
        """`extend(batch)` for ever."""
        while True:
            yield self.extend(batch)

    def extend_chosen(self, n: int) -> IndexArray:
        """`n` correlated OTs whose choices the receiver names; `n` bits come from it.

        Source: Gan et al., "cuOT", section III-D.
        """
        what = Draw("CHOS", as_count(n, "n", 0, MOST_OTS))
        with self._ending_with_errors():
            return self._chosen(what)[0]

    def extend_random(self, n: int) -> tuple[Blocks, Blocks]:
        """`n` random OTs: both messages of each, blocks of shape (n, 2). Nothing is sent."""
        return self._random(Draw("ROT ", as_count(n, "n", 0, MOST_OTS)))

    def send(self, zeros: Array, ones: Array) -> None:
        """Sends one of two messages each: zeros[i] where the receiver chose 0, else ones[i].

        Messages are bytes, uint8 of shape (n, length), or blocks, uint64 of shape (n, 2). Raises
        ArgumentError unless both are of one shape.
        """
        low, high = as_messages(zeros, "zeros"), as_messages(ones, "ones")
        if low.shape != high.shape:
            raise ArgumentError(f"messages of shapes {low.shape} and {high.shape}: expected one")
        count, length = low.shape
        _pads.chunks_of(length, count)
        with self._ending_with_errors():
            r, first = self._chosen(Draw("SEND", count, 2, length))
            for kind, messages, delta in (("MSG0", low, None), ("MSG1", high, self._delta[0])):
                keys = self._host_hash(r, first, delta=delta)
                pad = _pads.stretched(self._host_hash, keys, first, length)
                self.channel.send(kind, messages ^ pad)

    def send_one_of(self, messages: ByteArray) -> None:
        """Sends one of N messages each: uint8 of shape (n, N, length), N from 2 to 2^16.

        Source: Naor and Pinkas 1999, over log2 N transfers each. Raises ArgumentError.
        """
        array = _pads.as_options(messages)
        count, options, length = array.shape
        levels = _pads.levels_of(options)
        with self._ending_with_errors():
            r, first = self._chosen(Draw("ONEN", count * levels, options, length))
            low = self._host_hash(r, first).reshape(count, levels, 2)
            high = self._host_hash(r, first, delta=self._delta[0]).reshape(count, levels, 2)
            for option in range(options):
                keys = np.where(_pads.digits(option, levels)[:, np.newaxis], high, low)
                pad = _pads.option_pads(self._host_hash, keys, first, option, length)
                self.channel.send("MSGN", np.ascontiguousarray(array[:, option] ^ pad))

    def extend_bit_triples(self, n: int) -> tuple[ByteArray, ByteArray, ByteArray]:
        """Shares a, b, c of `n` Beaver triples of bits: XORed with the receiver's, c = a AND b.

        uint8 of shape (n,) each. Two random OTs a triple; nothing is sent. Semi-honest.
        """
        zero, one = self._random(Draw("BITS", 2 * as_count(n, "n", 0, MOST_OTS // 2)))
        m0, m1 = (_pads.low_bits(self._to_host(blocks)).reshape(2, n) for blocks in (zero, one))
        a, b = m0 ^ m1
        return a, b, a & b ^ m0[0] ^ m0[1]

    def extend_word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Shares a, b, c of `n` Beaver triples of 64-bit words: added up mod 2^64, c = a * b.

        uint64 of shape (n,) each. 128 random OTs and a kilobyte a triple. Semi-honest.
        Source: Gilboa 1999.
        """
        counts = _pads.triple_batches(n)
        with self._ending_with_errors():
            parts = [self._word_triples(count) for count in counts]
        a, b, c = (np.concatenate(part) for part in zip(*parts, strict=True))
        return a, b, c

    def _word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        a, b = as_blocks(self._randomness.draw(16 * n)).reshape(2, n)
        zero, one = self._random(Draw("WORD", 2 * 64 * n))
        low, high = (self._to_host(blocks)[:, 0].reshape(2, n, 64) for blocks in (zero, one))
        shifted = np.stack([a, b])[:, :, np.newaxis] << np.arange(64, dtype=np.uint64)
        self.channel.send("TRPL", np.ascontiguousarray(low + shifted - high))
        return a, b, a * b - low.sum(axis=(0, 2), dtype=np.uint64)

    def _random(self, what: Draw) -> tuple[Blocks, Blocks]:
        """Both messages of random OTs."""
        with self._ending_with_errors():
            r, first = self._draw(what)
            return self._hash(r, first), self._hash(r, first, delta=self._delta[0])

    def _chosen(self, what: Draw) -> tuple[IndexArray, int]:
        """Correlated OTs turned to the choices that the receiver asks for."""
        r, first = self._draw_host(what)
        flips = self.channel.receive("FLIP", -(-what.number // 8))
        bits = np.unpackbits(np.frombuffer(flips, np.uint8), count=what.number, bitorder="little")
        return r ^ self._delta * bits.astype(np.uint64)[:, np.newaxis], first
