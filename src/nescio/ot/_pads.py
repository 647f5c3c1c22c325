"""Pads that mask the messages of oblivious transfers."""

from collections.abc import Callable

import numpy as np

from .._arrays import Array, ByteArray, IndexArray, as_array, as_count
from ..errors import ArgumentError

MAX_OPTIONS = 1 << 16
MAX_LENGTH = 1 << 24
MAX_BYTES = 1 << 36
_BLOCK_BYTES = 16
_OPTION_TAGS = 32  # bits of the tag below the option's number

Hash = Callable[[IndexArray, int, int], IndexArray]


def chunks_of(length: int, count: int = 1) -> int:
    """Counts the blocks that cover a message of `length` bytes. Raises ArgumentError."""
    as_count(length, "bytes of a message", 1, MAX_LENGTH)
    as_count(count * length, "bytes of all messages", 0, MAX_BYTES)
    return -(-length // _BLOCK_BYTES)


def stretched(hash_blocks: Hash, keys: IndexArray, first: int, length: int) -> ByteArray:
    """Expands one block per message to pads of shape (n, length).

    A pad of up to 16 bytes is the block itself. Longer pads are hashes of the block, so that a
    transfer of any length hashes only one value that contains delta.
    """
    chunks = chunks_of(length)
    if chunks > 1:
        return _joined([hash_blocks(keys, first, 1 + chunk) for chunk in range(chunks)], length)
    return _joined([keys], length)


def _joined(chunks: list[IndexArray], length: int) -> ByteArray:
    """Concatenates the chunks of each message and cuts them to `length` bytes: (n, length)."""
    raw: ByteArray = np.concatenate(chunks, axis=1).view(np.uint8)[:, :length]
    return raw


def as_options(messages: object) -> ByteArray:
    """Checks messages to choose from: uint8 (n, options, length). Raises ArgumentError."""
    array = as_array(messages, "messages")
    if array.dtype != np.uint8 or array.ndim != 3:
        raise ArgumentError(
            f"messages: found {array.dtype} of shape {array.shape}, expected uint8 of shape "
            "(n, options, length)"
        )
    count, options, length = array.shape
    as_count(options, "options", 2, MAX_OPTIONS)
    chunks_of(length, count)
    return array


def levels_of(options: int) -> int:
    """Counts the transfers that choose one of `options`: one for each bit of its number."""
    return (as_count(options, "options", 2, MAX_OPTIONS) - 1).bit_length()


def digits(option: int, levels: int) -> Array:
    """Returns the bits of an option's number, lowest first, as bools. The number is public."""
    return (option >> np.arange(levels) & 1).astype(bool)


def option_pads(
    hash_blocks: Hash, keys: IndexArray, first: int, option: int, length: int
) -> ByteArray:
    """Computes the pads of one option: each of `keys` (n, levels, 2) is a PRF key."""
    count, levels, _ = keys.shape
    flat = np.ascontiguousarray(keys).reshape(-1, 2)
    chunks = []
    for chunk in range(chunks_of(length)):
        tag = option + 1 << _OPTION_TAGS | chunk
        parts = hash_blocks(flat, first, tag).reshape(count, levels, 2)
        chunks.append(np.bitwise_xor.reduce(parts, axis=1))
    return _joined(chunks, length)
