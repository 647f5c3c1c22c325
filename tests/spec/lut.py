"""One-time tables from random oblivious transfers, in plain Python.

A table of 2^b entries is looked up once, at a place that neither party knows. Before its function
is known, the parties share the vector that is one at a random place s and zero elsewhere, and s:

    one-hot   the XOR of both shares is 1 << s
    offset    the sum of both shares is s, modulo 2^b
    daBits    the XOR of both shares is m, and their sums, modulo 2^32, are m_j * 2^j for each bit j

Bit i of s is the XOR of a bit of each party. The one-hot vector of i + 1 bits has the vector e of i
bits, without those where bit i is one, and then the others: (e ^ p, p) with p = bit i times e. A
party multiplies its own bit by its own share of e. The product of its bit and the other's share
comes from a random transfer whose choice is that bit: the sender's message has all entries of e but
the last, which follows from their XOR, since the XOR of all entries of p is bit i.

The same transfer turns a bit that is shared by XOR into numbers: x ^ y = x + y - 2 x y.
"""

from typing import NamedTuple

RING_BITS = 32


class Pads(NamedTuple):
    """A random transfer: the sender has `zero` and `one`, the receiver `choice` and one of them."""

    zero: int
    one: int
    choice: int

    @property
    def chosen(self):
        """The receiver's pad."""
        return self.one if self.choice else self.zero


class Field(NamedTuple):
    """The parts of a message: entries of a vector, and bits of a product; `shift` is the bit's."""

    entries: int
    product: int
    shift: int


def level_field(level: int, bits: int, *, with_offset: bool) -> Field:
    """Return the field of bit `level` of a table of 2^bits entries."""
    return Field((1 << level) - 1, bits - 1 - level if with_offset else 0, level)


def dabit_field(number: int) -> Field:
    """Return the field of a daBit."""
    return Field(0, RING_BITS - 1 - number, number)


def low(value: int, bits: int) -> int:
    """Return the lowest bits of a number."""
    return value & ((1 << bits) - 1)


def message(field: Field, share: int, bit: int, pads: Pads) -> int:
    """Return the sender's message, for its share of a vector and its bit."""
    entries = low(pads.zero ^ pads.one ^ share, field.entries)
    zero, one = pads.zero >> field.entries, pads.one >> field.entries
    return entries | low(zero - one + bit, field.product) << field.entries


def sent(field: Field, bit: int, pads: Pads) -> tuple[int, int]:
    """Return the sender's share of the entries, and what it adds to its share of the number."""
    product = low(pads.zero >> field.entries, field.product)
    return low(pads.zero, field.entries), (bit << field.shift) + (product << field.shift + 1)


def received(field: Field, found: int, pads: Pads) -> tuple[int, int]:
    """Return the same for the receiver, from the message."""
    entries = low(pads.chosen ^ pads.choice * found, field.entries)
    product = low(
        (pads.chosen >> field.entries) + pads.choice * (found >> field.entries), field.product
    )
    return entries, (pads.choice << field.shift) - (product << field.shift + 1)


def first_share(party: int, bit: int) -> int:
    """Return a party's share of the one-hot vector of bit 0."""
    return bit ^ 1 - party | bit << 1


def grow(level: int, share: int, bit: int, products: int) -> int:
    """Return the share of the vector of bits 0 to `level`, from that of bits 0 to level - 1.

    `products` is the XOR of the shares of both products, of the sender's and of the receiver's.
    """
    size = 1 << level
    part = low(bit * share, size - 1) ^ products
    part |= (part.bit_count() + bit & 1) << size - 1
    return (share ^ part) | part << size


def look_up(share: int, table: list[int], opened: int) -> int:
    """Return a share, by XOR, of the entry at `opened` minus the offset."""
    found = 0
    for place in range(len(table)):
        if share >> place & 1:
            found ^= table[(opened - place) % len(table)]
    return found


def to_number(party: int, opened: int, shares: list[int]) -> int:
    """Return a share, modulo 2^32, of a number whose XOR with the daBits is `opened`."""
    total = opened if party == 0 else 0
    for j, share in enumerate(shares):
        total += -share if opened >> j & 1 else share
    return total % (1 << RING_BITS)
