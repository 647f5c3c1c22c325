"""The digest of a table's content: a hash of hashes, so that a change costs what it touches."""

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .._arrays import ByteArray

CHUNK_ROWS = 4096
"""Rows that are hashed together: the table is cut into runs of so many, the last one shorter."""

HASH_BYTES = 32


def hash_chunks(rows: ByteArray, threads: int) -> ByteArray:
    """The SHA-256 of each run of rows: shape (runs, 32). `rows` begins at the start of a run."""
    starts = range(0, len(rows), CHUNK_ROWS)
    parts = (rows[first : first + CHUNK_ROWS].data for first in starts)
    hashes = b"".join(_hash_all(parts, threads))
    return np.frombuffer(hashes, np.uint8).reshape(len(starts), HASH_BYTES)


def digest_of(hashes: ByteArray) -> str:
    """The table's digest: the SHA-256 of its runs' hashes, one after the other, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(hashes).data).hexdigest()


def _hash_all(parts: Iterable[memoryview], threads: int) -> list[bytes]:
    def hash_one(part: memoryview) -> bytes:
        return hashlib.sha256(part).digest()

    workers = threads or os.cpu_count() or 1
    if workers == 1:
        return [hash_one(part) for part in parts]
    with ThreadPoolExecutor(workers) as pool:  # hashlib lets go of the interpreter lock
        return list(pool.map(hash_one, parts))
