"""Beaver triples of bits and words from random OTs: batches, messages and shares.

Gilboa 1999: the sender has a word a, the receiver the bits x_i of a word x and, of each of 64
random OTs, the message m_i of its choice x_i; the sender has both, m0_i and m1_i.

    sender -> receiver    d_i = m0_i + a - m1_i                  modulo 2^(64 - i)
    receiver              sum of (m_i + x_i d_i) 2^i             = a x + sum of m0_i 2^i
    sender                minus sum of m0_i 2^i

Position i counts 2^i times, so 64 - i bits of d_i are enough: 260 bytes for a product, and 520 for
the two products of a triple.
"""

import numpy as np

from .._arrays import ByteArray, IndexArray, as_count

WORD_BITS = 64
MAX_WORD_TRIPLES = 1 << 24
TRIPLE_WORDS = 65
"""Words of the message for one triple: two products of 32 1/2 words each."""

_BIT_BATCH = 1 << 18  # 2^19 OTs, 17 MB at the sender and 8 MB at the receiver
_WORD_BATCH = 1 << 12  # 2^19 OTs
_HALF = WORD_BITS // 2
_POSITIONS = np.arange(WORD_BITS, dtype=np.uint64)
_LOW = np.arange(1, _HALF, dtype=np.uint64)  # positions i; position 64 - i fills up its word


def bit_batches(n: int, largest: int) -> list[slice]:
    """Divides `n` triples of bits into batches, to bound the memory. Raises ArgumentError."""
    return _batches(as_count(n, "n", 0, largest), _BIT_BATCH)


def word_batches(n: int) -> list[slice]:
    """Divides `n` triples of words into batches, to bound the memory. Raises ArgumentError."""
    return _batches(as_count(n, "n", 0, MAX_WORD_TRIPLES), _WORD_BATCH)


def _batches(n: int, size: int) -> list[slice]:
    return [slice(begin, min(begin + size, n)) for begin in range(0, max(n, 1), size)]


def word_message(factors: IndexArray, low: IndexArray, high: IndexArray) -> IndexArray:
    """Computes the sender's message for triples of words: uint64 of shape (n, 65).

    `factors` are its words a and b, of shape (2, n); `low` and `high` are the messages m0 and m1 of
    its OTs, of shape (2, n, 64).
    """
    differences: IndexArray = low + factors[:, :, np.newaxis] - high
    return _packed(differences)


def _packed(d: IndexArray) -> IndexArray:
    """Packs the low 64 - i bits of each d[p, k, i] for products p = 0, 1 of each triple k."""
    words = np.empty((d.shape[1], TRIPLE_WORDS), np.uint64)
    mask = (np.uint64(1) << (WORD_BITS - _LOW)) - np.uint64(1)
    for product in range(2):
        part = words[:, product * _HALF : (product + 1) * _HALF]
        part[:, 0] = d[product, :, 0]
        part[:, 1:] = d[product, :, 1:_HALF] & mask
        part[:, 1:] |= d[product, :, :_HALF:-1] << (WORD_BITS - _LOW)
    words[:, -1] = d[0, :, _HALF] & np.uint64((1 << _HALF) - 1)
    words[:, -1] |= d[1, :, _HALF] << np.uint64(_HALF)
    return words


def _terms(words: IndexArray) -> IndexArray:
    """Unpacks a message: d_i 2^i for each product and triple, of shape (2, n, 64)."""
    terms = np.empty((2, len(words), WORD_BITS), np.uint64)
    for product in range(2):
        part = words[:, product * _HALF : (product + 1) * _HALF]
        terms[product, :, :_HALF] = part << _POSITIONS[:_HALF]
        terms[product, :, :_HALF:-1] = part[:, 1:] >> (WORD_BITS - _LOW) << (WORD_BITS - _LOW)
    terms[0, :, _HALF] = words[:, -1] << np.uint64(_HALF)
    terms[1, :, _HALF] = words[:, -1] >> np.uint64(_HALF) << np.uint64(_HALF)
    return terms


def sender_share(factors: IndexArray, low: IndexArray) -> IndexArray:
    """Computes the sender's share c of each triple, from a and b and the messages m0."""
    a, b = factors
    share: IndexArray = a * b - (low << _POSITIONS).sum(axis=(0, 2), dtype=np.uint64)
    return share


def receiver_share(
    words: IndexArray, choices: ByteArray, messages: IndexArray
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Computes the receiver's shares a, b, c of triples of words.

    `words` is the sender's message, of shape (n, 65); `choices` and `messages` are those of the
    OTs, of shape (128 n,).
    """
    b, a = np.packbits(choices, bitorder="little").view(np.uint64).reshape(2, -1)
    shape = (2, len(words), WORD_BITS)
    terms = _terms(words) & -choices.astype(np.uint64).reshape(shape)
    terms += messages.reshape(shape) << _POSITIONS
    return a, b, a * b + terms.sum(axis=(0, 2), dtype=np.uint64)
