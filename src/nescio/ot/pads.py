"""What masks the messages of oblivious transfers, and how batches of them are cut."""

from collections.abc import Callable, Iterator

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_count
from ..errors import ArgumentError

MOST_OPTIONS = 1 << 16
MOST_LENGTH = 1 << 24
_BLOCK_BYTES = 16
_TRIPLE_BATCH = 1 << 12
_OPTION_TAGS = 32  # bits of the tag below the option's number

Hash = Callable[[IndexArray, int, int], IndexArray]


def chunks_of(length: int) -> int:
    """IndexArray that cover a message of so many bytes. Raises ArgumentError."""
    return -(-as_count(length, "bytes of a message", 1, MOST_LENGTH) // _BLOCK_BYTES)


def joined(chunks: list[IndexArray], length: int) -> ByteArray:
    """IndexArray of each message, chunk by chunk, as the first `length` bytes: (n, length)."""
    raw: ByteArray = np.concatenate(chunks, axis=1).view(np.uint8)[:, :length]
    return raw


def low_bits(blocks: IndexArray) -> ByteArray:
    """The lowest bit of each block, uint8."""
    bits: ByteArray = (blocks[:, 0] & np.uint64(1)).astype(np.uint8)
    return bits


def checked_options(messages: Array) -> tuple[int, int, int]:
    """The shape of messages to choose from: how many choices, options, bytes. ArgumentError."""
    if messages.dtype != np.uint8 or messages.ndim != 3:
        raise ArgumentError(
            f"messages: found {messages.dtype} of shape {messages.shape}, expected uint8 of shape "
            "(n, options, length)"
        )
    count, options, length = messages.shape
    as_count(options, "options", 2, MOST_OPTIONS)
    chunks_of(length)
    return count, options, length


def levels_of(options: int) -> int:
    """Transfers that choose one of so many: one for each bit of its number."""
    return (as_count(options, "options", 2, MOST_OPTIONS) - 1).bit_length()


def digits(option: int, levels: int) -> Array:
    """The bits of an option's number, the lowest first, as bools. The number is public."""
    return (option >> np.arange(levels) & 1).astype(bool)


def option_pads(
    hash_blocks: Hash, keys: IndexArray, first: int, option: int, length: int
) -> ByteArray:
    """The pads of one option: of keys (n, levels, 2) each is a PRF's, at (option, chunk)."""
    count, levels, _ = keys.shape
    flat = np.ascontiguousarray(keys).reshape(-1, 2)
    chunks = []
    for chunk in range(chunks_of(length)):
        tag = option + 1 << _OPTION_TAGS | chunk
        parts = hash_blocks(flat, first, tag).reshape(count, levels, 2)
        chunks.append(np.bitwise_xor.reduce(parts, axis=1))
    return joined(chunks, length)


def triple_batches(n: int) -> Iterator[int]:
    """Cuts `n` triples of words, which take 2 KB of OTs each, into batches; one at least."""
    as_count(n, "n", 0, MOST_OPTIONS << 8)
    for begin in range(0, max(n, 1), _TRIPLE_BATCH):
        yield min(n - begin, _TRIPLE_BATCH)
