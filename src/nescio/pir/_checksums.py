"""Signs of a change: checksums of a table's memory, and the state of the file of its rows.

Checksums are of blocks, on several threads: XXH3 with 128 bits. They detect accidents, at the speed
of memory. Against a person who writes the file, no hash in the same file helps.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from .._arrays import ByteArray, shown
from ..errors import ArgumentError

Progress = Callable[[int, int], None]

BLOCK_BYTES = 4 << 20
CHECKSUM_BYTES = 16
_CLOCK_STEP = 100_000_000  # nanoseconds; times of files advance in steps of some milliseconds
_PIECE_BYTES = 1024 << 10  # fits into the second-level cache of a core


def blocks_of(size: int) -> int:
    """Returns the number of blocks of `size` bytes."""
    return -(-size // BLOCK_BYTES)


def block_parts(memory: ByteArray) -> Iterator[ByteArray]:
    """Yields the blocks of a flat array."""
    for first in range(0, len(memory), BLOCK_BYTES):
        yield memory[first : first + BLOCK_BYTES]


def sum_block(block: ByteArray) -> bytes:
    """Computes the checksum of a block in memory."""
    from xxhash import xxh3_128_digest  # noqa: PLC0415 - only stored tables need it

    return xxh3_128_digest(block.data)


def sum_file(
    descriptor: int,
    offset: int,
    size: int,
    threads: int,
    progress: Progress | None,
    *,
    into: ByteArray | None = None,
) -> ByteArray:
    """Computes the checksum of each block of `size` bytes of a file at `offset`: (blocks, 16).

    Fills `into`, if given, with the bytes. Reads the file instead of a mapping of it: a disk that
    fails then raises OSError, where a mapping would end the process.
    """
    from xxhash import xxh3_128  # noqa: PLC0415 - only stored tables need it

    local = threading.local()

    def sum_one(first: int) -> bytes:
        if into is None and not hasattr(local, "buffer"):
            local.buffer = bytearray(_PIECE_BYTES)
        state = xxh3_128()
        end = min(first + BLOCK_BYTES, size)
        while first < end:
            wanted = min(_PIECE_BYTES, end - first)
            view = memoryview(local.buffer)[:wanted] if into is None else into[first:][:wanted].data
            count = os.preadv(descriptor, [view], offset + first)
            if count == 0:  # the file got shorter: the checksum differs
                break
            state.update(view[:count])
            first += count
        return state.digest()

    return _sum_all(sum_one, size, threads, progress)


def _sum_all(
    sum_one: Callable[[int], bytes], size: int, threads: int, progress: Progress | None
) -> ByteArray:
    sums = []
    with ThreadPoolExecutor(threads) as pool:  # xxhash and preadv release the interpreter lock
        for done, checksum in enumerate(pool.map(sum_one, range(0, size, BLOCK_BYTES)), 1):
            sums.append(checksum)
            if progress is not None:
                progress(min(size, done * BLOCK_BYTES), size)
    return np.frombuffer(b"".join(sums), np.uint8).reshape(-1, CHECKSUM_BYTES)


@dataclass(frozen=True, slots=True)
class Source:
    """A file's length, times and number, which together change when a call writes its content.

    Programs can set the time of modification back, but not the time of the last change of status,
    which every call that writes sets too. A write through a memory map may change neither, if the
    page had unwritten changes before: such maps must be closed before the state is read.
    """

    bytes: int
    modified_nanoseconds: int
    changed_nanoseconds: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "Source":
        """Reads the current state of a file.

        Waits until the last change is at least 0.1 s old, because a second change within one step
        of the file system's clock would leave the same times.
        """
        status = path.stat()
        while 0 <= time.time_ns() - status.st_ctime_ns < _CLOCK_STEP:
            time.sleep(_CLOCK_STEP / 1e9)
            status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    @classmethod
    def from_dict(cls, found: object) -> "Source":
        """Parses the fields as JSON types. Raises ArgumentError."""
        names = {field.name for field in fields(cls)}
        if not isinstance(found, dict) or set(found) != names:
            raise ArgumentError(f"source: found {shown(found)}, expected {', '.join(names)}")
        if not all(type(value) is int for value in found.values()):
            raise ArgumentError(f"source: found {shown(found)}, expected integers")
        return cls(**found)
