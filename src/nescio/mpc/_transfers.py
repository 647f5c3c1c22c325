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


def level_field(level: int, bits: int) -> Field:
    """Returns the field of bit `level` of tables of 2^bits entries, whose offset it is part of."""
    return Field((1 << level) - 1, bits - 1 - level, level)


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
        short = [field for field in fields if 8 * field.pad_bytes <= _BLOCK_BITS]
        blocks = make(len(short) * count)
        found = dict(zip(short, _parts(blocks, count), strict=True))
        for field in fields:
            if field not in found:
                found[field] = make(count, field.pad_bytes)
        return [Transfers(field, *found[field]) for field in fields]

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
    is the sender, `received` the others, both for bits 1 and higher. The server leads: it sends
    first, and the products of offsets are from the client's messages.
    """

    def __init__(
        self,
        channel: Channel,
        tables: "Tables",
        bits: Sequence[ByteArray],
        *,
        sent: Sequence[Transfers],
        received: Sequence[Transfers],
        pool: _core.ThreadPool,
        leads: bool,
    ) -> None:
        self._channel, self._tables, self._pool = channel, tables, pool
        self._bits, self._sent, self._received = bits, sent, received
        self._leads = leads
        self._numbers: npt.NDArray[np.uint32] = np.zeros(len(tables), np.uint32)

    def numbers(self, parts: Sequence[Transfers]) -> None:
        """Shares numbers: the transfers of bit 0 of the places, and of the daBits."""
        targets = [self._numbers, *self._tables.dabits]
        if self._leads:
            messages = self._receive([part.field for part in parts])
            for part, message, numbers in zip(parts, messages, targets, strict=True):
                self._read(part, message, numbers)
        else:
            pairs = zip(parts, targets, strict=True)
            self._send([self._written(part, None, numbers) for part, numbers in pairs])

    def grow(self) -> None:
        """Makes vectors of all bits from those of bit 0, and the offsets, in turns.

        A message needs the vector before its bit is added. So a turn has the messages of two bits:
        one that could not be sent before, and the next one.
        """
        first = self._bits[0].astype(np.uint64)
        self._tables.one_hot[:, 0] = first ^ np.uint64(not self._leads) ^ np.uint64(1)
        self._tables.one_hot[:, 0] |= first << np.uint64(1)
        last, done = len(self._received), 0
        waiting = [self._message(0)]
        if self._leads:
            self._send(waiting)
            waiting = []
        while done < last:
            turn = self._received[done : done + (2 if done or self._leads else 1)]
            messages = self._receive([part.field for part in turn])
            for part, message in zip(turn, messages, strict=True):
                self._grow(done, part, message)
                done += 1
                if done < last:
                    waiting.append(self._message(done))
            if waiting:
                self._send(waiting)
                waiting = []
        offsets = self._numbers & np.uint32((1 << self._tables.bits) - 1)
        self._tables.offsets[:] = offsets.astype(np.uint16)

    def _message(self, place: int) -> ByteArray:
        """Writes the message of a bit, from the vector without it."""
        numbers = None if self._leads else self._numbers
        return self._written(self._sent[place], self._tables.one_hot, numbers)

    def _grow(self, place: int, part: Transfers, message: ByteArray) -> None:
        entries = self._read(part, message, self._numbers if self._leads else None)
        bits, pads = self._bits[place + 1], self._sent[place].pads
        _core.lut_grow(place + 1, bits, pads, entries, self._tables.one_hot, self._pool)

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

    def _send(self, messages: Sequence[ByteArray]) -> None:
        self._channel.send("TABL", np.concatenate(messages))

    def _receive(self, fields: Sequence[Field]) -> list[ByteArray]:
        sizes = [_core.lut_message_bytes(field, len(self._tables)) for field in fields]
        frame = np.frombuffer(self._channel.receive("TABL", sum(sizes)), np.uint8)
        return np.split(frame, np.cumsum(sizes)[:-1])
