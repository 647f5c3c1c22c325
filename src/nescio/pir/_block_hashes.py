"""The hashes of a table's memory, block by block, on several threads."""

import hashlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .._arrays import ByteArray
from ._digest import HASH_BYTES

Progress = Callable[[int, int], None]

BLOCK_BYTES = 4 << 20
_PIECE_BYTES = 128 << 10  # fits into the cache of a core


def blocks_of(size: int) -> int:
    """Returns the number of blocks of `size` bytes."""
    return -(-size // BLOCK_BYTES)


def hash_memory(memory: ByteArray, threads: int) -> ByteArray:
    """Computes the SHA-256 of each block of a flat array: (blocks, 32)."""

    def hash_block(first: int) -> bytes:
        return hashlib.sha256(memory[first : first + BLOCK_BYTES].data).digest()

    return _hash_all(hash_block, len(memory), threads, None)


def hash_file(
    descriptor: int, offset: int, size: int, threads: int, progress: Progress | None
) -> ByteArray:
    """Computes the SHA-256 of each block of `size` bytes of a file, from `offset` on: (blocks, 32).

    Reads the file instead of a mapping of it: a disk that fails then raises OSError, where a
    mapping would end the process.
    """
    local = threading.local()

    def hash_block(first: int) -> bytes:
        if not hasattr(local, "buffer"):
            local.buffer = bytearray(_PIECE_BYTES)
        state = hashlib.sha256()
        end = min(first + BLOCK_BYTES, size)
        while first < end:
            view = memoryview(local.buffer)[: min(_PIECE_BYTES, end - first)]
            count = os.preadv(descriptor, [view], offset + first)
            if count == 0:  # the file got shorter: the hash differs
                break
            state.update(view[:count])
            first += count
        return state.digest()

    return _hash_all(hash_block, size, threads, progress)


def _hash_all(
    hash_block: Callable[[int], bytes], size: int, threads: int, progress: Progress | None
) -> ByteArray:
    hashes = []
    with ThreadPoolExecutor(threads) as pool:  # hashlib and preadv release the interpreter lock
        for done, digest in enumerate(pool.map(hash_block, range(0, size, BLOCK_BYTES)), 1):
            hashes.append(digest)
            if progress is not None:
                progress(min(size, done * BLOCK_BYTES), size)
    return np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, HASH_BYTES)
