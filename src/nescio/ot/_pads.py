"""What masks the messages of oblivious transfers, and how batches of them are cut."""

from collections.abc import Callable

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_array, as_count
from ..errors import ArgumentError

MOST_OPTIONS = 1 << 16
MOST_LENGTH = 1 << 24
MOST_BYTES = 1 << 36
_BLOCK_BYTES = 16
_TRIPLE_BATCH = 1 << 12
_OPTION_TAGS = 32  # bits of the tag below the option's number

Hash = Callable[[IndexArray, int, int], IndexArray]


def chunks_of(length: int, count: int = 1) -> int:
    """Blocks that cover a message of so many bytes. Raises ArgumentError, also for too many."""
    as_count(length, "bytes of a message", 1, MOST_LENGTH)
    as_count(count * length, "bytes of all messages", 0, MOST_BYTES)
    return -(-length // _BLOCK_BYTES)


def stretched(hash_blocks: Hash, keys: IndexArray, first: int, length: int) -> ByteArray:
    """The pads of messages, (n, length), from a block each.

    A block is enough for 16 bytes. For more, hashes of it: so that however long a message is, its
    transfer hashes what delta is in once.
    """
    chunks = chunks_of(length)
    if chunks > 1:
        return _joined([hash_blocks(keys, first, 1 + chunk) for chunk in range(chunks)], length)
    return _joined([keys], length)


def _joined(chunks: list[IndexArray], length: int) -> ByteArray:
    """Blocks of each message, chunk by chunk, as the first `length` bytes: (n, length)."""
    raw: ByteArray = np.concatenate(chunks, axis=1).view(np.uint8)[:, :length]
    return raw


def as_options(messages: object) -> ByteArray:
    """Messages to choose from, uint8 of shape (n, options, length). Raises ArgumentError."""
    array = as_array(messages, "messages")
    if array.dtype != np.uint8 or array.ndim != 3:
        raise ArgumentError(
            f"messages: found {array.dtype} of shape {array.shape}, expected uint8 of shape "
            "(n, options, length)"
        )
    count, options, length = array.shape
    as_count(options, "options", 2, MOST_OPTIONS)
    chunks_of(length, count)
    return array


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
    return _joined(chunks, length)


def triple_batches(n: int) -> list[int]:
    """Cuts `n` triples of words, which take 2 KB of OTs each, into batches; one at least."""
    as_count(n, "n", 0, MOST_OPTIONS << 8)
    return [min(n - begin, _TRIPLE_BATCH) for begin in range(0, max(n, 1), _TRIPLE_BATCH)]
