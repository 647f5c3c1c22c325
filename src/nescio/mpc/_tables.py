"""One-time tables: made ahead by both parties, before anybody knows what is looked up.

The server is party 0, the client party 1. tests/spec/lut.py is the specification of their messages,
and tests/spec/lut_tree.py that of the messages for large tables.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from .. import _core
from .._arrays import ByteArray, IndexArray, as_count
from ..errors import ArgumentError
from ..net import Channel, aborting
from ._store import Role
from ._transfers import Draw, Exchange, Transfers, dabit_field, level_field, random_bits
from ._trees import BLOCK_BITS, KEY_BYTES, Trees

Halves = npt.NDArray[np.uint16]
Ring = npt.NDArray[np.uint32]

MIN_BITS, MAX_BITS = 4, 12
MAX_OUTPUTS = 16
MAX_TABLES = 1 << 24
TREES_FROM = 9
"""The bits of the smallest tables that trees make with fewer bytes."""
_BATCH = 1 << 15


@dataclass(frozen=True)
class Tables:
    """A party's shares of `count` one-time tables of 2^bits entries.

    `one_hot` (count, words) is a share, by XOR, of vectors that are one at a random place and zero
    elsewhere; `offsets` (count,) is a share, by addition modulo 2^bits, of these places. `masks`
    (count,) is a share, by XOR, of random numbers of as many bits as `dabits` has lines;
    `dabits` (bits, count) shares each of their bits, by addition modulo 2^32, with its weight.
    """

    bits: int
    one_hot: IndexArray
    offsets: Halves
    masks: Halves
    dabits: Ring

    def __len__(self) -> int:
        """The number of tables."""
        return len(self.offsets)

    @property
    def nbytes(self) -> int:
        """The bytes of all shares."""
        arrays = (self.one_hot, self.offsets, self.masks, self.dabits)
        return sum(array.nbytes for array in arrays)

    def __getitem__(self, part: slice) -> "Tables":
        """Returns some of the tables, in the same memory."""
        return Tables(
            self.bits,
            self.one_hot[part],
            self.offsets[part],
            self.masks[part],
            self.dabits[:, part],
        )

    @classmethod
    def empty(cls, count: int, bits: int, outputs: int) -> Self:
        """Allocates zeros for shares of tables."""
        return cls(
            bits,
            np.zeros((count, max(1, (1 << bits) // 64)), np.uint64),
            np.zeros(count, np.uint16),
            np.zeros(count, np.uint16),
            np.zeros((outputs, count), np.uint32),
        )


class TableMaker:
    """Makes one-time tables with another party, from random oblivious transfers.

        maker = TableMaker(channel, "server")           maker = TableMaker(channel, "client")
        tables = maker.make(1 << 16)                    tables = maker.make(1 << 16)

    Both parties call `make` with the same sizes in the same order. `threads` is the number of CPU
    threads, 0 for all processors. Tables of `trees_from` bits or more are made by trees, others by
    random transfers alone; it is the same at both parties.

    Security model: semi-honest parties, static corruption. Messages are masked by random transfers,
    and those of trees by hashes of blocks that the other party does not know. The assumptions are
    those of `nescio.ot`. The number and the sizes of tables are public.

    Source: Lam et al., "Tabula: Efficiently Computing Nonlinear Activation Functions for Secure
    Neural Network Inference" (2022) has the tables; the making of them is ours, with the trees of
    Guo et al., "Half-Tree" (2023).
    """

    def __init__(
        self, channel: Channel, role: Role, *, threads: int = 0, trees_from: int = TREES_FROM
    ) -> None:
        if role not in ("server", "client"):
            raise ArgumentError(f"role: found {role!r}, expected 'server' or 'client'")
        self.channel, self._is_server = channel, role == "server"
        self._draw = Draw(channel, is_server=self._is_server, threads=threads)
        self._pool = _core.ThreadPool(threads)
        self._trees_from = as_count(trees_from, "trees_from", BLOCK_BITS + 1, MAX_BITS + 1)

    def close(self) -> None:
        """Ends the OT sessions, and overwrites their secrets; the channel stays open."""
        self._draw.close()

    def __enter__(self) -> Self:
        """Returns the maker, which the block's end closes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the maker."""
        self.close()

    def make(self, count: int, bits: int = 8, outputs: int | None = None) -> Tables:
        """Makes `count` tables of 2^bits entries of `outputs` bits each (default: bits).

        Raises ArgumentError, and the errors of `nescio.ot` and of the channel.
        """
        as_count(count, "count", 0, MAX_TABLES)
        as_count(bits, "bits", MIN_BITS, MAX_BITS)
        outputs = bits if outputs is None else as_count(outputs, "outputs", 1, MAX_OUTPUTS)
        tables = Tables.empty(count, bits, outputs)
        try:
            with aborting(self.channel):
                for first in range(0, count, _BATCH):
                    self._make(tables[first : first + _BATCH])
        except BaseException:
            self.close()
            raise
        return tables

    def _make(self, tables: Tables) -> None:
        """Makes tables, in memory that has zeros."""
        count, bits, outputs = len(tables), tables.bits, len(tables.dabits)
        low = bits if bits < self._trees_from else BLOCK_BITS
        levels = [level_field(level, bits, low) for level in range(bits)]
        dabits = [dabit_field(number) for number in range(outputs)]
        entries = [field._replace(product=0) for field in levels[1:low]]
        to_server = self._draw.transfers([*levels, *dabits], count, to_server=True)
        to_client = self._draw.transfers(entries, count, to_server=False)
        high, trees = self._trees(tables, [part.bits for part in to_server[low:bits]])
        if self._is_server:
            own = [part.bits for part in to_server]
            sent, received = _with_bits(to_client, own[1:]), to_server[1:low]
        else:
            drawn = random_bits(1 + outputs, count)
            own = [drawn[0], *(part.bits for part in to_client), *high, *drawn[1:]]
            to_server = _with_bits(to_server, own)
            sent, received = to_server[1:low], to_client
        exchange = Exchange(
            self.channel,
            tables,
            own[:low],
            sent=sent,
            received=received,
            trees=trees,
            pool=self._pool,
            leads=self._is_server,
        )
        exchange.numbers([to_server[0], *to_server[low:]])
        exchange.grow()
        for number, bit in enumerate(own[bits:]):
            tables.masks[:] |= bit.astype(np.uint16) << np.uint16(number)

    def _trees(
        self, tables: Tables, bits: Sequence[ByteArray]
    ) -> tuple[list[ByteArray], Trees | None]:
        """Plants trees for the high bits, from the lowest; returns this party's bits, and trees.

        `bits` are the server's bits; the client's are empty, and drawn here.
        """
        if not bits:
            return [], None
        high, products, delta = self._draw.products(len(bits), len(tables), bits)
        if self._is_server:
            key = bytes(self.channel.receive("TKEY", KEY_BYTES))
        else:
            key = secrets.token_bytes(KEY_BYTES)
            self.channel.send("TKEY", key)
        return high, Trees(tables.one_hot, products[::-1], delta, key, self._pool)


def _with_bits(parts: Sequence[Transfers], bits: Sequence[ByteArray]) -> list[Transfers]:
    """Gives each of a sender's transfers its bits."""
    return [part._replace(bits=bit) for part, bit in zip(parts, bits, strict=False)]
