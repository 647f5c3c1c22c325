"""Checksums of a table's memory, block by block, on several threads: XXH3 with 128 bits.

They detect accidents, at the speed of memory. Against a person who writes the file, no hash in the
same file helps.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .._arrays import ByteArray

Progress = Callable[[int, int], None]

BLOCK_BYTES = 4 << 20
CHECKSUM_BYTES = 16
_PIECE_BYTES = 1024 << 10  # fits into the second-level cache of a core


def blocks_of(size: int) -> int:
    """Returns the number of blocks of `size` bytes."""
    return -(-size // BLOCK_BYTES)


def sum_memory(memory: ByteArray, threads: int) -> ByteArray:
    """Computes the checksum of each block of a flat array: (blocks, 16)."""
    from xxhash import xxh3_128_digest  # noqa: PLC0415 - only stored tables need it

    def sum_block(first: int) -> bytes:
        return xxh3_128_digest(memory[first : first + BLOCK_BYTES].data)

    return _sum_all(sum_block, len(memory), threads, None)


def sum_file(
    descriptor: int, offset: int, size: int, threads: int, progress: Progress | None
) -> ByteArray:
    """Computes the checksum of each block of `size` bytes of a file at `offset`: (blocks, 16).

    Reads the file instead of a mapping of it: a disk that fails then raises OSError, where a
    mapping would end the process.
    """
    from xxhash import xxh3_128  # noqa: PLC0415 - only stored tables need it

    local = threading.local()

    def sum_block(first: int) -> bytes:
        if not hasattr(local, "buffer"):
            local.buffer = bytearray(_PIECE_BYTES)
        state = xxh3_128()
        end = min(first + BLOCK_BYTES, size)
        while first < end:
            view = memoryview(local.buffer)[: min(_PIECE_BYTES, end - first)]
            count = os.preadv(descriptor, [view], offset + first)
            if count == 0:  # the file got shorter: the checksum differs
                break
            state.update(view[:count])
            first += count
        return state.digest()

    return _sum_all(sum_block, size, threads, progress)


def _sum_all(
    sum_block: Callable[[int], bytes], size: int, threads: int, progress: Progress | None
) -> ByteArray:
    sums = []
    with ThreadPoolExecutor(threads) as pool:  # xxhash and preadv release the interpreter lock
        for done, checksum in enumerate(pool.map(sum_block, range(0, size, BLOCK_BYTES)), 1):
            sums.append(checksum)
            if progress is not None:
                progress(min(size, done * BLOCK_BYTES), size)
    return np.frombuffer(b"".join(sums), np.uint8).reshape(-1, CHECKSUM_BYTES)
