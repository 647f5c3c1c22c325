"""Random transfers for one-time tables: their pads, their messages, and the parties' turns."""

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from .._arrays import Array, ByteArray, IndexArray
from ..net import Channel
from ..ot import Receiver, Sender
from ._trees import MESSAGE_BYTES, Trees, shared_delta, without_lowest

if TYPE_CHECKING:
    from ._tables import Tables

_RING_BITS = 32
_BLOCK_BITS = 128


class Field(NamedTuple):
    """The parts of a transfer's message: entries of a vector, and bits of a product.

    `shift` is the weight of the transfer's bit in a number, 2^shift.
    """

    entries: int
    product: int
    shift: int

    @property
    def pad_bytes(self) -> int:
        """The bytes of a pad, in whole blocks."""
        return -(-(self.entries + self.product) // _BLOCK_BITS) * _BLOCK_BITS // 8


def level_field(level: int, bits: int, vector_bits: int) -> Field:
    """Returns the field of bit `level` of tables of 2^bits entries, whose offset it is part of.

    Transfers make vectors of the lowest `vector_bits` bits; other bits have no entries.
    """
    entries = (1 << level) - 1 if level < vector_bits else 0
    return Field(entries, bits - 1 - level, level)


def dabit_field(number: int) -> Field:
    """Returns the field of a daBit."""
    return Field(0, _RING_BITS - 1 - number, number)


class Transfers(NamedTuple):
    """A random transfer for each table: the bits are the receiver's choices, or the sender's bits.

    `pads` are (count, words): the sender's first ones, or those that the receiver chose. `others`
    are the sender's second ones.
    """

    field: Field
    bits: ByteArray
    pads: IndexArray
    others: IndexArray | None = None


def random_bits(lines: int, count: int) -> ByteArray:
    """Draws bits, uint8 of shape (lines, count), from the operating system."""
    drawn = np.frombuffer(secrets.token_bytes(-(-lines * count // 8)), np.uint8)
    return np.unpackbits(drawn, count=lines * count).reshape(lines, count)


class Draw:
    """A party's two OT sessions over one channel: it is the sender of one, the other's receiver."""

    def __init__(self, channel: Channel, *, is_server: bool, threads: int) -> None:
        self._is_server = is_server
        self._sender = Sender(channel, threads=threads)
        self._receiver = Receiver(channel, threads=threads)

    def close(self) -> None:
        """Ends both sessions, and overwrites their secrets."""
        self._sender.close()
        self._receiver.close()

    def transfers(self, fields: Sequence[Field], count: int, *, to_server: bool) -> list[Transfers]:
        """Draws `count` random transfers for each field. A sender's bits are empty."""
        make = self._received if to_server == self._is_server else self._sent
        short = [8 * field.pad_bytes <= _BLOCK_BITS for field in fields]
        blocks = iter(_parts(make(sum(short) * count), count))
        return [
            Transfers(field, *(next(blocks) if fits else make(count, field.pad_bytes)))
            for field, fits in zip(fields, short, strict=True)
        ]

    def products(
        self, levels: int, count: int, bits: Sequence[ByteArray]
    ) -> tuple[list[ByteArray], IndexArray, IndexArray]:
        """Shares the products of bits and a secret block, for `levels` bits of `count` tables.

        `bits` are the server's, in order; the client's are drawn. Returns these lines of bits, the
        shares (levels, count, 2) of the products, and the share of the block.
        """
        number = levels * count
        if self._is_server:
            chosen = np.concatenate(bits)
            received = self._receiver.extend_chosen(chosen)
            sent = self._sender.extend(number)
        else:
            sent = self._sender.extend_chosen(number)
            chosen, received = self._receiver.extend(number)
        delta = self._sender.delta
        shares: IndexArray = chosen.astype(np.uint64)[:, np.newaxis] * without_lowest(delta)
        shares ^= sent
        shares ^= received
        own = shared_delta(delta, is_server=self._is_server)
        return list(chosen.reshape(levels, count)), shares.reshape(levels, count, 2), own

    def _received(self, number: int, length: int | None = None) -> tuple[Array, ...]:
        if length is None:
            return self._receiver.extend_random(number)
        bits, pads = self._receiver.extend_random_bytes(number, length)
        return bits, pads.view(np.uint64)

    def _sent(self, number: int, length: int | None = None) -> tuple[Array, ...]:
        none = np.empty(0, np.uint8)
        if length is None:
            return none, *self._sender.extend_random(number)
        zero, one = self._sender.extend_random_bytes(number, length)
        return none, zero.view(np.uint64), one.view(np.uint64)


def _parts(arrays: tuple[Array, ...], count: int) -> Iterator[tuple[Array, ...]]:
    """Cuts arrays into parts of `count` lines; an empty one is in every part."""
    longest = max(map(len, arrays))
    for first in range(0, longest, count):
        yield tuple(one[first : first + count] if len(one) else one for one in arrays)


class Exchange:
    """Turns random transfers into tables, with the other party.

    `bits` are this party's shares of the bits of the places. `sent` are the transfers of which it
    is the sender, `received` the others, both for bits 1 and higher, but for the bits of `trees`.
    The server leads: it sends first, and the products of offsets are from the client's messages.
    """

    def __init__(
        self,
        channel: Channel,
        tables: "Tables",
        bits: Sequence[ByteArray],
        *,
        sent: Sequence[Transfers],
        received: Sequence[Transfers],
        trees: Trees | None,
        pool: _core.ThreadPool,
        leads: bool,
    ) -> None:
        self._channel, self._tables, self._pool = channel, tables, pool
        self._bits, self._sent, self._received = bits, sent, received
        self._trees, self._leads = trees, leads
        self._numbers: npt.NDArray[np.uint32] = np.zeros(len(tables), np.uint32)
        self._vectors = tables.one_hot
        if trees is not None:
            self._vectors = np.zeros((len(tables), MESSAGE_BYTES // 8), np.uint64)

    def numbers(self, parts: Sequence[Transfers]) -> None:
        """Shares numbers: the transfers of bits of the places, and last those of the daBits."""
        dabits = self._tables.dabits
        targets = [*[self._numbers] * (len(parts) - len(dabits)), *dabits]
        if self._leads:
            messages = self._receive([self._bytes(part) for part in parts])
            for part, message, numbers in zip(parts, messages, targets, strict=True):
                self._read(part, message, numbers)
        else:
            pairs = zip(parts, targets, strict=True)
            self._send([self._written(part, None, numbers) for part, numbers in pairs])

    def grow(self) -> None:
        """Makes vectors of all bits from those of bit 0, and the offsets, in turns.

        A message needs the vector before its bit is added. So a turn has the messages of two steps:
        one that could not be sent before, and the next one.
        """
        first = self._bits[0].astype(np.uint64)
        self._vectors[:, 0] = first ^ np.uint64(not self._leads) ^ np.uint64(1)
        self._vectors[:, 0] |= first << np.uint64(1)
        last, done = len(self._received) + (self._trees is not None), 0
        waiting = self._messages(0)
        if self._leads:
            self._send(waiting)
            waiting = []
        while done < last:
            turn = range(done, min(last, done + (2 if done or self._leads else 1)))
            messages = iter(self._receive([size for step in turn for size in self._sizes(step)]))
            for step in turn:
                self._grow(step, messages)
                done += 1
                if done < last:
                    waiting += self._messages(done)
            if waiting:
                self._send(waiting)
                waiting = []
        offsets = self._numbers & np.uint32((1 << self._tables.bits) - 1)
        self._tables.offsets[:] = offsets.astype(np.uint16)

    def _grown(self, step: int) -> Trees | None:
        """Returns the trees, if they have a message in this step: the leaves' is the last."""
        trees = self._trees
        if trees is None or trees.levels <= step + 1 <= len(self._received):
            return None
        return trees

    def _sizes(self, step: int) -> list[int]:
        """Returns the bytes of the messages of a step."""
        sizes = [self._bytes(part) for part in self._received[step : step + 1]]
        if self._grown(step) is not None:
            sizes.append(MESSAGE_BYTES * len(self._tables))
        return sizes

    def _messages(self, step: int) -> list[ByteArray]:
        """Writes the messages of a step, from the vectors before it."""
        numbers = None if self._leads else self._numbers
        messages = [
            self._written(part, self._vectors, numbers) for part in self._sent[step : step + 1]
        ]
        trees = self._grown(step)
        if trees is not None:
            messages.append(trees.message(self._vectors))
        return messages

    def _grow(self, step: int, messages: Iterator[ByteArray]) -> None:
        """Takes the other party's messages of a step."""
        for part in self._received[step : step + 1]:
            entries = self._read(part, next(messages), self._numbers if self._leads else None)
            bits, pads = self._bits[step + 1], self._sent[step].pads
            _core.lut_grow(step + 1, bits, pads, entries, self._vectors, self._pool)
        trees = self._grown(step)
        if trees is not None:
            trees.read(next(messages))

    def _written(
        self,
        part: Transfers,
        shares: IndexArray | None,
        numbers: npt.NDArray[np.uint32] | None,
    ) -> ByteArray:
        assert part.others is not None
        return _core.lut_write_message(
            part.field, shares, part.bits, part.pads, part.others, numbers, self._pool
        )

    def _read(
        self, part: Transfers, message: ByteArray, numbers: npt.NDArray[np.uint32] | None
    ) -> IndexArray:
        return _core.lut_read_message(
            part.field, part.bits, part.pads, message, numbers, self._pool
        )

    def _bytes(self, part: Transfers) -> int:
        return _core.lut_message_bytes(part.field, len(self._tables))

    def _send(self, messages: Sequence[ByteArray]) -> None:
        self._channel.send("TABL", np.concatenate(messages))

    def _receive(self, sizes: Sequence[int]) -> list[ByteArray]:
        frame = np.frombuffer(self._channel.receive("TABL", sum(sizes)), np.uint8)
        return np.split(frame, np.cumsum(sizes)[:-1])
