"""The receiver: the party that chooses and gets one message of each transfer."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_count
from ..net import Channel
from . import _pads
from ._blocks import as_blocks, low_bits, wipe
from ._check import ReceiverCheck, punctured_positions
from ._engine import Blocks
from ._extension import Check, Request
from ._families import ExtensionPlan
from ._iknp import seed_receiver
from ._keys import ExtensionKeys
from ._party import MAX_OTS, STREAM_BATCH, FamilyName, Party, as_choices
from ._triples import TRIPLE_WORDS, WORD_BITS, bit_batches, receiver_share, word_batches


class Receiver(Party):
    """The receiver of oblivious transfers. Parameters, errors and security model: see `Sender`."""

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

    def extend(
        self, n: int, *, out: tuple[ByteArray, IndexArray] | None = None
    ) -> tuple[ByteArray, Blocks]:
        """Makes `n` correlated OTs: choices, uint8 of shape (n,), and t, uint64 of shape (n, 2).

        t[i] == r[i] ^ choices[i] * delta; the lowest bit of t[i] is choices[i]. `out` has arrays
        for choices and t (CPU only). Their content is undefined after an error. Raises
        ArgumentError.
        """
        request = Request("COT ", as_count(n, "n", 0, MAX_OTS))
        arrays = self._outputs(out, ((n,), np.uint8), ((n, 2), np.uint64))
        with self._ending_with_errors():
            choices, t, _ = self._draw_choices(request, *arrays)
        return choices, t

    def stream(
        self, batch: int = STREAM_BATCH, *, out: tuple[ByteArray, IndexArray] | None = None
    ) -> Iterator[tuple[ByteArray, Blocks]]:
        """Yields `extend(batch, out=out)` without end: with `out`, the same arrays each time."""
        while True:
            yield self.extend(batch, out=out)

    def extend_chosen(self, choices: Array) -> IndexArray:
        """Makes correlated OTs with the given choices, 0 or 1 each: t, uint64 of shape (n, 2).

        t[i] == r[i] ^ choices[i] * delta; the lowest bit of t[i] is random. Raises ArgumentError.
        Source: Gan et al., "cuOT", section III-D.
        """
        chosen = as_choices(choices)
        with self._ending_with_errors():
            return self._chosen(Request("CHOS", len(chosen)), chosen)[0]

    def extend_random(
        self, n: int, *, out: tuple[ByteArray, IndexArray] | None = None
    ) -> tuple[ByteArray, Blocks]:
        """Makes `n` random OTs: the choices, and the chosen messages, blocks of shape (n, 2).

        `out` has an array for each, as in `extend`. Raises ArgumentError.
        """
        request = Request("ROT ", as_count(n, "n", 0, MAX_OTS))
        arrays = self._outputs(out, ((n,), np.uint8), ((n, 2), np.uint64))
        return self._random(request, *arrays)

    def extend_random_bytes(self, n: int, length: int) -> tuple[ByteArray, ByteArray]:
        """Makes `n` random OTs of any length: the choices, and the chosen messages (n, length).

        Raises ArgumentError.
        """
        _pads.chunks_of(length, as_count(n, "n", 0, MAX_OTS))
        with self._ending_with_errors():
            choices, t, first = self._draw_choices(Request("ROTB", n, 2, length))
            keys = self._host_hash(self._to_host(t), first)
            return choices, _pads.stretched(self._host_hash, keys, first, length)

    def receive(self, choices: Array, length: int = 16) -> ByteArray:
        """Receives one of two messages per transfer, of `length` bytes: uint8 (n, length).

        `length` must be that of the sender's messages. `.view(np.uint64)` turns messages of 16
        bytes into blocks. Raises ArgumentError.
        """
        chosen = as_choices(choices)
        _pads.chunks_of(length, len(chosen))
        with self._ending_with_errors():
            t, first = self._chosen(Request("SEND", len(chosen), 2, length), chosen)
            keys = self._host_hash(t, first)
            pad = _pads.stretched(self._host_hash, keys, first, length)
            zeros = _messages(self.channel.receive("MSG0", pad.size), pad)
            ones = _messages(self.channel.receive("MSG1", pad.size), pad)
        mask = (-chosen.astype(np.int8)).view(np.uint8)[:, np.newaxis]
        return zeros ^ (zeros ^ ones) & mask ^ pad

    def receive_one_of(self, choices: Array, options: int, length: int) -> ByteArray:
        """Receives one of N messages per transfer, choices 0 to N - 1: uint8 (n, length).

        Raises ArgumentError. Source: Naor and Pinkas 1999.
        """
        levels = _pads.levels_of(options)
        chosen = as_choices(choices, options - 1)
        _pads.chunks_of(length, len(chosen))
        bits = chosen[:, np.newaxis] >> np.arange(levels, dtype=np.uint64) & np.uint64(1)
        with self._ending_with_errors():
            request = Request("ONEN", len(chosen) * levels, options, length)
            t, first = self._chosen(request, bits.reshape(-1))
            keys = self._host_hash(t, first).reshape(len(chosen), levels, 2)
            result = np.zeros((len(chosen), length), np.uint8)
            for option in range(options):
                masked = _messages(self.channel.receive("MSGN", result.size), result)
                pad = _pads.option_pads(self._host_hash, keys, first, option, length)
                mine = (chosen == option).astype(np.uint8)[:, np.newaxis]
                result |= (masked ^ pad) & -mine
        return result

    def extend_bit_triples(self, n: int) -> tuple[ByteArray, ByteArray, ByteArray]:
        """Makes shares of `n` Beaver triples of bits. See `Sender.extend_bit_triples`."""
        return self._triples(bit_batches(n, MAX_OTS // 2), self._bit_triples, np.uint8)

    def _bit_triples(self, n: int) -> tuple[ByteArray, ByteArray, ByteArray]:
        choices, messages = self._random(Request("BITS", 2 * n))
        (b, a), m = choices.reshape(2, n), low_bits(self._to_host(messages)).reshape(2, n)
        return a, b, a & b ^ m[0] ^ m[1]

    def extend_word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Makes shares of `n` Beaver triples of 64-bit words. See `Sender.extend_word_triples`."""
        return self._triples(word_batches(n), self._word_triples, np.uint64)

    def _word_triples(self, n: int) -> tuple[IndexArray, IndexArray, IndexArray]:
        choices, messages = self._random(Request("WORD", 2 * WORD_BITS * n))
        raw = self.channel.receive("TRPL", 8 * TRIPLE_WORDS * n)
        words = np.frombuffer(raw, np.uint64).reshape(n, TRIPLE_WORDS)
        return receiver_share(words, choices, self._to_host(messages)[:, 0])

    def _random(
        self, request: Request, choices: Array | None = None, messages: Array | None = None
    ) -> tuple[ByteArray, Blocks]:
        """Draws random OTs: choices and messages. On the CPU t becomes the messages."""
        with self._ending_with_errors():
            bits, t, first = self._draw_choices(request, choices, messages)
            return bits, self._hash(t, first, out=t)

    def _draw_choices(
        self, request: Request, choices: Array | None = None, out: Array | None = None
    ) -> tuple[ByteArray, Blocks, int]:
        """Draws OTs and reads the choices of each part while it is in the cache."""
        bits: ByteArray = np.empty(request.number, np.uint8) if choices is None else choices

        def read(begin: int, part: Blocks) -> None:
            self._kernels.read_choices(part, bits[begin : begin + len(part)])

        t, first = self._draw(request, read, out)
        return bits, t, first

    def _seed(self, count: int, session: bytes, idle: Callable[[], None]) -> IndexArray:
        """Makes the first correlations from base OTs: t."""
        bits, blocks = seed_receiver(
            self.channel,
            count,
            self._randomness,
            self.malicious,
            session=session,
            threads=self._threads,
            idle=idle,
        )
        wipe(bits)
        return blocks

    def _grow(
        self,
        plan: ExtensionPlan,
        blocks: IndexArray,
        checks: IndexArray,
        keys: ExtensionKeys,
        scratch: Blocks | None,
    ) -> tuple[Blocks, Check | None]:
        """Grows all leaves but one of each tree, and that one up to delta."""
        sums = self.channel.receive("TREE", 16 * len(blocks))
        choices = low_bits(blocks)
        sides = as_blocks(sums) ^ blocks
        check = None
        if len(checks):  # before the trees are opened: the sender computes its proof meanwhile
            positions = punctured_positions(choices, plan)
            check = ReceiverCheck(
                self.channel, self._randomness, positions, checks, self._kernels, keys=keys
            )
            wipe(positions)
        leaves = self._kernels.puncture(sides, choices, plan.depth, keys.trees, scratch)
        wipe(sides, choices)
        return leaves, check

    def _chosen(self, request: Request, choices: IndexArray) -> tuple[IndexArray, int]:
        """Draws correlated OTs and tells the sender which of their random choices to flip."""
        t, first = self._draw_host(request)
        flips = low_bits(t) ^ choices.astype(np.uint8)
        self.channel.send("FLIP", np.packbits(flips, bitorder="little"))
        return t, first


def _messages(raw: object, like: ByteArray) -> ByteArray:
    values: ByteArray = np.frombuffer(raw, np.uint8).reshape(like.shape)  # type: ignore[call-overload]
    return values
