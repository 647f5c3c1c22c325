"""Activations by one-time tables: the online step of a layer, and what it computes.

A value x is shared by addition modulo 2^32. Its place is x >> shift, rounded up or down:

    (x0 >> shift) + (x1 >> shift) + 1, modulo 2^bits, is floor(x / 2^shift) or one more

It is one more if x1 mod 2^shift is at most x mod 2^shift. So with a uniform x1 the rounding has no
bias, up to 2^-shift. The client knows x1: what it learns is a function of x and of these dithers.
Without a shift, nothing is rounded and nothing is added.

Source: Lam et al., "Tabula" (2022), for lookups in one-time tables.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .. import _core
from .._arrays import Array, ByteArray, as_count
from ..errors import ArgumentError
from ._tables import MAX_BITS, MAX_OUTPUTS, MIN_BITS, Halves, Ring, Tables

_RING_BITS = 32


class Activation:
    """A function of one number, as a table of 2^bits entries of `outputs` bits.

    `function` maps the integers -2^(bits - 1) to 2^(bits - 1) - 1 (int64) to entries. With `low`,
    they are low, ..., low + 2^bits - 1: the window of values that do not wrap. Entries are from 0,
    or, if `signed`, from -2^(outputs - 1). Raises ArgumentError for sizes that a table cannot have,
    and for entries that are not whole numbers or out of range.
    """

    def __init__(
        self,
        function: Callable[[npt.NDArray[np.int64]], Array],
        *,
        bits: int = 8,
        outputs: int | None = None,
        low: int | None = None,
        signed: bool = False,
    ) -> None:
        self.bits = as_count(bits, "bits", MIN_BITS, MAX_BITS)
        self.outputs = bits if outputs is None else as_count(outputs, "outputs", 1, MAX_OUTPUTS)
        size = 1 << bits
        self.low = -size // 2 if low is None else as_count(low, "low", 1 - size, 0)
        window = np.arange(self.low, self.low + size)
        self.signed = bool(signed)
        found = self._checked(np.asarray(function(window)), size)
        kind = np.uint8 if self.outputs <= 8 else np.uint16
        self.entries: Array = np.empty(size, kind)
        self.entries[window % size] = found % (1 << self.outputs)
        backward = self.entries[-np.arange(2 * size) % size]
        padding = np.zeros(_core.lut_table_padding() // backward.itemsize, kind)
        self._twice = np.concatenate([backward, padding])

    def _checked(self, found: Array, size: int) -> Array:
        """Raises ArgumentError for entries that are not whole numbers, or out of range."""
        if found.dtype.kind not in "biuf":
            raise ArgumentError(f"function: found {found.dtype}, expected {size} integers")
        least = -(1 << self.outputs - 1) if self.signed else 0
        most = least + (1 << self.outputs) - 1
        if found.shape != (size,) or not (found.min() >= least and found.max() <= most):
            ends = f" from {found.min()} to {found.max()}" if found.size else ""
            raise ArgumentError(
                f"function: found {found.dtype} of shape {found.shape}{ends}, expected {size} "
                f"entries from {least} to {most}"
            )
        if not (found == np.rint(found)).all():
            raise ArgumentError(
                "function: found fractions, expected integers: scale and round them"
            )
        return found.astype(np.int64)

    def numbers(self, entries: Halves) -> Ring:
        """Returns entries as numbers modulo 2^32, with their sign if there is one."""
        half = np.uint32(1 << self.outputs - 1 if self.signed else 0)
        return (entries.astype(np.uint32) ^ half) - half

    def look_up(self, tables: Tables, opened: Halves, pool: _core.ThreadPool) -> Halves:
        """Returns shares, by XOR, of the entries at opened places minus the tables' offsets."""
        found = _core.lut_look_up(self.bits, self._twice, tables.one_hot, opened, pool)
        return found.astype(np.uint16, copy=False)

    def simulate(self, x: Ring, dithers: Ring, shift: int) -> tuple[Ring, npt.NDArray[np.bool_]]:
        """Computes the entries for values x (uint32) and the client's shares of them, in clear.

        Also returns a flag for each value that is outside the window, whose entry is a wrong one.
        """
        moved = np.uint32(shift)
        places = (x - dithers >> moved) + (dithers >> moved) + np.uint32(shift > 0)
        exact = x.view(np.int32) >> np.int32(shift)
        rounded = exact + (places - exact.view(np.uint32) & np.uint32(1)).view(np.int32)
        wrapped = (rounded < self.low) | (rounded >= self.low + (1 << self.bits))
        mask = np.uint32((1 << self.bits) - 1)
        return self.numbers(self.entries[places & mask]), wrapped


class _Lookups:
    """One party's tables and places for a layer of one activation."""

    def __init__(
        self,
        activation: Activation,
        tables: Tables,
        shift: int,
        pool: _core.ThreadPool,
    ) -> None:
        if tables.bits != activation.bits or len(tables.dabits) != activation.outputs:
            raise ArgumentError(
                f"tables: found {tables.bits} bits and entries of {len(tables.dabits)}, expected "
                f"{activation.bits} and {activation.outputs}, those of the activation"
            )
        self._shift = as_count(shift, "shift", 0, _RING_BITS - activation.bits)
        self._activation, self._tables, self._pool = activation, tables, pool
        self._masked: Halves = np.empty(0, np.uint16)

    @property
    def place_bytes(self) -> int:
        """The bytes of packed places."""
        return _core.lut_message_bytes((self._activation.bits, 0, 0), len(self._tables))

    @property
    def entry_bytes(self) -> int:
        """The bytes of packed entries."""
        return _core.lut_message_bytes((self._activation.outputs, 0, 0), len(self._tables))

    def _place(self, share: Ring) -> Halves:
        """Returns this party's share of the opened places; higher bits do not count."""
        places = (share >> np.uint32(self._shift)).astype(np.uint16)
        places += self._tables.offsets
        return places

    def _look_up(self, opened: Halves) -> ByteArray:
        """Looks up opened places, and returns the masked shares of the entries, packed."""
        opened &= np.uint16((1 << self._activation.bits) - 1)
        self._masked = self._activation.look_up(self._tables, opened, self._pool)
        self._masked ^= self._tables.masks
        return _core.lut_pack(self._activation.outputs, self._masked)

    def _number(self, other: ByteArray, total: Ring, *, adds: bool) -> Ring:
        """Adds this party's share of the entries as numbers to `total`, from masked ones."""
        opened = _core.lut_unpack(self._activation.outputs, len(self._tables), other)
        opened ^= self._masked
        if adds:
            total += self._activation.numbers(opened)
        last = self._activation.outputs - 1 if self._activation.signed else None
        for number, shares in enumerate(self._tables.dabits):
            own = -shares if number == last else shares  # the sign has the weight -2^last
            _core.lut_add_dabits(number, opened, own, total)
        return total


class ClientLookups(_Lookups):
    """The client's side of a layer; it knows its share `x1` (uint32) of the values ahead.

    The server gets `places` ahead. Then `turn` answers the server's message.
    """

    def __init__(
        self,
        activation: Activation,
        tables: Tables,
        shift: int,
        x1: Ring,
        pool: _core.ThreadPool,
    ) -> None:
        super().__init__(activation, tables, shift, pool)
        self._own = self._place(x1)
        if shift:
            self._own += np.uint16(1)
        self.places = _core.lut_pack(activation.bits, self._own)

    def turn(self, message: ByteArray, mask: Ring) -> ByteArray:
        """Returns the client's message: masked entries, and its share of them plus `mask`.

        `mask` (uint32) is uniform, and hides the results from the server.
        """
        places, entries = np.split(message, [self.place_bytes])
        other = _core.lut_unpack(self._activation.bits, len(self._tables), places)
        masked = self._look_up(self._own + other)
        share = self._number(entries, mask.copy(), adds=False)
        return np.concatenate([masked, share.view(np.uint8)])


class ServerLookups(_Lookups):
    """The server's side of a layer, with the client's places."""

    def __init__(
        self,
        activation: Activation,
        tables: Tables,
        shift: int,
        client_places: ByteArray,
        pool: _core.ThreadPool,
    ) -> None:
        super().__init__(activation, tables, shift, pool)
        self._others = _core.lut_unpack(activation.bits, len(tables), client_places)

    def turn(self, x0: Ring) -> ByteArray:
        """Returns the server's message for its share `x0` of the values: places, masked entries."""
        own = self._place(x0)
        places = _core.lut_pack(self._activation.bits, own)
        return np.concatenate([places, self._look_up(own + self._others)])

    def results(self, message: ByteArray) -> Ring:
        """Returns the results plus the client's mask, from the client's message."""
        entries, shares = np.split(message, [self.entry_bytes])
        return self._number(entries, shares.view(np.uint32).copy(), adds=True)
