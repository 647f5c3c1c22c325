"""The party that chooses, and gets one message of each transfer."""

from collections.abc import Iterator, Sequence

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_count
from ..net import Channel
from . import _pads
from ._check import ReceiverRole
from ._engine import Blocks
from ._extension import Draw, Role
from ._party import MOST_OTS, STREAM_BATCH, FamilyName, Party, as_choices


class Receiver(Party):
    """The receiver of oblivious transfers. Parameters, errors and security model: `Sender`."""

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
            "receiver",
            channel,
            family=family,
            malicious=malicious,
            parameters=parameters,
            threads=threads,
            device=device,
            devices=devices,
            insecure_seed=insecure_seed,
        )

    def _make_role(self) -> Role:
        return ReceiverRole(self.channel, self._randomness, self._kernels, malicious=self.malicious)

    def extend(self, n: int) -> tuple[ByteArray, Blocks]:
        """`n` correlated OTs: choices, uint8 of shape (n,), and t, uint64 of shape (n, 2).

        t[i] == r[i] ^ choices[i] * delta, and its lowest bit is the choice.
        """
        what = Draw("COT ", as_count(n, "n", 0, MOST_OTS))
        with self._ending_with_errors():
            choices, t, _ = self._draw_choices(what)
        return choices, t

    def stream(self, batch: int = STREAM_BATCH) -> Iterator[tuple[ByteArray, Blocks]]:
        """`extend(batch)` for ever."""
        while True:
            yield self.extend(batch)

    def extend_chosen(self, choices: Array) -> IndexArray:
        """Correlated OTs with these choices, 0 or 1 each: t, uint64 of shape (n, 2).

        t[i] == r[i] ^ choices[i] * delta; its lowest bit is random. Raises ArgumentError.
        Source: Gan et al., "cuOT", section III-D.
        """
        chosen = as_choices(choices)
        with self._ending_with_errors():
            return self._chosen(Draw("CHOS", len(chosen)), chosen)[0]

    def extend_random(self, n: int) -> tuple[ByteArray, Blocks]:
        """`n` random OTs: choices, and the messages chosen, blocks of shape (n, 2)."""
        return self._random(Draw("ROT ", as_count(n, "n", 0, MOST_OTS)))

    def receive(self, choices: Array, length: int = 16) -> ByteArray:
        """One of two messages of `length` bytes each: uint8 of shape (n, length).

        Both parties say how long messages are; `.view(np.uint64)` makes blocks of 16 bytes. Raises
        ArgumentError.
        """
        chosen = as_choices(choices)
        _pads.chunks_of(length, len(chosen))
        with self._ending_with_errors():
            t, first = self._chosen(Draw("SEND", len(chosen), 2, length), chosen)
            keys = self._host_hash(t, first)
            pad = _pads.stretched(self._host_hash, keys, first, length)
            zeros = _messages(self.channel.receive("MSG0", pad.size), pad)
            ones = _messages(self.channel.receive("MSG1", pad.size), pad)
        mask = (-chosen.astype(np.int8)).view(np.uint8)[:, np.newaxis]
        return zeros ^ (zeros ^ ones) & mask ^ pad

    def receive_one_of(self, choices: Array, options: int, length: int) -> ByteArray:
        """One of N messages of `length` bytes each, choices from 0 to N - 1: (n, length).

        Raises ArgumentError. Source: Naor and Pinkas 1999.
        """
        levels = _pads.levels_of(options)
        chosen = as_choices(choices, options - 1)
        _pads.chunks_of(length, len(chosen))
        bits = chosen[:, np.newaxis] >> np.arange(levels, dtype=np.uint64) & np.uint64(1)
        with self._ending_with_errors():
            what = Draw("ONEN", len(chosen) * levels, options, length)
            t, first = self._chosen(what, bits.reshape(-1))
            keys = self._host_hash(t, first).reshape(len(chosen), levels, 2)
            result = np.zeros((len(chosen), length), np.uint8)
            for option in range(options):
                masked = _messages(self.channel.receive("MSGN", result.size), result)
                pad = _pads.option_pads(self._host_hash, keys, first, option, length)
                mine = (chosen == option).astype(np.uint8)[:, np.newaxis]
                result |= (masked ^ pad) & -mine
        return result

    def extend_bit_triples(self, n: int) -> tuple[ByteArray, ByteArray, ByteArray]:
        """Shares of `n` Beaver triples of bits. See `Sender.extend_bit_triples`."""
        choices, messages = self._random(Draw("BITS", 2 * as_count(n, "n", 0, MOST_OTS // 2)))
        (b, a), m = choices.reshape(2, n), _pads.low_bits(self._to_host(messages)).reshape(2, n)
        return a, b, a & b ^ m[0] ^ m[1]

    def extend_word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Shares of `n` Beaver triples of 64-bit words. See `Sender.extend_word_triples`."""
        counts = _pads.triple_batches(n)
        with self._ending_with_errors():
            parts = [self._word_triples(count) for count in counts]
        a, b, c = (np.concatenate(part) for part in zip(*parts, strict=True))
        return a, b, c

    def _word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        choices, messages = self._random(Draw("WORD", 2 * 64 * n))
        words = np.packbits(choices, bitorder="little").view(np.uint64)
        b, a = words.reshape(2, n)
        raw = self.channel.receive("TRPL", 8 * len(choices))
        added = np.frombuffer(raw, np.uint64) * choices.astype(np.uint64)
        terms = self._to_host(messages)[:, 0] + added
        return a, b, a * b + terms.reshape(2, n, 64).sum(axis=(0, 2), dtype=np.uint64)

    def _random(self, what: Draw) -> tuple[ByteArray, Blocks]:
        """Choices and messages of random OTs."""
        with self._ending_with_errors():
            choices, t, first = self._draw_choices(what)
            return choices, self._hash(t, first)

    def _draw_choices(self, what: Draw) -> tuple[ByteArray, Blocks, int]:
        """`_draw`, and the choices, read while each part is still in the cache."""
        choices: ByteArray = np.empty(what.number, np.uint8)

        def seen(begin: int, part: Blocks) -> None:
            self._kernels.read_choices(part, choices[begin : begin + len(part)])

        t, first = self._draw(what, seen)
        return choices, t, first

    def _chosen(self, what: Draw, choices: IndexArray) -> tuple[IndexArray, int]:
        """Correlated OTs turned to choices: the sender learns which differ from random ones."""
        t, first = self._draw_host(what)
        flips = _pads.low_bits(t) ^ choices.astype(np.uint8)
        self.channel.send("FLIP", np.packbits(flips, bitorder="little"))
        return t, first


def _messages(raw: object, like: ByteArray) -> ByteArray:
    values: ByteArray = np.frombuffer(raw, np.uint8).reshape(like.shape)  # type: ignore[call-overload]
    return values
